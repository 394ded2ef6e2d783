"""Development chains: timers that are held back, brought forward and dropped, under all mechanisms."""

from pathlib import Path

import pytest

from tests.integration import auctions, boxes
from tests.integration.development import (
    AFTER_TRANSACTIONS,
    MECHANISMS,
    assert_reverted,
    fired_at,
    open_local,
    scheduled,
)
from tests.integration.helpers import (
    answers,
    deploy_puppet,
    events_about,
    fired_ids,
    fires,
    only_event,
    perform,
    schedule,
    script,
    step,
    totals,
)
from trailboss.chain.export import export_chain, import_chain
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.model.transactions import ExtendTimer, MoveTimer
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32, system_address
from trailboss.primitives.units import U64_MAX
from trailboss.testing import LocalChain, RevertedError
from trailboss.views.timer_list import ALL, TimerFilter, list_timers

pytestmark = pytest.mark.trailboss(preset="minimal")

NO_SUCH = b"\x05" * 32


def move(chain: LocalChain, timer_id: bytes, height: int) -> None:
    """Move a timer, in a block of its own or in the open one."""
    chain.system(MoveTimer(timer_id, height), check=True)


@pytest.mark.parametrize("until", [5, 19, 21, 33, 700])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_fires_at_its_new_height_when_it_is_moved(mechanism: str, until: int) -> None:
    """It is the same timer, its record and its index have the height, and its end is an ordinary one."""
    with open_local(mechanism) as chain:
        timer = scheduled(chain, 20)
        receipt = chain.hold(timer.timer_id, until=until)
        (event,) = receipt.events
        assert (event.name, event.emitter, event.timer_id) == ("timer.moved", system_address(10), timer.timer_id)
        assert event.data == {"timer_id": bytes(timer.timer_id), "from_height": 20, "height": until}
        (moved,) = chain.timers()
        assert (moved.timer_id, moved.height, moved.will_expire_unfired) == (timer.timer_id, until, False)
        assert [view.timer_id for view in chain.timers(height=until)] == [timer.timer_id]
        assert chain.timers(height=20) == []
        assert chain.chain.queue.height_of(timer.timer_id) == until
        chain.advance_to(until - 1)
        assert fired_at(chain, timer.timer_id) is None
        chain.mine(3)
        assert fired_at(chain, timer.timer_id) == until
        assert only_event(chain, "timer.fired").data["blocks_deferred"] == 0
        assert totals(chain) == (1, 1, 0, 0, 0)


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "globalbox"])
def test_timer_is_held_to_the_last_height_at_which_it_may_fire_unless_told_otherwise(mechanism: str) -> None:
    """And there it does fire."""
    with open_local(mechanism) as chain:
        timer = scheduled(chain, 20, expires_at=26)
        chain.hold(timer.timer_id)
        assert chain.timers()[0].height == 26
        chain.advance_to(30)
        assert fired_at(chain, timer.timer_id) == 26


def test_timer_is_held_for_ever_when_it_never_expires() -> None:
    """In the auction the last height is the last of all, and it can be called back from there."""
    with open_local("auction") as chain:
        timer = scheduled(chain, 20)
        chain.hold(timer.timer_id)
        assert chain.timers()[0].height == U64_MAX
        chain.advance_to(10_000)
        assert fired_at(chain, timer.timer_id) is None
        chain.force(timer.timer_id)
        chain.mine()
        assert fired_at(chain, timer.timer_id) == chain.height == 10_002


@pytest.mark.parametrize("mechanism", AFTER_TRANSACTIONS)
def test_timer_fires_at_the_end_of_the_same_block_when_it_is_forced(mechanism: str) -> None:
    """Where a block's timers run after its transactions."""
    with open_local(mechanism) as chain:
        timer = scheduled(chain, 400)
        chain.mine(2)
        receipt = chain.force(timer.timer_id)
        assert receipt.block_height == chain.height == fired_at(chain, timer.timer_id)
        assert events_about(chain, timer.timer_id)[:2] == ["timer.scheduled", "timer.moved"]
        assert chain.timers() == []
        assert totals(chain) == (1, 1, 0, 0, 0)


def test_timer_fires_in_the_next_block_when_it_is_forced_in_the_auction() -> None:
    """Its timers run before the transactions of their block."""
    with open_local("auction") as chain:
        timer = scheduled(chain, 400)
        receipt = chain.force(timer.timer_id)
        assert (fired_at(chain, timer.timer_id), chain.timers()[0].height) == (None, receipt.block_height + 1)
        chain.mine()
        assert fired_at(chain, timer.timer_id) == receipt.block_height + 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_is_gone_without_running_when_it_is_dropped(mechanism: str) -> None:
    """As one that governance cancels; a second time there is nothing to drop."""
    with open_local(mechanism) as chain:
        timer = scheduled(chain, 20)
        receipt = chain.drop(timer.timer_id)
        assert [event.name for event in receipt.events] == ["timer.cancelled_by_governance"]
        chain.advance_to(25)
        assert totals(chain) == (1, 0, 0, 0, 1)
        for interfere in (chain.drop, chain.hold, chain.force):
            with pytest.raises(Rejection, match=f"there is no live timer {timer.timer_id}"):
                interfere(timer.timer_id)


# The calendar


HEIGHTS = (5, 9, 13, 20, 21, 600)
"""In a ring of 8 and epochs of 4, seen from block 4: in the ring, in the epochs, and beyond them."""


@pytest.mark.parametrize("after", HEIGHTS)
@pytest.mark.parametrize("before", HEIGHTS)
def test_timer_can_be_moved_between_any_two_places_of_the_calendar(chain: LocalChain, before: int, after: int) -> None:
    """Neighbours stay where they are, and everybody fires once, in order of height and then of insertion."""
    actor = deploy_puppet(chain)
    heights = [before, before, *(height for height in HEIGHTS if height != before)]
    ids = answers(perform(actor, *(step("schedule_timer_ex", height, b"", gas_limit=20_000) for height in heights)))
    chain.mine()
    move(chain, ids[0], after)
    expected = sorted((height, place) for place, height in enumerate([after, *heights[1:]]))
    view = chain.chain.queue
    assert view.height_of(ids[0]) == after
    for height in set(heights):
        at_height = tuple(ids[place] for found, place in expected if found == height)
        assert view.ids_at(height) == at_height
        assert tuple(timer.timer_id for timer in chain.timers(height=height)) == at_height
    chain.advance_to(max(HEIGHTS))
    assert fired_ids(chain) == [ids[place] for _, place in expected]


def test_timer_can_be_moved_several_times_in_one_block(chain: LocalChain) -> None:
    """Back and forth, and into the present block at last; each time an event."""
    first, second = (scheduled(chain, height) for height in (20, 21))
    with chain.one_block():
        for height in (500, 6, 20, 70):
            move(chain, first.timer_id, height)
        move(chain, second.timer_id, 70)
        move(chain, first.timer_id, chain.height + 1)
    moves = [(event.data["from_height"], event.data["height"]) for event in chain.events("timer.moved")]
    assert moves == [(20, 500), (500, 6), (6, 20), (20, 70), (21, 70), (70, chain.height)]
    assert fired_at(chain, first.timer_id) == chain.height
    assert [timer.height for timer in chain.timers()] == [70]


def test_timer_can_be_moved_and_then_changed_in_the_same_block(chain: LocalChain) -> None:
    """Extended where it is now, and cancelled where it is now."""
    kept, dropped = (scheduled(chain, 20, expires_at=30) for _ in range(2))
    with chain.one_block():
        for timer in (kept, dropped):
            move(chain, timer.timer_id, 29)
        chain.system(ExtendTimer(kept.timer_id, 50), check=True)
        chain.drop(dropped.timer_id)
        move(chain, kept.timer_id, 50)
    (left,) = chain.timers()
    assert (left.timer_id, left.height, left.expires_at) == (kept.timer_id, 50, 50)
    chain.advance_to(50)
    assert fired_at(chain, kept.timer_id) == 50


def test_order_of_a_height_is_that_of_insertion_when_timers_have_been_moved_there(chain: LocalChain) -> None:
    """A timer keeps its place in it, wherever it was meanwhile."""
    timers = [scheduled(chain, height) for height in (30, 20, 25, 20)]
    for timer in (timers[2], timers[0]):
        move(chain, timer.timer_id, 20)
    assert [timer.timer_id for timer in chain.timers(height=20)] == [timer.timer_id for timer in timers]
    chain.advance_to(20)
    assert fired_ids(chain) == [timer.timer_id for timer in timers]


def test_timer_fires_when_it_is_moved_to_where_it_may(chain: LocalChain) -> None:
    """One that was due only after its expiry would have ended without running."""
    timer = scheduled(chain, 20, expires_at=15)
    assert timer.will_expire_unfired
    chain.hold(timer.timer_id)
    assert (chain.timers()[0].height, chain.timers()[0].will_expire_unfired) == (15, False)
    chain.advance_to(21)
    assert (fired_at(chain, timer.timer_id), totals(chain)) == (15, (1, 1, 0, 0, 0))


@pytest.mark.parametrize("mechanism", AFTER_TRANSACTIONS)
def test_timer_can_be_held_in_the_block_in_which_it_would_fire(mechanism: str) -> None:
    """An actor whose timer is due in every block is held too: transactions come first."""
    with open_local(mechanism) as chain:
        timer = scheduled(chain, 6)
        chain.advance_to(5)
        receipt = chain.hold(timer.timer_id, until=9)
        assert (receipt.block_height, fired_at(chain, timer.timer_id)) == (6, None)
        chain.advance_to(9)
        assert fired_at(chain, timer.timer_id) == 9


# Refusals


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_move_is_refused_when_the_height_is_past_or_beyond_the_expiry(mechanism: str) -> None:
    """Both limits are named; right at them it is taken."""
    with open_local(mechanism) as chain:
        expiry = {} if mechanism == "auction" else {"expires_at": 40}
        timer = scheduled(chain, 20, **expiry)
        least = chain.height + (2 if mechanism == "auction" else 1)
        for height in (0, least - 1):
            receipt = chain.system(MoveTimer(timer.timer_id, height))
            chain.reorg(1)
            what = (
                f"timer {timer.timer_id} is moved to height {height}, and {least} is the first at which it can fire now"
            )
            assert_reverted(receipt, 1202, what)
        if expiry:
            receipt = chain.system(MoveTimer(timer.timer_id, 41))
            what = f"timer {timer.timer_id} is moved to height 41, and 40 is the last at which it may fire"
            assert_reverted(receipt, 1202, what)
            with pytest.raises(RevertedError, match="40 is the last at which it may fire"):
                chain.hold(timer.timer_id, until=41)
        assert chain.timers()[0].height == 20
        chain.force(timer.timer_id)
        chain.mine()
        assert totals(chain) == (1, 1, 0, 0, 0)


@pytest.mark.spec("F-47")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_move_is_refused_when_the_timer_would_fire_in_the_block_that_creates_it(mechanism: str) -> None:
    """Its id is known before it is there, so a transaction of the same block can name it."""
    with open_local(mechanism) as chain:
        scheduled(chain, 20)
        mark = chain.snapshot()
        timer = scheduled(chain, 30)
        transactions = chain.block().transactions
        chain.revert(mark)
        here = chain.height + 1
        with chain.one_block():
            for transaction in transactions:
                chain.submit(transaction, check=True)
            receipt = chain.system(MoveTimer(timer.timer_id, here))
            chain.system(MoveTimer(timer.timer_id, here + 1), check=True)
        what = f"timer {timer.timer_id} is moved to height {here}, and {here + 1} is the first at which it can fire now"
        assert_reverted(receipt, 1202, what)
        chain.mine()
        assert fired_at(chain, timer.timer_id) == here + 1


def test_move_is_refused_when_the_timer_is_deferred() -> None:
    """A timer that waits for room in the lane is due, and stays where it is."""
    with open_local(timers__lane_cycles_per_block=100_000, timers__max_cycles_per_fire=100_000) as chain:
        first, second = (scheduled(chain, 6) for _ in range(2))
        chain.advance_to(6)
        assert chain.timers()[0].deferred_for == "lane_full"
        for height in (7, 30):
            receipt = chain.system(MoveTimer(second.timer_id, height))
            chain.reorg(1)
            what = f"timer {second.timer_id} is due already, since height 6: only a timer that is to come can be moved"
            assert_reverted(receipt, 1202, what)
        chain.mine()
        assert (fired_at(chain, first.timer_id), fired_at(chain, second.timer_id)) == (6, 7)


def test_move_is_refused_when_the_timer_waits_in_the_auction() -> None:
    """It has joined, and its actor's standing counts it; in the block in which it falls due, too."""
    with auctions.open_auction() as chain:
        actor = auctions.bidder(chain, "1 0")
        (waiting,), (coming, late) = (auctions.arm(actor, *each, height=at) for each, at in (("a", 6), (("b", "c"), 9)))
        chain.advance_to(6)
        assert auctions.standing(actor).waiting == 1
        with pytest.raises(RevertedError, match="is due already, since height 6"):
            chain.hold(waiting)
        chain.hold(coming, until=60)
        # Block 9 lets timers join before it looks at its transactions.
        with pytest.raises(RevertedError, match="is due already, since height 9"):
            chain.hold(late, until=60)
        assert (chain.height, auctions.standing(actor).waiting) == (9, 2)
        chain.drop(late)
        auctions.price(actor, "1000000 0")
        chain.advance_to(60)
        assert auctions.ran(actor) == ["a", "b"]


def test_move_is_refused_when_there_is_no_such_timer(chain: LocalChain) -> None:
    """Nor an id that no timer can have."""
    assert_reverted(chain.system(MoveTimer(NO_SUCH, 9)), 1203, f"there is no live timer {Hash32(NO_SUCH)}")
    assert_reverted(chain.system(MoveTimer(b"", 9)), 1202, "timer_id has 0 bytes, outside 1..=256")
    with pytest.raises(Rejection, match="there is no live timer 0x1234"):
        chain.force(b"\x12\x34")


def test_move_is_refused_when_it_is_a_state_watch() -> None:
    """It has no height but the one at which it is collected."""
    with boxes.open_box() as chain:
        box = boxes.deploy_box(chain)
        watching = boxes.watch(box, boxes.key(box, b"a"))
        for interfere in (chain.hold, chain.force):
            with pytest.raises(RevertedError, match="is a state watch: it has no height to be moved from"):
                interfere(watching)
        boxes.put(box, b"a", b"1")
        chain.mine()
        assert fires(box) == 1
        chain.drop(watching)
        assert chain.timers() == []


# Globalbox


def test_fire_of_globalbox_counts_its_age_from_the_height_it_was_moved_to() -> None:
    """Record, queue and receipt have one height; a fire that is queued or delivered moves no more."""
    quotas = {"globalbox__max_fires_per_block": 2, "globalbox__max_fires_per_target": 2}
    one_a_block = {"timers__max_cycles_per_fire": boxes.GAS, "timers__lane_cycles_per_block": boxes.GAS}
    with boxes.open_box(**quotas, **one_a_block) as chain:
        box = boxes.deploy_box(chain)
        ids = [boxes.set_timeout(box, 40 + number, bid_fp=(9 - number) * boxes.BID) for number in range(4)]
        with chain.one_block():
            for timer_id in ids:
                chain.force(timer_id)
        due = chain.height
        # One has run, one waits in the mailbox, two in Globalbox.
        fired, delivered, *queued = ids
        assert fired_at(chain, fired) == due
        assert boxes.terms(chain, delivered).in_mailbox == 1
        assert [boxes.terms(chain, timer_id).fire.hit_height for timer_id in queued] == [due, due]  # type: ignore[union-attr]
        for timer_id in (delivered, *queued):
            with pytest.raises(RevertedError, match=f"is due already, since height {due}"):
                chain.hold(timer_id)
            chain.reorg(1)
        chain.mine(4)
        assert fired_ids(chain) == ids
        assert {event.data["due_height"] for event in chain.events("TimerFireReceipt")} == {due}


def test_timer_of_globalbox_is_updated_and_cancelled_by_its_owner_after_a_move() -> None:
    """Its owner knows it by its id, its target counts it, and its name stays taken."""
    with boxes.open_box() as chain:
        box = boxes.deploy_box(chain)
        timer_id = boxes.set_timeout(box, 12, client_nonce=b"n")
        chain.hold(timer_id, until=50)
        here = bytes(box.address)
        assert answers(
            perform(box, step("update_timer", here, timer_id, script(step("emit_event", "note", b"n"))))
        ) == [True]
        assert boxes.set_timeout(box, 14, client_nonce=b"n") == timer_id
        chain.force(timer_id)
        assert len(chain.events("note")) == 1
        assert (boxes.count_of(chain, box), boxes.ended(chain, timer_id).fire_seq) == (0, 1)  # type: ignore[union-attr]


# The lane


def test_timer_joins_the_lane_at_its_new_height() -> None:
    """A crowd that is moved to one height joins a few at a time, and what waits has waited since that height."""
    with open_local("lane", lane__joined_max=2) as chain:
        actor = deploy_puppet(chain)
        ids = [schedule(actor, 60 + number, gas_limit=100_000) for number in range(5)]
        with chain.one_block():
            for timer_id in ids:
                chain.hold(timer_id, until=30)
        chain.advance_to(30)
        record = chain.decisions(30)
        assert record is not None
        assert (sorted(fired_ids(chain)), record.not_joined) == (sorted(ids[:2]), 3)
        chain.mine(2)
        assert (sorted(fired_ids(chain)), fired_ids(chain)[4]) == (sorted(ids), ids[4])
        assert "yet to join at 30 and 31" in chain.explain(ids[4]).waited


# What is told


def test_life_of_a_timer_tells_of_its_moves(chain: LocalChain) -> None:
    """Explained with the block, the heights, and what comes next from there."""
    timer = scheduled(chain, 20)
    chain.hold(timer.timer_id, until=50)
    life = chain.explain(timer.timer_id)
    assert life.steps[1].story == "moved from height 20 to 50, as only a development chain does"
    assert life.outlook.startswith("fires at height 50 as things stand")
    chain.force(timer.timer_id)
    told = chain.explain(timer.timer_id)
    assert [step.event.name for step in told.steps] == ["timer.scheduled", "timer.moved", "timer.moved", "timer.fired"]
    assert (told.state, told.waited) == ("fired", "")


def test_ended_timer_is_listed_at_the_height_at_which_it_was_due(chain: LocalChain) -> None:
    """Not at the one for which it was scheduled once."""
    moved, other = scheduled(chain, 20), scheduled(chain, 21)
    chain.hold(moved.timer_id, until=35)
    chain.advance_to(40)
    listed = {entry.timer_id: entry.height for entry in list_timers(chain.chain, TimerFilter(state=ALL))}
    assert listed == {moved.timer_id: 35, other.timer_id: 21}
    assert [entry.timer_id for entry in list_timers(chain.chain, TimerFilter(state=ALL, first=35))] == [moved.timer_id]


# The whole chain


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_chain_is_the_same_when_it_is_replayed_exported_and_built_again_after_a_reorg(
    mechanism: str, tmp_path: Path
) -> None:
    """With everything in it that a development chain may hold."""
    with open_local(mechanism) as chain:
        held, forced, dropped = (scheduled(chain, height) for height in (20, 90, 22))
        mark = chain.snapshot()
        with chain.one_block():
            chain.hold(held.timer_id, until=33)
            chain.force(forced.timer_id)
            chain.drop(dropped.timer_id)
            chain.set_balance(b"\x77" * 20, 10**12)
        chain.impersonate(b"\x77" * 20, MoveTimer(held.timer_id, 5), cycles_limit=20_000, cells_limit=500)
        chain.mine(40)
        assert totals(chain) == (3, 2, 0, 0, 1)
        heads = [block.hash for block in chain.chain.blocks]
        assert verify_chain(chain.chain).ok
        assert replay_to(chain.chain, chain.height).state_root == chain.state_root
        export_chain(chain.chain, tmp_path / "export")
        imported = import_chain(tmp_path / "export", tmp_path / "chain")
        assert list(imported.blocks) == list(chain.chain.blocks)
        assert imported.genesis.development
        assert compare_chains(imported, chain.chain) is None
        imported.check_invariants()
        imported.close()
        blocks = [block.transactions for block in chain.chain.blocks][mark.height + 1 :]
        chain.revert(mark)
        assert [timer.height for timer in chain.timers()] == [20, 22, 90]
        assert chain.supply == 11 * 10**15
        for transactions in blocks:
            chain.chain.build(transactions)
        assert [block.hash for block in chain.chain.blocks] == heads


def test_timer_of_a_chain_on_disk_is_found_at_its_new_height_after_opening_it_again(tmp_path: Path) -> None:
    """The index of heights is on disk, too; going back takes it along."""
    directory = tmp_path / "chain"
    with LocalChain(preset="minimal", data_dir=directory) as chain:
        timer, other = scheduled(chain, 20), scheduled(chain, 21)
        chain.hold(timer.timer_id, until=900)
        chain.hold(other.timer_id, until=11)
    with LocalChain(preset="minimal", data_dir=directory) as chain:
        chain.chain.check_invariants()
        assert [(found.timer_id, found.height) for found in chain.timers()] == [
            (other.timer_id, 11),
            (timer.timer_id, 900),
        ]
        chain.hold(timer.timer_id, until=12)
        chain.reorg(2)
        chain.chain.check_invariants()
        assert [found.height for found in chain.timers()] == [21, 900]
