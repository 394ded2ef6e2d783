"""Who makes room when the mempool is full, and who does not."""

from tests.unit.mempool.world import BASEFEE, name_of, person, small, transfer
from trailboss.codec.wire import encode_transaction
from trailboss.mempool import AdmissionOutcome, AdmissionStatus, End
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import Rejection

SIZE = len(encode_transaction(transfer()))


def tipped(sender: int, tip: int, nonce: int = 0, **changes: object) -> Transaction:
    """Return a transfer with a tip."""
    return transfer(sender, nonce, max_priority_fee_per_cycle=tip, **changes)


def what(verdict: AdmissionOutcome) -> tuple[int, str]:
    """Return code and words of a refusal."""
    assert isinstance(verdict.rejection, Rejection)
    assert verdict.status is AdmissionStatus.REFUSED
    return verdict.rejection.reason.code, verdict.rejection.what


def evicted(verdict: AdmissionOutcome) -> list[bytes]:
    """Return the hashes of those that made room."""
    assert all(ending.end is End.EVICTED for ending in verdict.endings)
    return [ending.hash for ending in verdict.endings]


def test_cheapest_makes_room_when_the_mempool_is_full() -> None:
    """It hears for whom, and the refused one what would have been enough."""
    world = small(transactions_max=3)
    cheap = tipped(1, 5)
    for transaction in (tipped(0, 9), cheap, tipped(2, 7)):
        world.add(transaction)
    assert what(world.add(tipped(3, 5))) == (
        1901,
        "the mempool holds 3 transactions, its limit, and this one offers 5 base units a cycle, with those before it; "
        "6 would make room",
    )
    verdict = world.add(tipped(3, 6))
    assert evicted(verdict) == [name_of(cheap)]
    rejection = world.mempool.refusal(name_of(cheap))
    assert rejection is not None
    assert (rejection.reason.code, rejection.what) == (
        1901,
        f"the mempool was full, and {name_of(cheap)} made room for {verdict.hash}",
    )
    assert len(world.mempool) == 3


def test_latest_makes_room_when_two_offer_the_same() -> None:
    """Who came first stays."""
    world = small(transactions_max=2)
    world.add(tipped(0, 5))
    latest = world.add(tipped(1, 5)).hash
    assert evicted(world.add(tipped(2, 6))) == [latest]


def test_last_nonce_makes_room_when_its_sender_is_the_cheapest() -> None:
    """It is worth no more than what must run before it, and never leaves a gap."""
    world = small(transactions_max=4)
    for transaction in (tipped(0, 3), tipped(0, 100, nonce=1), tipped(0, 100, nonce=2), tipped(1, 50)):
        world.add(transaction)
    assert evicted(world.add(tipped(2, 4))) == [name_of(tipped(0, 100, nonce=2))]
    assert evicted(world.add(tipped(3, 4))) == [name_of(tipped(0, 100, nonce=1))]
    assert what(world.add(tipped(0, 100, nonce=1)))[0] == 1901, "its own predecessor would have to go"


def test_what_cannot_run_makes_room_first() -> None:
    """A gap, or a fee cap below the basefee, whatever it offers."""
    world = small(transactions_max=2)
    gap = world.add(tipped(0, 10**4, nonce=1)).hash
    world.add(tipped(1, 1))
    assert what(world.add(tipped(2, 10**4, nonce=1))) == (
        1901,
        "the mempool holds 2 transactions, its limit, and this one cannot run before others of its sender have come",
    )
    assert evicted(world.add(tipped(2, 0))) == [gap]


def test_bytes_make_room_for_bytes() -> None:
    """As many leave as it takes; none if there are not enough."""
    world = small(bytes_max=4 * SIZE + 3)
    for sender, tip in enumerate((3, 4, 5, 20)):
        world.add(tipped(sender, tip))
    long = ((person(0), (bytes(32),) * 4),)
    wide = tipped(4, 6, access_list=long)
    assert 2 * SIZE < len(encode_transaction(wide)) <= 3 * SIZE
    refused = world.add(tipped(4, 5, access_list=long))
    assert what(refused) == (
        1901,
        f"the mempool holds {4 * SIZE + 3} bytes, its limit, and this one offers 5 base units a cycle, with those "
        "before it; 6 would make room",
    )
    assert (len(world.mempool), refused.endings) == (4, ())
    assert evicted(world.add(wide)) == [name_of(tipped(0, 3)), name_of(tipped(1, 4)), name_of(tipped(2, 5))]


def test_replacement_needs_no_room_when_it_is_not_longer() -> None:
    """What it replaces leaves; if it is longer, others may have to."""
    world = small(transactions_max=2, bytes_max=3 * SIZE)
    world.add(tipped(0, 5))
    poor = world.add(tipped(1, 1)).hash
    better = {"max_fee_per_cycle": 3 * BASEFEE, "max_fee_per_cell": 3 * BASEFEE}
    verdict = world.add(tipped(0, 6, **better))
    assert [ending.end for ending in verdict.endings] == [End.REPLACED]
    wider = {"max_fee_per_cycle": 4 * BASEFEE, "max_fee_per_cell": 4 * BASEFEE}
    verdict = world.add(tipped(0, 7, access_list=((person(0), (bytes(32),) * 4),), **wider))
    assert [(ending.end, ending.hash == poor) for ending in verdict.endings] == [
        (End.EVICTED, True),
        (End.REPLACED, False),
    ]


def test_replaced_transaction_does_not_make_room_twice() -> None:
    """It leaves in any case, and may be the cheapest: the next cheapest goes as well."""
    world = small(bytes_max=3 * SIZE + 200)
    present, cheap, dear = (world.add(tipped(sender, tip)).hash for sender, tip in ((0, 5), (1, 6), (2, 9)))
    better = {"max_fee_per_cycle": 3 * BASEFEE, "max_fee_per_cell": 3 * BASEFEE}
    verdict = world.add(tipped(0, 7, access_list=((person(0), (bytes(32),) * 8),), **better))
    assert [(ending.end, ending.hash) for ending in verdict.endings] == [(End.EVICTED, cheap), (End.REPLACED, present)]
    assert world.waiting() == [dear, verdict.hash]


def test_last_of_a_full_queue_makes_room_once() -> None:
    """Where bytes are short besides, others leave as well."""
    world = small(sender_transactions_max=2, bytes_max=3 * SIZE + 100)
    poor = world.add(tipped(1, 1)).hash
    first, last = (world.add(tipped(0, 9, nonce=nonce)).hash for nonce in (1, 2))
    long = ((person(0), (bytes(32),) * 4),)
    verdict = world.add(tipped(0, 9, access_list=long))
    assert [ending.hash for ending in verdict.endings] == [last, first]
    assert world.waiting() == [poor, verdict.hash]


def test_sender_has_a_bounded_queue() -> None:
    """Whoever fills it up can still bring what must come before its last one."""
    world = small(sender_transactions_max=3)
    for nonce in (1, 2, 3):
        world.add(transfer(nonce=nonce))
    assert what(world.add(transfer(nonce=4))) == (
        1901,
        f"{person(0)} has 3 transactions waiting, the most that one sender may have",
    )
    assert evicted(world.add(transfer(nonce=0))) == [name_of(transfer(nonce=3))]
    assert [pooled.transaction.nonce for pooled in world.mempool.of_sender(person(0))] == [0, 1, 2]


def test_what_a_block_is_offered_stays_until_it_is_settled() -> None:
    """Nothing takes its place, by tip or by nonce."""
    world = small(transactions_max=2, sender_transactions_max=2)
    offered = [world.add(tipped(0, 1, nonce=nonce)).hash for nonce in (0, 1)]
    world.take()
    assert what(world.add(tipped(1, 9)))[1].endswith("and the block that is being built is offered the rest")
    better = {"max_fee_per_cycle": 3 * BASEFEE, "max_fee_per_cell": 3 * BASEFEE}
    assert what(world.add(tipped(0, 2, **better))) == (
        1002,
        f"the block that is being built is offered {offered[0]}, which has nonce 0 already",
    )
    assert world.waiting() == offered
    world.mempool.settle(world.view, (), {})
    assert world.add(tipped(0, 2, **better)).status is AdmissionStatus.REPLACED


def test_reasons_are_remembered_for_a_bounded_number() -> None:
    """The oldest are forgotten first."""
    world = small(transactions_max=1, remembered_max=2)
    names = [world.add(tipped(sender, sender)).hash for sender in range(4)]
    assert [world.mempool.refusal(name) is not None for name in names] == [False, True, True, False]
