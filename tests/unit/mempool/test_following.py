"""What a block is offered, and what the mempool makes of what became of it."""

import pytest
from msgspec.structs import replace

from tests.unit.mempool.world import BASEFEE, CELLS, CYCLES, World, name_of, person, restless, small, transfer
from trailboss.mempool import AdmissionStatus, End, Ending
from trailboss.model.transactions import SetBalance, Transaction, Transfer
from trailboss.primitives.errors import Rejection, RejectionReason

ALICE = person(0)


def tipped(sender: int, tip: int, nonce: int = 0, **changes: object) -> Transaction:
    """Return a transfer with a tip."""
    return transfer(sender, nonce, max_priority_fee_per_cycle=tip, **changes)


def told(endings: list[Ending]) -> list[tuple[bytes, str, int | None, str | None]]:
    """Return hash, end, code and words of each."""
    return [
        (bytes(each.hash), each.end.value, None, None)
        if each.rejection is None
        else (bytes(each.hash), each.end.value, each.rejection.reason.code, each.rejection.what)
        for each in endings
    ]


# Taking


def test_best_tip_is_taken_first_and_nonces_in_order() -> None:
    """Behind its own predecessor the best waits; of two equal ones the first to come is first."""
    world = World()
    transactions = [tipped(0, 1), tipped(0, 90, nonce=1), tipped(1, 50), tipped(2, 50), tipped(3, 2)]
    for transaction in transactions:
        world.add(transaction)
    low, high, first, second, other = transactions
    assert world.take() == [first, second, other, low, high]
    assert world.take() == [first, second, other, low, high], "taking takes nothing away"
    assert [pooled.transaction for pooled in world.mempool.take(world.view, *(10**9,) * 2, 2)] == [first, second]


def test_transaction_is_not_taken_when_one_before_it_is_missing() -> None:
    """Nor when its fee caps do not cover the basefees of the next block."""
    world = restless()
    world.add(transfer(0, nonce=1))
    priced_out = transfer(1, max_fee_per_cycle=BASEFEE + 1)
    cells_out = transfer(2, max_fee_per_cell=BASEFEE + 1)
    for transaction in (priced_out, cells_out, transfer(3), transfer(4)):
        world.add(transaction)
    world.mempool.take(world.view, 10**9, 10**9, 0)
    world.chain.build([transfer(3), transfer(4)])
    world.view = world.chain.publish()
    world.mempool.settle(world.view, [name_of(transfer(3)), name_of(transfer(4))], {})
    assert world.view.rules().user_basefees() == (11_250, 11_250)
    assert world.take() == []
    assert world.mempool.statistics().executable == 2
    world.go_on(2)
    assert world.take() == [priced_out, cells_out]


def test_block_is_offered_nothing_that_its_own_basefees_price_out() -> None:
    """Whatever they were when the transaction came."""
    world = restless()
    world.add(transfer(0, max_fee_per_cycle=BASEFEE + 1))
    world.chain.build([transfer(3), transfer(4)])
    world.view = world.chain.publish()
    assert world.take() == []


def test_order_follows_the_basefees() -> None:
    """A cap that leaves no room for its whole tip is worth less when the basefee has risen."""
    world = restless()
    capped, plain = tipped(0, 9_000, max_fee_per_cycle=19_000), tipped(1, 8_500, max_fee_per_cycle=30_000)
    for transaction in (capped, plain):
        world.add(transaction)
    assert world.take() == [capped, plain]
    world.chain.build([transfer(2), transfer(3)])
    world.view = world.chain.publish()
    world.mempool.settle(world.view, (), {})
    assert world.take() == [plain, capped]


def test_block_is_offered_no_more_than_it_may_hold() -> None:
    """Each counts with the least that it uses, and the last with its limit; what can be in no block is passed over."""
    world = small(passed_over_max=1)
    wide = [tipped(0, 9, cycles_limit=4 * CYCLES), tipped(1, 8, cycles_limit=4 * CYCLES)]
    narrow = [tipped(2, 7), tipped(3, 6)]
    for transaction in (*wide, *narrow, tipped(4, 10, cycles_limit=6 * CYCLES)):
        world.add(transaction)

    def taken(cycles_max: int, cells_max: int = 10**9) -> list[Transaction]:
        return [pooled.transaction for pooled in world.mempool.take(world.view, cycles_max, cells_max, 100)]

    assert taken(5 * CYCLES) == [*wide, *narrow]
    assert taken(4 * CYCLES) == [wide[0], *narrow]
    assert taken(5 * CYCLES, 2 * CELLS) == wide
    assert taken(CYCLES) == [narrow[0]]
    assert taken(CYCLES - 1) == []


def test_block_is_left_at_that_when_too_many_do_not_fit() -> None:
    """It is as good as full."""
    world = small(passed_over_max=1)
    for sender in range(1, 4):
        world.add(tipped(sender, 9, cycles_limit=4 * CYCLES))
    world.add(tipped(0, 10))
    world.add(tipped(4, 1))
    assert [pooled.transaction for pooled in world.mempool.take(world.view, 4 * CYCLES, 10**9, 9)] == [tipped(0, 10)]


# Following


def test_included_transaction_leaves() -> None:
    """Nothing was wrong with it, so nothing is remembered of it."""
    world = World()
    name = world.add(transfer()).hash
    assert told(world.build()) == [(name, "included", None, None)]
    assert (len(world.mempool), world.mempool.refusal(name)) == (0, None)
    assert world.mempool.statistics().bytes == 0


def test_refused_transaction_leaves_and_is_remembered() -> None:
    """With what the block said."""
    world = World()
    name = world.add(transfer()).hash
    world.take()
    refusal = Rejection(RejectionReason.INSUFFICIENT_GAS_BALANCE, "so it was")
    assert told(world.mempool.settle(world.view, (), {name: refusal})) == [(name, "refused", 1004, "so it was")]
    assert world.mempool.refusal(name) is refusal
    assert world.add(transfer()).status is AdmissionStatus.ACCEPTED


@pytest.mark.parametrize("reason", [RejectionReason.BLOCK_FULL, RejectionReason.BASEFEE_TOO_LOW])
def test_refused_transaction_waits_on_when_another_block_may_take_it(reason: RejectionReason) -> None:
    """Want of room and the price of the day pass."""
    world = World()
    name = world.add(transfer()).hash
    world.take()
    assert world.mempool.settle(world.view, (), {name: Rejection(reason, "not now")}) == []
    assert world.waiting() == [name]


def test_transaction_waits_on_when_the_one_before_it_was_refused() -> None:
    """A nonce that is missing may come; one that is used does not come back."""
    world = World()
    first, second = (world.add(transfer(nonce=nonce)).hash for nonce in (0, 1))
    world.take()
    refused = {
        first: Rejection(RejectionReason.UNSUPPORTED_INSTRUCTION, "never"),
        second: Rejection(RejectionReason.NONCE_MISMATCH, "not now"),
    }
    assert [ending.hash for ending in world.mempool.settle(world.view, (), refused)] == [first]
    assert (world.waiting(), world.take()) == ([second], [])
    world.add(transfer())
    assert world.take() == [transfer(), transfer(nonce=1)]


def test_transaction_leaves_when_its_nonce_was_used_by_another() -> None:
    """One that the mempool never saw."""
    world = World()
    names = [world.add(tipped(0, 5, nonce=nonce)).hash for nonce in (0, 1)]
    world.chain.build([transfer()])
    assert told(world.go_on(0)) == [
        (names[0], "invalidated", 1002, f"{ALICE} is at nonce 1, the transaction has 0"),
    ]
    assert world.take() == [tipped(0, 5, nonce=1)]


def test_last_transactions_leave_when_the_balance_does_not_cover_all() -> None:
    """Those that must run first stay."""
    world = World()
    cost = 2 * BASEFEE * (CYCLES + CELLS) + 1
    names = [world.add(transfer(nonce=nonce)).hash for nonce in range(3)]
    world.add(transfer(1))
    change = transfer(instruction=SetBalance(ALICE, 2 * cost + 5))
    world.chain.build([replace(change, sender=world.chain.genesis.system_deployers[0])])
    [ending] = world.go_on(0)
    assert told([ending]) == [
        (
            names[2],
            "invalidated",
            1004,
            f"{ALICE} holds {2 * cost + 5} base units, of which its other transactions may need {2 * cost}, its limits "
            f"at its fee caps need {cost - 1}",
        )
    ]
    assert world.waiting() == [*names[:2], name_of(transfer(1))]


def test_transaction_expires_when_no_block_takes_it_for_too_long() -> None:
    """It hears since when."""
    world = small(expiry_blocks=5)
    world.go_on(2)
    name = world.add(transfer(nonce=1)).hash
    assert world.go_on(4) == []
    assert told(world.go_on(1)) == [(name, "expired", 1905, f"{name} has waited since block 2, and this is block 7")]
    assert len(world.mempool) == 0


def test_transactions_come_back_when_their_block_is_dropped() -> None:
    """In their order; what cannot run in the other branch is told of."""
    world = World()
    transactions = [transfer(nonce=nonce) for nonce in range(3)]
    for transaction in transactions:
        world.add(transaction)
    world.build()
    world.add(transfer(nonce=3))
    world.chain.reorg(1)
    world.chain.build([transfer(instruction=Transfer(person(5), 7))])
    world.view = world.chain.publish()
    endings = world.mempool.settle(world.view, (), {}, transactions)
    first = name_of(transactions[0])
    assert told(endings) == [(first, "invalidated", 1002, f"{ALICE} is at nonce 1, the transaction has 0")]
    assert world.mempool.refusal(first) is not None
    assert world.take() == [*transactions[1:], transfer(nonce=3)]


def test_transaction_comes_back_when_only_its_price_is_against_it() -> None:
    """It waited before, so it may wait again, for lower basefees and for those before it."""
    world = restless()
    list_price = [transfer(sender, max_fee_per_cycle=BASEFEE + 1) for sender in (0, 1)]
    for transaction in list_price:
        world.add(transaction)
    world.build()
    world.chain.reorg(1)
    world.chain.build([transfer(2), transfer(3)])
    world.view = world.chain.publish()
    assert world.mempool.settle(world.view, (), {}, list_price) == []
    assert (len(world.mempool), world.take()) == (2, [])


def test_returned_transaction_that_waits_already_is_left_alone() -> None:
    """It is there once."""
    world = World()
    world.add(transfer())
    assert world.mempool.settle(world.view, (), {}, [transfer()]) == []
    assert world.waiting() == [name_of(transfer())]


def test_newer_picture_of_the_chain_counts_when_an_older_one_is_brought() -> None:
    """Whoever read the chain before the last block brings in nothing that it has made void."""
    world = World()
    before = world.view
    world.add(transfer())
    world.build()
    late = tipped(0, 9)
    with pytest.raises(Rejection, match="is at nonce 1"):
        world.mempool.check(before, late)
    world.view = before
    assert world.add(late).status is AdmissionStatus.REFUSED
    assert world.mempool.next_nonce(before, ALICE) == 1


def test_everything_is_looked_at_again_when_no_picture_is_known() -> None:
    """A chain that nobody published remembers no earlier state."""
    world = World()
    name = world.add(transfer()).hash
    world.chain.build([tipped(0, 5)])
    [ending] = world.mempool.settle(world.chain, (), {})
    assert (ending.hash, ending.end) == (name, End.INVALIDATED)
    second = world.add(transfer(nonce=1)).hash
    world.chain.build([tipped(0, 5, nonce=1)])
    [ending] = world.mempool.settle(world.chain, (), {})
    assert (ending.hash, ending.end) == (second, End.INVALIDATED)


def test_pages_are_in_order_of_arrival() -> None:
    """From anywhere, and beyond the end."""
    world = World()
    names = [world.add(transfer(sender)).hash for sender in range(5)]
    assert [pooled.hash for pooled in world.mempool.page(1, 3)] == names[1:4]
    assert world.mempool.page(5, 3) == []
    statistics = world.mempool.statistics()
    assert (statistics.transactions, statistics.senders, statistics.executable) == (5, 5, 5)
    assert (statistics.bytes, statistics.journal_bytes) == (sum(len(p.raw) for p in world.mempool.pooled()), 0)
    assert world.mempool.of_sender(person(7)) == []
