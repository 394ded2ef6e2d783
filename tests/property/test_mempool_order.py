"""The order of a mempool is what sorting everything anew would give."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mempool.world import person, transfer
from trailboss.mempool.order import PRICED_OUT, Queue, TipOrder, Worth, offer_of
from trailboss.mempool.records import Pooled
from trailboss.primitives.octets import Hash32

SENDERS = [bytes(person(index)) for index in range(4)]
NONCES = 6
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("toggle"),
            st.integers(0, len(SENDERS) - 1),
            st.integers(0, NONCES - 1),
            st.sampled_from([0, 1, 2, 3, 50]),
            st.sampled_from([10, 11, 12, 20, 60]),
            st.sampled_from([10, 12]),
        ),
        st.tuples(st.just("move"), st.integers(0, len(SENDERS) - 1), st.integers(0, NONCES)),
        st.tuples(st.just("reprice"), st.integers(9, 13), st.integers(9, 13)),
    ),
    min_size=10,
    max_size=60,
)


def make(sender: int, nonce: int, arrival: int, offers: tuple[int, int, int]) -> Pooled:
    """Return a transaction that waits."""
    tip, cap, cell_cap = offers
    transaction = transfer(
        sender, nonce, max_priority_fee_per_cycle=tip, max_fee_per_cycle=cap, max_fee_per_cell=cell_cap
    )
    return Pooled(
        transaction=transaction,
        hash=Hash32(arrival.to_bytes(32, "big")),
        raw=b"",
        arrival=arrival,
        cost=1,
        cycles=0,
        cells=0,
        admitted_height=0,
    )


def worth_of(waiting: list[Pooled], nonce: int, prices: tuple[int, int]) -> Worth:
    """Return what the last of a sender's transactions is worth, by looking at all of them."""
    offers = []
    for each in waiting:
        transaction = each.transaction
        is_paid = transaction.max_fee_per_cell >= prices[1]
        spare = transaction.max_fee_per_cycle - prices[0]
        offers.append(min(transaction.max_priority_fee_per_cycle, spare) if is_paid else PRICED_OUT)
    return [each.transaction.nonce for each in waiting] == list(range(nonce, nonce + len(waiting))), min(offers)


@given(steps=STEPS, asks=st.lists(st.booleans(), min_size=60, max_size=60))
def test_order_equals_sorting(steps: list[tuple[object, ...]], asks: list[bool]) -> None:
    """After transactions come and go anywhere, accounts move on and back, basefees change, and some steps make room."""
    order, nonces = TipOrder(), [0] * len(SENDERS)
    for arrival, (kind, *details) in enumerate(steps):
        match kind, details:
            case "toggle", [int(sender), int(nonce), *offers]:
                if nonce < nonces[sender]:
                    continue
                queue = order.queues.get(SENDERS[sender]) or Queue(SENDERS[sender], nonces[sender])
                present = queue.at(nonce)
                if present is None:
                    queue.put(make(sender, nonce, arrival, tuple(offers)))
                else:
                    queue.remove(present)
                order.refresh(queue)
            case "move", [int(sender), int(nonce)]:
                nonces[sender] = nonce
                queue = order.queues.get(SENDERS[sender])
                if queue is not None:
                    for stale in queue.below(nonce):
                        queue.remove(stale)
                    queue.nonce = nonce
                    order.refresh(queue)
            case _, [int(cycle_basefee), int(cell_basefee)]:
                order.reprice((cycle_basefee, cell_basefee))
        check(order, nonces, asks_tails=asks[arrival])


def check(order: TipOrder, nonces: list[int], *, asks_tails: bool) -> None:
    """Compare both ends, the last one if it is asked for, and the worth of everything, with what sorting gives."""
    heads, tails, executable = [], [], 0
    for sender, nonce in zip(SENDERS, nonces, strict=True):
        queue = order.queues.get(sender)
        if queue is None:
            continue
        assert queue.nonce == nonce
        assert queue.cost == len(queue.pooled) > 0
        first = queue.pooled[0]
        if first.transaction.nonce == nonce:
            heads.append((-offer_of(first.transaction, order.prices), first.arrival))
        worths = [worth_of(queue.pooled[: index + 1], nonce, order.prices) for index in range(len(queue.pooled))]
        assert [order.tail_at(queue, index)[:2] for index in range(len(queue.pooled))] == worths
        executable += sum(is_executable for is_executable, _ in worths)
        tails.append((*worths[-1], -queue.pooled[-1].arrival))
        free = next(number for number in range(nonce, nonce + NONCES + 2) if queue.at(number) is None)
        assert queue.next_nonce(nonce) == free
    assert [head[:2] for head in order.heads] == sorted(heads)
    assert not asks_tails or [tail[:3] for tail in order.tails] == sorted(tails)
    assert order.executable == executable
