"""The chain as a whole: building, advancing, going back, and the checks that would notice if it were wrong."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from trailboss.chain import Chain, Snapshot
from trailboss.execution.genesis import Genesis
from trailboss.governance.rules import ECONOMY_KEY, SCHEDULER_KEY
from trailboss.model.actors import encode_account
from trailboss.model.configs import Economy, SchedulerTotals, amount_octets, encode_record
from trailboss.model.timers import encode_timer
from trailboss.primitives.errors import ConfigurationError, InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_HASH, Address, Hash32
from trailboss.primitives.units import Height
from trailboss.state.keys import account_key, timer_key
from trailboss.testing import LocalChain
from trailboss.timer_queue.bucket import Pending

PROPOSER = Address(b"\x09" * 20)
OWNER = Address(b"\x01" * 20)

SCHEDULES = """
def init(payload):
    pvm_host.schedule_timer(100, b"one")
    pvm_host.schedule_timer(9_000_000, b"two")


def handle_timer(payload):
    pvm_host.emit_event("raw", b"\\xff\\x00")
"""


def empty_chain(**fields: object) -> Chain:
    return Chain(Genesis(**{"chain_id": 1, "proposer": PROPOSER, "accounts": {OWNER: 1_000}, **fields}))


def test_chain_begins_with_its_genesis() -> None:
    """Height 0, the accounts of the genesis, nothing burned, no timers."""
    chain = empty_chain()
    assert (chain.height, chain.head.header.parent) == (0, ZERO_HASH)
    assert chain.head.header.state_root == chain.state_root
    assert chain.economy() == (1_000, 0)
    assert chain.circulating() == chain.balance(OWNER) == 1_000
    assert chain.balance(PROPOSER) == 0
    assert chain.account(PROPOSER) is None
    assert list(chain.timers()) == []
    assert chain.totals() == SchedulerTotals()
    chain.check_invariants()
    chain.close()


def test_chain_is_refused_when_its_genesis_cannot_be() -> None:
    """Before anything exists."""
    with pytest.raises(ConfigurationError, match="unknown mechanism 'lottery'"):
        empty_chain(mechanism="lottery")


def test_block_takes_a_timestamp_when_given_one_that_is_not_in_the_past() -> None:
    """The parent's own time is allowed, a millisecond before it is refused and builds nothing."""
    chain = empty_chain()
    now = chain.head.header.timestamp_ms
    assert chain.build(timestamp_ms=now).block.header.timestamp_ms == now
    with pytest.raises(Rejection) as caught:
        chain.build(timestamp_ms=now - 1)
    assert caught.value.reason is RejectionReason.INVALID_DATA
    assert caught.value.what == f"timestamp {now - 1} ms lies before the parent's {now} ms"
    assert chain.height == 1


def test_block_is_refused_when_its_timestamp_has_more_than_64_bits() -> None:
    """Given, or as the next of many; the chain stands at the last block that has one."""
    with LocalChain(params={"governance.block_interval_ms": 10}) as local:
        chain = local.chain
        with pytest.raises(Rejection, match=f"timestamp {2**64} ms of block 1 lies above"):
            chain.build(timestamp_ms=2**64)
        chain.build(timestamp_ms=2**64 - 1 - 35)
        with pytest.raises(Rejection, match="ms of block 5 lies above") as refusal:
            list(chain.advance_to(100))
        assert refusal.value.reason is RejectionReason.INVALID_DATA
        assert (chain.height, chain.head.header.timestamp_ms) == (4, 2**64 - 1 - 5)
        chain.check_invariants()


def test_advancing_is_refused_when_the_height_lies_behind() -> None:
    """The present height is no way to go, and fine."""
    chain = empty_chain()
    list(chain.advance_to(5))
    assert list(chain.advance_to(5)) == []
    with pytest.raises(Rejection, match="cannot advance to height 4: the chain is at 5"):
        list(chain.advance_to(4))
    assert chain.height == 5


def test_going_back_is_refused_when_the_chain_does_not_hold_the_block() -> None:
    """A height ahead, another chain's block, a block of an abandoned branch."""
    chain, other = empty_chain(), empty_chain(chain_id=2)
    chain.build()
    mark = chain.snapshot()
    chain.build()
    ahead = chain.snapshot()
    chain.revert(mark)
    other.build()
    for foreign in (ahead, other.snapshot(), Snapshot(1, Hash32(bytes(32)))):
        with pytest.raises(Rejection) as caught:
            chain.revert(foreign)
        assert caught.value.reason is RejectionReason.NOT_FOUND
    assert chain.height == 1


@pytest.fixture
def busy() -> Chain:
    """A chain with an actor and two timers, in order before anything is broken."""
    local = LocalChain()
    local.deploy(SCHEDULES, sender=local.accounts[0], value=20 * 10**9)
    local.check_invariants()
    return local.chain


def put(chain: Chain, key: bytes, octets: bytes | None) -> None:
    """Write into the store behind the chain's back."""
    chain.store.commit(chain.height + 1, {key: octets})


def make_money(chain: Chain) -> None:
    address, account = next(chain.accounts())
    put(chain, account_key(address), encode_account(replace(account, balance=amount_octets(1))))


def unburn(chain: Chain) -> None:
    supply, burned = chain.economy()
    put(chain, ECONOMY_KEY, encode_record(Economy(amount_octets(supply), amount_octets(burned - 1))))


def miscount_totals(chain: Chain) -> None:
    totals = chain.totals()
    totals.fired += 1
    put(chain, SCHEDULER_KEY, encode_record(totals))


def miscount_actor(chain: Chain) -> None:
    address, account = next((address, account) for address, account in chain.accounts() if account.code_hash)
    put(chain, account_key(address), encode_account(replace(account, timer_count=1)))


def lose_from_queue(chain: Chain) -> None:
    chain.queue.cancel(next(chain.timers()).timer_id)


def double_in_queue(chain: Chain) -> None:
    chain.queue.place(Pending(500, 77, bytes(32), bytes(20), 500))


def move_record(chain: Chain) -> None:
    timer = next(chain.timers())
    moved = replace(timer, height=timer.height + 1)
    chain.store.commit(
        chain.height + 1,
        {timer_key(timer.height, timer.timer_id): None, timer_key(moved.height, timer.timer_id): encode_timer(moved)},
    )


def misfile_record(chain: Chain) -> None:
    timer = next(chain.timers())
    old, new = timer_key(timer.height, timer.timer_id), timer_key(Height(timer.height + 1), timer.timer_id)
    chain.store.commit(chain.height + 1, {old: None, new: encode_timer(timer)})


@pytest.mark.spec("E-04", "F-58")
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (make_money, "is not the supply"),
        (unburn, "is not the supply"),
        (miscount_totals, "2 timers are scheduled, 1 ended and 2 live"),
        (miscount_actor, "counts 1 timers and has 2"),
        (lose_from_queue, r"height and sequence None in memory, \(100, 0\) in the state"),
        (double_in_queue, r"height and sequence \(500, 77\) in memory, None in the state"),
        (move_record, r"height and sequence \(100, 0\) in memory, \(101, 0\) in the state"),
        (misfile_record, "is due at 100 and found at 101"),
    ],
)
def test_check_notices_when_something_does_not_add_up(busy: Chain, harm: Callable[[Chain], None], words: str) -> None:
    """Each of the sums can fail, and says which one it is."""
    harm(busy)
    with pytest.raises(InvariantError, match=words):
        busy.check_invariants()


@pytest.mark.spec("F-42")
def test_chain_stops_when_queue_and_state_have_parted(busy: Chain) -> None:
    """A due timer that state does not hold is a broken chain: the block is not built."""
    timer = next(busy.timers())
    list(busy.advance_to(99))
    put(busy, timer_key(timer.height, timer.timer_id), None)
    words = f"the queue holds timer 0x{timer.timer_id.hex()} at height 100, the state does not"
    with pytest.raises(InvariantError, match=words):
        busy.build()


def test_chain_stands_where_it_stood_when_a_block_is_interrupted(busy: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt from the keyboard in the middle of a block leaves no half of it."""
    list(busy.advance_to(99))
    before = busy.height, busy.state_root, list(busy.timers())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(busy.engine, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        busy.build()
    monkeypatch.undo()
    assert (busy.height, busy.state_root, list(busy.timers())) == before
    busy.check_invariants()
    assert any(receipt.timer_id for receipt in busy.build().block.receipts)
