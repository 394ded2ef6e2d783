"""What is told of Globalbox: views, decision records, the lives of its timers, and that its sums are checked."""

import msgspec
import pytest

from tests.integration.boxes import BID, GAS, deploy_box, key, open_box, put, set_timeout, watch
from tests.integration.helpers import answers, perform, step
from trailboss.chain.differences import state_difference
from trailboss.chain.replay import verify_chain
from trailboss.governance.markets import GLOBALBOX_KEY
from trailboss.model.configs import decode_record, encode_record
from trailboss.model.decisions import APART_MAX, ENTRIES_MAX, Order
from trailboss.model.globalbox import GlobalboxState
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.testing import LocalChain
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.mechanism.base import OutlookKind
from trailboss.views.timer_list import TimerFilter, list_timers

DUE = 14
NARROW = {
    "globalbox__max_fires_per_block": 3,
    "globalbox__max_fires_per_target": 2,
    "timers__max_cycles_per_fire": GAS,
    "timers__lane_cycles_per_block": GAS,
}
"""A block moves three fires to the mailbox, two of them for one target, and runs one of them."""


@pytest.fixture
def told() -> tuple[LocalChain, list[bytes], bytes]:
    """Return a chain after block 15, its five height timers with bids from 0 to 4, and a state watch that was hit."""
    chain = open_box(**NARROW)
    one, two = deploy_box(chain), deploy_box(chain, chain.accounts[1])
    watching = watch(one, key(two, b"rate:"), key(two, b"vote"), bid_fp=7 * BID, expiry_height=99, client_nonce=b"n")
    ids = [set_timeout(one, DUE, b"%d" % bid, target=two.address, bid_fp=bid * BID) for bid in range(5)]
    chain.advance_to(DUE)
    put(two, b"rate:usd", b"2")
    return chain, ids, watching


@pytest.mark.spec("G-02")
def test_view_has_the_timers_meta(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """Kind, target, keys, bid, expiry, fires and what waits, of a watch and of a height timer."""
    chain, ids, watching = told
    views = {view.timer_id: view for view in chain.timers()}
    meta = views[watching].globalbox
    assert meta is not None
    assert (meta.kind, meta.due_height, meta.expiry_height, meta.status) == ("STATE_WATCH", None, 99, "ACTIVE")
    assert (meta.bid, meta.bid_fp, meta.client_nonce) == (7, 7 * BID, b"n")
    assert (meta.fire_seq, meta.last_fire_height, meta.in_mailbox, meta.fire) == (1, 15, 1, None)
    assert meta.watch_keys == tuple(sorted(meta.watch_keys))
    assert not views[watching].will_expire_unfired
    meta = views[ids[0]].globalbox
    assert meta is not None
    assert meta.fire is not None
    assert (meta.kind, meta.due_height, meta.fire.bid, meta.fire.queued_at) == ("HEIGHT", DUE, 0, DUE)
    assert (meta.fire_seq, meta.last_fire_height, meta.in_mailbox) == (0, None, 0)
    assert {view.fees for view in views.values()} == {"bid"}


@pytest.mark.spec("G-13")
def test_mailbox_view_has_what_an_entry_has_in_the_draft(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """In order of deliver_seq, with snapshots and what triggered it; a target has its own entries only."""
    chain, ids, watching = told
    entries = chain.mailbox()
    assert [entry.deliver_seq for entry in entries] == [2, 3, 4]
    assert [entry.timer_id for entry in entries] == [watching, ids[2], ids[1]]
    assert [(entry.bid, entry.gas_limit, entry.payload) for entry in entries[1:]] == [(2, GAS, b"2"), (1, GAS, b"1")]
    first = entries[0]
    assert (first.trigger.kind, first.trigger.due_height) == ("STATE_WATCH", None)
    assert first.trigger.matched_keys == (bytes(entries[1].target) + b"rate:usd",)
    assert chain.mailbox(entries[1].target) == entries[1:]
    assert len({entry.deliver_id for entry in entries}) == 3


@pytest.mark.spec("G-10")
def test_queue_view_has_the_fires_in_their_order(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """With their places; those for one target before it are counted, and a limit cuts."""
    chain, ids, _ = told
    (left,) = chain.globalbox()
    assert (left.timer_id, left.place, left.ahead_of_target, left.fire_seq) == (ids[0], 1, 0, 0)
    chain.reorg(1)
    queued = chain.globalbox()
    assert [(view.timer_id, view.place, view.ahead_of_target) for view in queued] == [
        (ids[2], 1, 0), (ids[1], 2, 1), (ids[0], 3, 2)
    ]  # fmt: skip
    assert [view.score for view in queued] == sorted((view.score for view in queued), reverse=True)
    assert chain.globalbox(2) == queued[:2]
    assert queued[0].score - queued[1].score == BID


def test_reads_are_refused_when_the_chain_has_another_mechanism() -> None:
    """By name, whichever it is."""
    with LocalChain() as chain:
        for read in (chain.mailbox, chain.globalbox, chain.auction):
            with pytest.raises(Rejection) as refused:
                read()
            assert refused.value.reason is RejectionReason.NOT_FOUND
        assert chain.ended_timer(bytes(32)) is None


@pytest.mark.spec("G-02", "G-22")
def test_ended_timer_is_told_until_it_is_collected() -> None:
    """Completed when it has fired, cancelled when it was cancelled; afterwards nothing is known."""
    chain = open_box(globalbox__ended_kept_blocks=3)
    actor = deploy_box(chain)
    fired = set_timeout(actor, 6, b"x")
    chain.advance_to(6)
    found = chain.ended_timer(fired)
    assert found is not None
    assert (found.status, found.kind, found.fire_seq, found.last_fire_height) == ("COMPLETED", "HEIGHT", 1, 6)
    assert (found.ended_at, found.collected_after) == (6, 9)
    chain.mine(5)
    assert chain.ended_timer(fired) is None


def test_list_filters_by_what_the_records_hold(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """Queued, in the mailbox, for a target; the state in the list says the same."""
    chain, ids, watching = told

    def listed(**wanted: object) -> list[tuple[bytes, str]]:
        return [(entry.timer_id, entry.state) for entry in list_timers(chain.chain, TimerFilter(**wanted))]

    assert listed(state="queued") == [(ids[0], "queued")]
    assert listed(state="in-mailbox") == [(ids[1], "in-mailbox"), (ids[2], "in-mailbox"), (watching, "in-mailbox")]
    target = chain.mailbox()[1].target
    assert [found for found, _ in listed(target=target)] == ids[:3]
    assert {state for _, state in listed(state="fired")} == {"fired"}


@pytest.mark.spec("G-08", "G-12", "G-16")
def test_record_tells_who_was_queued_moved_and_delivered(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """In the order of the block; what stays in queue and mailbox is counted, with the reason."""
    chain, ids, watching = told
    record = chain.decisions(DUE)
    assert record is not None
    assert record.order is Order.STANDING
    rows = [(item.outcome, item.timer_id, item.rank) for item in record.decided]
    assert rows[:5] == [("enqueue", ids[4 - place], place + 1) for place in range(5)]
    assert rows[5:] == [("materialize", ids[4], 1), ("materialize", ids[3], 2), ("fire", ids[4], 1)]
    assert (record.queued, record.in_mailbox, record.cut_off) == (3, 1, 1)
    assert [item.timer_id for item in record.runners_up] == [ids[2], ids[1], ids[0]]
    assert [item.deliver_seq for item in record.decided][-1] == 0
    view = decision_view(record, DUE)
    assert view.sentences == (
        "3 in Globalbox, as one block moves only a limited number of its fires to the mailbox",
        "1 entry waits in the mailbox: the block had 89,299 cycles left, and the first of them may use 100,000",
    )
    record = chain.decisions(DUE + 1)
    assert record is not None
    assert [item.timer_id for item in record.decided if item.outcome == "enqueue"] == [watching]


def test_record_names_fires_when_there_are_many_moves() -> None:
    """Those that only move on have a bound of their own, so that deliveries are named too."""
    chain = open_box(globalbox__max_fires_per_target=200, globalbox__max_fires_per_block=200)
    actor = deploy_box(chain)
    many = APART_MAX + 9
    target = bytes(actor.address)
    steps = [step("set_timeout", target, 19, b"%d" % number, gas_limit=20_000) for number in range(many)]
    for first in range(0, many, 10):
        answers(perform(actor, *steps[first : first + 10]))
    chain.advance_to(19)
    record = chain.decisions(19)
    assert record is not None
    named = [item.outcome for item in record.decided]
    assert (named.count("enqueue"), named.count("materialize")) == (APART_MAX, APART_MAX)
    assert named.count("fire") == many
    assert record.examined_count == 3 * many
    assert len(record.examined) <= ENTRIES_MAX


@pytest.mark.spec("G-15")
def test_life_tells_where_each_fire_was_and_why_it_waited(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """Queued where, moved when, delivered as which, hit by which key; and for one that waits what is before it."""
    chain, ids, watching = told
    life = chain.explain(ids[0])
    assert (life.fires[0].outcome, life.waited) == ("queued", "fire 0: 2 blocks in Globalbox")
    assert "stands at place 1 of 1 in Globalbox since block 14, 0 of those before it" in life.outlook
    life = chain.explain(ids[1])
    assert life.fires[0].outcome == "in mailbox"
    assert "delivery 4 waits in the mailbox behind 2 with up to 200,000 cycles" in life.outlook
    assert life.outlook.endswith(
        f"it has been paid for, and what it does not use returns to {chain.mailbox()[0].owner}"
    )
    assert life.waited == "fire 0: 1 block in Globalbox and 1 block in the mailbox"
    assert "moves" not in chain.explain(watching).outlook
    chain.mine(4)
    life = chain.explain(ids[0])
    assert life.state == "fired"
    (way,) = life.fires
    assert (way.queued_at, way.materialized_at, way.deliver_seq, way.ended_at, way.outcome) == (14, 16, 5, 19, "ran")
    names = [step.event.name for step in life.steps]
    assert names == ["timer.scheduled", "timer.queued", "timer.materialized", "TimerFireReceipt", "timer.fired"]
    life = chain.explain(watching)
    assert life.state == "live"
    assert "because of a change of slot 'rate:usd' of" in life.steps[-1].story
    assert life.outlook_kind is OutlookKind.RUNS
    assert life.outlook.startswith("fires when slot ")
    assert verify_chain(chain.chain).ok


def test_life_goes_on_when_a_watch_fires_again_and_ends_with_its_cancelling() -> None:
    """Each fire has its own way; what is queued when the timer is cancelled is gone."""
    chain = open_box()
    actor = deploy_box(chain)
    watching = watch(actor, key(actor, b"a"))
    for value in (b"1", b"2"):
        put(actor, b"a", value)
    life = chain.explain(watching)
    assert [(way.fire_seq, way.outcome) for way in life.fires] == [(0, "ran"), (1, "ran")]
    assert [way.matched_keys for way in life.fires] == [(bytes(actor.address) + b"a",)] * 2


def test_broken_sums_are_found_when_a_chain_is_checked(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """One fire more than there is, and one entry less; two states that differ in that are told apart in words."""
    chain, _, _ = told
    store = chain.chain.store
    octets = store.read(GLOBALBOX_KEY)
    assert octets is not None
    state = decode_record(octets, GlobalboxState)
    for changes in ({"queued": state.queued + 1}, {"first": state.first + 1}):
        store.commit(chain.height + 1, {GLOBALBOX_KEY: encode_record(msgspec.structs.replace(state, **changes))})
        with pytest.raises(InvariantError, match=r"fires"):
            chain.check_invariants()
        with LocalChain(mechanism="globalbox", preset="minimal") as other:
            assert state_difference(store, other.chain.store)
        store.revert(chain.height)
    chain.check_invariants()


def test_runway_leaves_out_what_waits_in_the_mailbox(told: tuple[LocalChain, list[bytes], bytes]) -> None:
    """It has been paid for: of a height timer nothing is to come, and of a watch nothing that is foreseen."""
    chain, ids, watching = told
    assert [entry.timer_id for entry in chain.mailbox()] == [watching, ids[2], ids[1]]
    found = chain.runway(chain.mailbox()[0].owner)
    assert (found.timers, found.stuck, sum(actor.timers for actor in found.actors)) == (2, 1, 1)


def test_runway_counts_the_bid_and_leaves_out_what_nothing_has_hit() -> None:
    """A fire reserves basefee and bid; an armed watch is not foreseen, and said so."""
    chain = open_box()
    actor = deploy_box(chain)
    set_timeout(actor, 40, b"", bid_fp=3 * BID)
    watch(actor, key(actor, b"a"))
    found = chain.runway(actor)
    assert (found.timers, found.stuck) == (2, 1)
    rules = chain.chain.rules()
    cycle, cell = rules.timer_basefees()
    reach = found.reaches[0]
    assert (reach.fires, reach.spent) == (1, GAS * (cycle + 3) + rules.timer.max_cells_per_fire * cell)
    assert any("watch the state" in note for note in found.notes)
