"""What the index answers, where a random history does not come by."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.unit.index.conftest import Open
from tests.unit.index.made import (
    GENESIS,
    MadeChain,
    address,
    ending,
    lane_decisions,
    made_fire,
    moving,
    scheduling,
    timer_id,
)
from tests.unit.index.oracle import Oracle, compare
from trailboss.index import EventFilter, EventPlace, Index, mentions, read_events
from trailboss.index.index import WRITTEN_BLOCKS, WRITTEN_ROWS
from trailboss.index.pages import PAGE_MAX
from trailboss.index.schema import SPAN_BLOCKS
from trailboss.model import events as names
from trailboss.primitives.errors import InvariantError, Rejection
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, U128_MAX
from trailboss.testing import LocalChain
from trailboss.views import explain_timer
from trailboss.views.explain.life import events_since
from trailboss.views.timer_list import TimerFilter, list_timers

BUSY = """
import pvm_host

def schedule(payload):
    now = pvm_host.block_height()
    for distance in (1, 2, 2, 40):
        pvm_host.schedule_timer_ex(now + distance, b"", gas_limit=50_000)
    pvm_host.schedule_timer_ex(now + 3, b"", gas_limit=50_000, expires_at=now + 1)
    pvm_host.cancel_timer(pvm_host.schedule_timer(now + 3, b""))

def handle_timer(payload):
    pvm_host.emit_event("ticked", b"")
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 3, b"", gas_limit=50_000)
"""


def check(index: Index, chain: MadeChain, upto: int | None = None) -> None:
    """Check every answer at a height, the head's unless told otherwise."""
    height = chain.height if upto is None else upto
    compare(index, Oracle(chain.blocks[: height + 1], chain.genesis.accounts), Random(height))


def busy_chain() -> MadeChain:
    """Return a chain of transfers and of timers that ended in every way."""
    chain = MadeChain()
    chain.transfer([(1, 2), (2, 3), (3, 3)])
    chain.fire((), range(12))
    chain.fire(range(4), range(20, 23))
    late = ending(names.TIMER_CANCELLED_BY_DELAY, 4, address(4), refund=0, penalty=77)
    unfunded = ending(names.TIMER_UNFUNDED, 5, address(5), fee_payer=address(9), required=9, available=1)
    expired = ending(names.TIMER_EXPIRED, 6, address(6), expires_at=9, current_height=10)
    chain.add(events=(late, unfunded, expired))
    chain.idle(3)
    chain.fire([7, 8], [30])
    return chain


def extreme_chain() -> MadeChain:
    """Return a chain of amounts and heights that SQLite has no integers for."""
    chain, payer = MadeChain(), address(1)
    fees = {"max_fee_per_cycle": U128_MAX // 4, "max_priority_fee_per_cycle": 2**63}
    heights = (5, 2**63 - 1, 2**63, U64_MAX - 1, U64_MAX)
    chain.call(payer, *(scheduling(number, payer, height, **fees) for number, height in enumerate(heights)))
    for number in range(3):
        cost = {"fee_burned": 2**100 + number, "tip": 2**64, "refund": 2**70}
        chain.add(receipts=(made_fire(number, payer, **cost),), cycle_basefee=2**90 + number)
    chain.add(cycle_basefee=2**63)
    return chain


def odd_chain() -> MadeChain:
    """Return a chain with a timer that was moved forth and back, an id that was used again, and a lane that rests."""
    chain, actor = MadeChain(), address(1)
    chain.call(actor, scheduling(1, actor, 50), scheduling(2, actor, 50), scheduling(3, actor, 50))
    chain.call(actor, moving(1, actor, 50, 60), moving(1, actor, 60, 50), moving(2, actor, 50, 60))
    chain.call(actor, scheduling(4, actor, 50), moving(4, actor, 50, 9), moving(2, actor, 60, 70))
    chain.call(actor, ending(names.TIMER_CANCELLED, 2, actor, refund=0))
    chain.add(decisions=lane_decisions(9, 8))
    chain.idle(2)
    chain.call(actor, scheduling(2, address(2), 80, target=address(3)))
    chain.add(receipts=(made_fire(4, actor, scheduling(5, actor, 90)), made_fire(2, address(2))))
    chain.call(actor, scheduling(2, actor, 99), ending(names.TIMER_EXTENDED, 2, actor, expires_at=100))
    chain.add(decisions=lane_decisions(8, 9))
    chain.add(decisions=lane_decisions(9, 9))
    chain.idle(2)
    return chain


@pytest.mark.parametrize("made", [busy_chain, extreme_chain])
def test_answers_are_right_when_the_index_is_ahead_of_who_asks(made: Callable[[], MadeChain], opened: Open) -> None:
    """Of every block that somebody may have a view of."""
    chain = made()
    index = opened(chain)
    for height in range(chain.height + 1):
        check(index, chain, height)


@pytest.mark.parametrize("made", [busy_chain, extreme_chain, odd_chain])
def test_answers_are_right_when_blocks_are_taken_back_one_by_one(made: Callable[[], MadeChain], opened: Open) -> None:
    """Of the head and of each block below it that becomes the head, and when they have come again."""
    chain = made()
    index = opened(chain)
    check(index, chain)
    for height in reversed(range(chain.height)):
        index.revert(height)
        assert index.height == height
        check(index, chain, height)
    for block in chain.blocks[1:]:
        index.apply([block])
        check(index, chain, block.height)


def test_quiet_blocks_are_found_by_their_hash_on_whatever_branch_they_are(opened: Open) -> None:
    """Thousands of them, across rows of the table, after going back into their midst and on another way."""
    chain = MadeChain()
    chain.idle(1_543)
    chain.transfer([(1, 2)])
    chain.idle(20)
    index = opened(chain)
    for block in (*chain.blocks[::170], *chain.blocks[-22:]):
        assert index.block_height(block.hash, chain.blocks) == block.height
        assert index.search(block.hash.hex()[:16], chain.blocks).blocks == (block.height,)
        assert index.search(str(block.hash), chain.blocks).blocks == (block.height,)
    fork = 512 + 3
    other = chain.branch(fork, b"other")
    other.transfer([(3, 4)])
    other.idle(512)
    index.revert(fork)
    assert index.block_height(chain.blocks[fork + 1].hash, chain.blocks[: fork + 1]) is None
    index.apply(other.blocks[fork + 1 :])
    for block in (other.blocks[fork], other.blocks[fork + 1], other.blocks[fork + 2], other.blocks[-1]):
        assert index.block_height(block.hash, other.blocks) == block.height
    assert index.block_height(chain.blocks[fork + 2].hash, other.blocks) is None
    # A view of a lower height does not have the blocks above it.
    assert index.block_height(other.blocks[-1].hash, other.blocks[:-1]) is None


def test_charts_are_right_when_points_stand_for_hundreds_of_blocks(opened: Open) -> None:
    """Sums and maxima of whole spans and of the blocks around them, quiet or not, after going back as well."""
    dice, chain = Random(5), MadeChain()
    for _ in range(60):
        chain.idle(dice.randint(0, 30))
        chain.transfer([(1, 2)] * dice.randint(1, 3))
        if dice.random() < 0.3:
            chain.add(cycle_basefee=dice.randint(1, 10**6))
    index = opened(chain)
    for fork in (chain.height, 3 * SPAN_BLOCKS - 1, 2 * SPAN_BLOCKS + 40, 2 * SPAN_BLOCKS):
        index.revert(fork)
        oracle = Oracle(chain.blocks[: fork + 1], ())
        for first in (0, 1, SPAN_BLOCKS - 1, SPAN_BLOCKS, SPAN_BLOCKS + 9):
            for last in (fork, fork - 7, 2 * SPAN_BLOCKS - 1):
                for points in (1, 3):
                    spans = index.statistics(first, last, points, fork)
                    assert [span for span in spans if span != oracle.span(span.first, span.last)] == []
                    assert (spans[0].first, spans[-1].last) == (first, last)
                    assert len(spans) <= points


def test_lineage_is_a_chain_when_every_fire_schedules_the_next_timer(opened: Open) -> None:
    """Its links are numbered, and pages of it reach both ends."""
    chain, links = MadeChain(), 400
    chain.fire((), [0])
    for link in range(1, links):
        chain.fire([link - 1], [link], actors=1)
    index, upto = opened(chain), chain.height
    middle = index.lineage(timer_id(250), upto)
    assert middle is not None
    assert (middle.root, middle.family_size, middle.place, middle.children) == (timer_id(0), links, 250, 1)
    assert middle.timer.generation == 250
    assert middle.timer.cause.timer_id == timer_id(249)
    up = index.ancestors(timer_id(250), upto, offset=240, limit=20)
    assert ([timer.timer_id for timer in up.items], up.total) == ([timer_id(9 - link) for link in range(10)], 250)
    down = index.family(timer_id(250), upto, offset=251, limit=3)
    assert [timer.timer_id for timer in down.items] == [timer_id(251), timer_id(252), timer_id(253)]
    assert index.family(timer_id(250), upto - 100).total == links - 100
    for ask in (index.family, index.ancestors, index.children):
        assert ask(Hash32(bytes(32)), upto).total == 0
    assert index.lineage(bytes(32), upto) is None


def test_timers_agree_with_the_chain_when_they_fire_expire_move_and_are_cancelled(path: Path) -> None:
    """Lists of ended and live timers, a timer's life and all events are what the chain finds by reading itself."""
    with LocalChain() as local:
        alice, chain = local.accounts[0], local.chain
        busy = local.deploy(BUSY, sender=alice, value=100 * 10**9)
        busy.call("schedule", sender=alice, check=True)
        local.mine(5)
        live = local.timers()
        local.hold(live[0].timer_id, until=60)
        local.hold(live[1].timer_id, until=61)
        local.force(live[1].timer_id)
        local.drop(local.timers()[0].timer_id)
        local.set_balance(busy.address, 2**100)
        local.mine(2)
        index, upto = Index.open(path, chain), chain.height
        try:
            compare(index, Oracle(chain.blocks[:], chain.genesis.accounts), Random(0))
            for state in ("fired", "expired", "unfunded", "cancelled"):
                wanted = TimerFilter(state=state, actor=busy.address)
                ended = index.ended_timers(wanted, upto)
                listed = list(list_timers(chain, wanted))
                assert [(timer.timer_id, timer.height, timer.ended_at) for timer in ended.items] == [
                    (entry.timer_id, entry.height, entry.ended_at) for entry in listed
                ]
                for timer in ended.items:
                    steps = explain_timer(chain, timer.timer_id).steps
                    heights = sorted({step.block_height for step in steps})
                    assert list(index.timer_heights(timer.timer_id, upto)) == heights
            wanted = TimerFilter(payer=busy.address)
            alive = [entry.timer_id for entry in list_timers(chain, wanted)]
            assert list(index.live_timers(wanted, upto).items) == alive
            places = index.events(EventFilter(), upto, limit=PAGE_MAX).items
            assert read_events(chain.blocks, places) == list(events_since(chain))
            assert index.totals(upto).live == chain.timer_count()
            # Both moves are taken back, and made again.
            back = next(place.height for place in index.events(EventFilter(name=names.TIMER_MOVED), upto).items) - 1
            index.revert(back)
            compare(index, Oracle(chain.blocks[: back + 1], chain.genesis.accounts), Random(1))
            index.apply(chain.blocks[back + 1 :])
            compare(index, Oracle(chain.blocks[:], chain.genesis.accounts), Random(2))
        finally:
            index.close()


def test_blocks_are_refused_whole_when_one_does_not_continue_the_index(opened: Open) -> None:
    """What is not the next block, or on another branch, changes nothing, not even by the blocks before it."""
    chain = busy_chain()
    other = chain.branch(3, b"other")
    other.transfer([(1, 2)])
    index = opened(chain)
    chain.fire([9], [40])
    with pytest.raises(InvariantError, match="does not continue the index"):
        index.apply([chain.blocks[-1], chain.blocks[2]])
    with pytest.raises(InvariantError, match=r"block 4, child of .* does not continue"):
        index.apply(other.blocks[4:])
    check(index, chain, chain.height - 1)
    index.apply([])
    index.apply(chain.blocks[-1:])
    check(index, chain)
    for height in (-1, chain.height + 1):
        with pytest.raises(InvariantError, match="cannot go back to block"):
            index.revert(height)
    index.revert(chain.height)
    check(index, chain)


def test_pages_are_empty_when_offsets_lie_beyond_the_end_or_limits_are_none(opened: Open) -> None:
    """However far, and never more than a page."""
    chain = busy_chain()
    index, upto = opened(chain), chain.height
    wanted = TimerFilter(state="all")
    for offset, limit in ((2**70, 10), (100, 10), (0, 0), (0, -5)):
        for page in (
            index.ended_timers(wanted, upto, offset, limit),
            index.events(EventFilter(), upto, offset, limit),
            index.transactions(upto, offset, limit),
            index.receipts(address(1), upto, offset=offset, limit=limit),
        ):
            assert page.items == ()
            assert page.total > 0
        assert index.payers(upto, offset, limit) == ()
    assert len(index.events(EventFilter(), upto, -3, 2).items) == 2


def test_search_finds_accounts_of_genesis_and_refuses_what_is_no_beginning(opened: Open) -> None:
    """Accounts that hold something from genesis on are known before any block names them."""
    chain = busy_chain()
    index = opened(chain)
    (account,) = GENESIS.accounts
    assert index.search(account.hex()[:7].upper(), chain.blocks).addresses == (account,)
    assert index.search("0x" + account.hex(), chain.blocks).addresses == (account,)
    for digits in ("", "0x", "xyz", "0x12 34", "é"):
        with pytest.raises(Rejection, match="give hexadecimal digits"):
            index.search(digits, chain.blocks)
    assert len(index.search("0", [chain.blocks[0]] * 5).timers) <= 12


def test_answers_are_empty_when_nobody_knows_what_is_asked_for(opened: Open) -> None:
    """Addresses, names, ids and hashes that no block has named."""
    chain = MadeChain()
    index = opened(chain)
    stranger = address(999)
    assert index.receipts(stranger, 0).total == 0
    assert index.spend(stranger, 0) == ()
    assert index.unfunded_payers(0, 0) == ()
    for wanted in (TimerFilter(state="fired", actor=stranger), TimerFilter(state="fired")):
        assert index.ended_timers(wanted, 0).total == 0
    assert index.live_timers(TimerFilter(payer=stranger), 0).total == 0
    for events in (EventFilter(name="none"), EventFilter(emitter=stranger), EventFilter(timer_id=timer_id(1))):
        assert index.events(events, 0).total == 0
    assert index.timer_heights(timer_id(1), 0) == ()
    assert index.transaction(Hash32(bytes(32)), 0) is None
    assert index.statistics(5, 9, 10, 0) == ()


def test_event_mentions_the_addresses_in_its_own_fields_only() -> None:
    """An event of an actor mentions nobody, whatever its bytes are."""
    unfunded = ending(names.TIMER_UNFUNDED, 5, address(5), fee_payer=address(9), required=9, available=1)
    assert mentions(unfunded) == (address(9),)
    assert mentions(names.EventRecord("noted", bytes(address(1)), unfunded.data)) == ()


def test_events_go_on_from_a_place_when_they_are_read_in_pages_while_the_chain_grows(opened: Open) -> None:
    """A reader that goes on after the last event it has seen gets every event once."""
    chain = busy_chain()
    index = opened(chain)
    seen: list[EventPlace] = []
    for upto in (2, 3, 3, 5, chain.height, chain.height):
        begin = seen[-1] if seen else EventPlace(0, -1)
        wanted = EventFilter(since=begin.height, since_index=begin.index + 1)
        seen += index.events(wanted, upto, limit=7).items
    wanted = EventFilter(since=seen[-1].height, since_index=seen[-1].index + 1)
    seen += index.events(wanted, chain.height).items
    assert seen == list(index.events(EventFilter(), chain.height).items)


def test_blocks_wait_to_be_written_until_a_read_or_until_they_are_many(opened: Open) -> None:
    """The index has them all the same: it continues from them, and goes back behind them."""
    chain = busy_chain()
    index = opened(chain)
    written = chain.height
    for _ in range(WRITTEN_BLOCKS - 1):
        index.apply([chain.transfer([(1, 2)])])
    assert (index.height, index._writer.height) == (chain.height, written)
    index.apply([chain.transfer([(2, 3)])])
    assert index._writer.height == chain.height
    index.apply([chain.transfer([(3, 4)])])
    assert index.totals(chain.height).transactions == Oracle(chain.blocks, ()).total(0, chain.height).transactions
    assert index._writer.height == chain.height
    index.apply([chain.transfer([(4, 5)])])
    index.revert(chain.height - 3)
    check(index, chain, chain.height - 3)
    index.apply(chain.blocks[-3:])
    check(index, chain)
    index.apply([chain.transfer([(1, 2)] * WRITTEN_ROWS)])
    index._behind.submit(int).result()  # the thread that writes what is much has done so
    assert index._writer.height == chain.height
    check(index, chain)
