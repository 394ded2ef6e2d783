"""Globalbox in state: its clock, its counts, the way of a fire, and that a state that contradicts itself is found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.integration.boxes import crowded_box
from trailboss.execution.globalbox.market import clock_at, enqueue_fire, escrow_address, materialize_fire, take_entry
from trailboss.execution.globalbox.records import (
    check_globalbox,
    collect_ended,
    find_ended,
    first_to_collect,
    leave_globalbox,
    mailbox_entries,
    pointer_key,
    read_globalbox,
    target_key,
    timers_of_target,
    write_globalbox,
)
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockSession, change_count, timer_event
from trailboss.fees import Prices
from trailboss.governance.markets import GLOBALBOX_KEY
from trailboss.mechanisms.base import Follower
from trailboss.model.configs import MarketKind, SchedulerTotals, amount_octets, amount_of, encode_record
from trailboss.model.globalbox import (
    EndedTimer,
    GlobalboxState,
    TimerStatus,
    bid_octets,
    encode_entry,
    standing_octets,
    standing_of,
)
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import RECORD_VERSION, Timer, TimerEnd, encode_timer
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import Cycles, Height
from trailboss.state.branch import BranchStore
from trailboss.state.keys import config_key, ended_key, fire_key, timer_key
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

COST, FUNDS, PRICES = 2_000, 5_000, Prices(5, 3, 2)
ESCROW = system_address(11)
OWNER, TARGET, PARENT = b"\x01" * 20, b"\x02" * 20, b"\x07" * 32


def make_timer(number: int = 0, kind: Trigger = Trigger.HEIGHT, **terms: Any) -> Timer:
    """Return a timer of Globalbox."""
    return Timer(
        version=RECORD_VERSION,
        actor=OWNER,
        height=Height(9),
        timer_id=bytes([number]) * 32,
        sequence=number,
        handler="handle_timer",
        payload=b"payload",
        fee_payer=OWNER,
        gas_limit=Cycles(50_000),
        access_limit=0,
        expires_at=Height(20),
        schedule_block=Height(1),
        terms=GlobalboxTerms(kind=kind, target=TARGET, bid=bid_octets(1 << 96), **terms),
    )


FIRE = QueuedFire(standing_octets(5), 1, 0, Height(9), Height(9), (), "other", b"queued", Cycles(40_000), bid_octets(2))


@dataclass
class Box(Follower):
    """A block's session, as far as Globalbox needs it, over a state that holds nothing else."""

    height: int = 9
    gc_cycles: int = 0
    heard: list[Timer] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    left: list[bytes] = field(default_factory=list)
    ends: SchedulerTotals = field(default_factory=SchedulerTotals)

    def __post_init__(self) -> None:
        self.overlay = Overlay(MemoryStore())
        self.ledger = Ledger(self.overlay)
        self.follower = self
        self.hooks = MARKETS[MarketKind.GLOBALBOX]
        params = SimpleNamespace(
            timers=SimpleNamespace(gc_cycles_per_timer=200),
            globalbox=SimpleNamespace(ended_kept_blocks=6),
            governance=SimpleNamespace(escrow_actor=11),
        )
        config = SimpleNamespace(gc_cycles_per_block=self.gc_cycles, max_cells_per_fire=70)
        rules = SimpleNamespace(params=params, timer=config)
        self.context = SimpleNamespace(height=self.height, parent_state_root=PARENT, rules=rules)
        write_globalbox(self.session, GlobalboxState())
        self.ledger.credit(OWNER, FUNDS)

    read_timer, write_timer, delete_timer = (
        BlockSession.read_timer,
        BlockSession.write_timer,
        BlockSession.delete_timer,
    )

    @property
    def session(self) -> Any:
        return self

    def replace(self, timer: Timer) -> None:
        self.heard.append(timer)

    def take_out(self, timer: Timer) -> None:
        self.left.append(timer.timer_id)

    def emit(self, name: str, timer: Timer, facts: Mapping[str, object]) -> None:
        self.events.append(timer_event(name, timer, facts))

    def put(self, timer: Timer) -> Timer:
        """Hold a timer with everything that is counted of it, and return it."""
        self.session.write_timer(timer)
        account = self.ledger.account(timer.actor)
        self.ledger.put(timer.actor, replace(account, timer_count=account.timer_count + 1))
        change_count(self.session, target_key(TARGET), 1)
        return timer

    def state(self) -> GlobalboxState:
        return read_globalbox(self.overlay.read)

    def record(self, timer: Timer) -> Timer:
        found = self.session.read_timer(timer.height, timer.timer_id)
        assert found is not None
        return found


def decided(timer: Timer, fire: QueuedFire | None = None) -> Any:
    return SimpleNamespace(timer=timer, fire=fire, max_cost=COST, prices=PRICES)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2**63)), min_size=1, max_size=6))
def test_clock_is_the_sum_of_the_weights_of_all_blocks(stretches: list[tuple[int, int]]) -> None:
    """However often W_age changes, and whichever blocks write it down: those in which it changes are enough."""
    state, height, total = GlobalboxState(), 0, 0
    for blocks, weight in stretches:
        for _ in range(blocks):
            height, total = height + 1, total + weight
            assert clock_at(state, height, weight) == total
            if bid_octets(weight) != state.age_weight:
                state = GlobalboxState(
                    clock=standing_octets(clock_at(state, height, weight)),
                    clock_height=height,
                    age_weight=bid_octets(weight),
                )
                assert standing_of(state.clock) == total == clock_at(state, height, weight)


@pytest.mark.spec("G-13", "G-14")
def test_fire_goes_through_queue_and_mailbox_with_every_number_kept() -> None:
    """Queued, materialized with what it was queued with, taken; the height timer is gone then, and remembered."""
    box = Box()
    timer = box.put(make_timer())
    enqueue_fire(box.session, decided(timer, FIRE))
    assert (box.state().queued, box.record(timer).terms.fire) == (1, FIRE)
    materialize_fire(box.session, decided(timer, FIRE))
    assert (box.state().queued, box.state().first, box.state().next) == (0, 0, 1)
    (entry,) = mailbox_entries(box.overlay.read)
    delivered = entry.timer
    assert (delivered.handler, delivered.payload, delivered.gas_limit) == ("other", b"queued", 40_000)
    assert (delivered.terms.bid, delivered.terms.fire) == (bid_octets(2), None)
    amounts = [amount_of(each) for each in (entry.reserved, entry.cycle_basefee, entry.cell_basefee)]
    assert (amounts, entry.cells_limit) == ([COST, 5, 3], 70)
    assert escrow_address(box.session) == ESCROW
    assert (box.ledger.balance(OWNER), box.ledger.balance(ESCROW)) == (FUNDS - COST, COST)
    now = box.record(timer).terms
    assert (now.fire, now.fire_seq, now.in_mailbox, now.last_fire_height) == (None, 1, 1, 9)
    take_entry(box.session, entry)
    assert (list(mailbox_entries(box.overlay.read)), box.left) == ([], [timer.timer_id])
    assert (box.ledger.balance(OWNER), box.ledger.balance(ESCROW)) == (FUNDS - COST, 0)
    assert (timers_of_target(box.overlay.read, TARGET), box.ledger.account(OWNER).timer_count) == (0, 0)
    remembered = find_ended(box.overlay.read, timer.timer_id)
    assert remembered == EndedTimer(
        timer.timer_id, OWNER, TARGET, Trigger.HEIGHT, TimerStatus.COMPLETED, fire_seq=1, last_fire_height=9, ended_at=9
    )
    assert [each.terms.in_mailbox for each in box.heard] == [0, 1, 0]


@pytest.mark.spec("G-14")
def test_a_fire_that_is_not_queued_is_not_materialized() -> None:
    """Neither twice, nor as another one, nor is one queued twice."""
    box = Box()
    timer = box.put(make_timer(kind=Trigger.STATE_WATCH))
    with pytest.raises(InvariantError, match="has no such fire in Globalbox"):
        materialize_fire(box.session, decided(timer, FIRE))
    enqueue_fire(box.session, decided(timer, FIRE))
    with pytest.raises(InvariantError, match="cannot enter Globalbox again"):
        enqueue_fire(box.session, decided(timer, FIRE))
    with pytest.raises(InvariantError, match="has no such fire in Globalbox"):
        materialize_fire(box.session, decided(timer, replace(FIRE, cursor=1)))
    materialize_fire(box.session, decided(timer, FIRE))
    with pytest.raises(InvariantError, match="has no such fire in Globalbox"):
        materialize_fire(box.session, decided(timer, FIRE))


def test_an_entry_is_taken_in_its_turn_only() -> None:
    """The second of two stays where it is until the first has gone."""
    box = Box()
    for number in (0, 1):
        timer = box.put(make_timer(number))
        enqueue_fire(box.session, decided(timer, FIRE))
        materialize_fire(box.session, decided(timer, FIRE))
    first, second = mailbox_entries(box.overlay.read)
    with pytest.raises(InvariantError, match="fire 1 is taken out of a mailbox that begins with 0"):
        take_entry(box.session, second)
    take_entry(box.session, first)
    take_entry(box.session, second)


def test_leaving_takes_the_queued_fire_along_and_remembers_how() -> None:
    """Cancelled is cancelled; whatever else ends a timer completes it."""
    box = Box()
    ends = {TimerEnd.CANCELLED: TimerStatus.CANCELLED, TimerEnd.EXPIRED: TimerStatus.COMPLETED}
    for number, (end, status) in enumerate(ends.items()):
        timer = box.put(make_timer(number))
        enqueue_fire(box.session, decided(timer, FIRE))
        leave_globalbox(box.session, box.record(timer), end)
        ended = find_ended(box.overlay.read, timer.timer_id)
        assert ended is not None
        assert (ended.status, box.state().queued, box.state().next_ended) == (status, 0, number + 1)
    for timer, what in ((make_timer(7), "falls to -1"), (replace(make_timer(8), terms=None), "has no GlobalboxTerms")):
        box.session.write_timer(timer)
        with pytest.raises(InvariantError, match=what):
            leave_globalbox(box.session, timer, TimerEnd.EXPIRED)


@pytest.mark.spec("G-22")
@pytest.mark.parametrize(
    ("gc_cycles", "removed", "collected"), [(0, 0, 16), (200 * 30, 0, 30), (200 * 30, 10, 20), (200 * 30, 29, 16)]
)
def test_collection_goes_as_far_as_the_clean_up_budget(gc_cycles: int, removed: int, collected: int) -> None:
    """What the deliveries have removed is taken off, and sixteen go in any case."""
    third = removed // 3
    ends = SchedulerTotals(expired=third, unfunded=removed - third, cancelled=9)
    box = Box(gc_cycles=gc_cycles, ends=ends)
    for number in range(40):
        leave_globalbox(box.session, box.put(make_timer(number)), TimerEnd.FIRED)
    assert first_to_collect(box.context.rules, box.overlay.read) == 16
    box.context.height = 15
    collect_ended(box.session)
    assert box.state().first_ended == 0
    box.context.height = 16
    collect_ended(box.session)
    assert box.state().first_ended == collected
    assert [find_ended(box.overlay.read, bytes([number]) * 32) is None for number in (collected - 1, collected)] == [
        True,
        False,
    ]


def test_a_state_without_globalbox_is_refused() -> None:
    """Nor is one whose mailbox or memory has holes."""
    empty = Overlay(MemoryStore())
    with pytest.raises(InvariantError, match="holds no record of Globalbox"):
        read_globalbox(empty.read)
    empty.write(GLOBALBOX_KEY, encode_record(GlobalboxState(next=1, next_ended=1)))
    with pytest.raises(InvariantError, match=r"holds no fire 0, of 0\.\.1"):
        list(mailbox_entries(empty.read))
    with pytest.raises(InvariantError, match="holds no ended timer 0"):
        first_to_collect(Box().context.rules, empty.read)


Changes = dict[bytes, bytes | None]
Break = Callable[[Any], Changes]


@pytest.fixture(scope="module")
def crowd() -> Iterator[Any]:
    """A chain in which fires are queued, in the mailbox and remembered."""
    with crowded_box() as chain:
        yield chain.chain


def _state(chain: Any, **changes: int) -> Changes:
    kept = read_globalbox(chain.store.read)
    moved = {name: getattr(kept, name) + change for name, change in changes.items()}
    return {GLOBALBOX_KEY: encode_record(msgspec.structs.replace(kept, **moved))}


def _timer(chain: Any, **changes: Any) -> Changes:
    timer = next(each for each in chain.timers() if each.terms.fire is None)
    broken = replace(timer, terms=replace(timer.terms, **changes))
    return {timer_key(timer.height, timer.timer_id): encode_timer(broken)}


def _entry(chain: Any, **changes: Any) -> Changes:
    first, second = list(mailbox_entries(chain.store.read))[:2]
    given = {name: getattr(first, name) if value is ... else value for name, value in changes.items()}
    return {fire_key(second.deliver_seq): encode_entry(replace(second, **given))}


def _ended(chain: Any, **changes: Any) -> Changes:
    kept = read_globalbox(chain.store.read)
    number = kept.next_ended - 1
    ended = msgspec.msgpack.decode(chain.store.read(ended_key(number)), type=EndedTimer)
    broken = replace(ended, **changes)
    return {ended_key(number): encode_record(broken), pointer_key(broken.timer_id): number.to_bytes(8, "big")}


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (lambda chain: _state(chain, queued=1), "Globalbox counts"),
        (lambda chain: _state(chain, next=1), "fires in the mailbox are not those numbered"),
        (lambda chain: _state(chain, first_ended=1), "ended timers are not those numbered"),
        (lambda chain: _timer(chain, in_mailbox=3), "counts 3 fires in the mailbox and has"),
        (lambda chain: _timer(chain, kind=Trigger.HEIGHT, fire_seq=2), "has more than one fire"),
        (lambda chain: _entry(chain, deliver_seq=0), "fire 0 lies in the mailbox as number"),
        (lambda chain: _entry(chain, deliver_id=...), "two fires with one deliver_id"),
        (lambda chain: _entry(chain, reserved=amount_octets(_escrow(chain))), "have been paid .* base units, and"),
        (lambda chain: {target_key(next(chain.timers()).target): b"\x00\x00\x00\x63"}, "counts 99 timers"),
        (lambda chain: _ended(chain, ended_at=0), "lies behind one that ended later"),
        (lambda chain: _ended(chain, timer_id=next(chain.timers()).timer_id), "is live and remembered as ended"),
        (
            lambda chain: {config_key(b"globalbox:ended:" + _last_ended(chain).timer_id): None},
            "is not found under its id",
        ),
    ],
)
def test_contradiction_is_found_when_a_record_is_wrong(crowd: Any, break_it: Break, complaint: str) -> None:
    """One number, one record or one pointer at a time, in a state that is right otherwise."""
    addresses = [address for address, _ in crowd.accounts()]
    check_globalbox(crowd.store, crowd.timers(), addresses, _escrow(crowd))
    broken = BranchStore(crowd.store, break_it(crowd))
    timers = [
        BlockSession.read_timer(SimpleNamespace(overlay=broken), each.height, each.timer_id) for each in crowd.timers()
    ]
    with pytest.raises(InvariantError, match=complaint):
        check_globalbox(broken, timers, addresses, _escrow(crowd))


def test_contradiction_is_found_when_a_target_has_no_account_or_a_timer_no_terms(crowd: Any) -> None:
    """Both are handed in from outside."""
    with pytest.raises(InvariantError, match="has timers and no account"):
        check_globalbox(crowd.store, crowd.timers(), [], _escrow(crowd))
    with pytest.raises(InvariantError, match="is no timer of Globalbox"):
        check_globalbox(crowd.store, [replace(each, terms=None) for each in crowd.timers()], [], _escrow(crowd))


def test_escrow_holds_what_waiting_entries_have_been_paid(crowd: Any) -> None:
    """Exactly; less is a contradiction, and more is what somebody has sent there."""
    entries = list(mailbox_entries(crowd.store.read))
    reserved = sum(amount_of(entry.reserved) for entry in entries)
    assert reserved == _escrow(crowd) > 0
    addresses = [address for address, _ in crowd.accounts()]
    check_globalbox(crowd.store, crowd.timers(), addresses, reserved + 1)
    with pytest.raises(InvariantError, match=f"paid {reserved} base units, and {reserved - 1} are there"):
        check_globalbox(crowd.store, crowd.timers(), addresses, reserved - 1)


def _escrow(chain: Any) -> int:
    return int(chain.balance(ESCROW))


def _last_ended(chain: Any) -> EndedTimer:
    number = read_globalbox(chain.store.read).next_ended - 1
    ended: EndedTimer = msgspec.msgpack.decode(chain.store.read(ended_key(number)), type=EndedTimer)
    return ended


def test_crowd_is_one(crowd: Any) -> None:
    """The state that is broken above has something of everything."""
    kept = read_globalbox(crowd.store.read)
    assert kept.queued
    assert kept.next - kept.first > 1
    assert kept.next_ended - kept.first_ended > 1
