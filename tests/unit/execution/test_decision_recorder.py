"""The decision record of a block: what became of each timer that was examined, and how many were not."""

import pytest

from trailboss.model.decisions import APART_MAX, DecisionRecord, FeeSource, Stop
from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
BASEFEE = 10_000

ACTOR = """
def arm(payload):
    for item in payload.split():
        label, gas_limit, blocks, alive = item.split(b",")
        now = pvm_host.block_height()
        timer_id = pvm_host.schedule_timer_ex(
            now + int(blocks), label, gas_limit=int(gas_limit), expires_at=now + int(alive)
        )
        pvm_host.set_state(label, timer_id)


def plan(payload):
    label, _, victims = payload.partition(b"=")
    pvm_host.set_state(b"plan:" + label, victims)


def handle_timer(label):
    for victim in (pvm_host.get_state(b"plan:" + label) or b"").split():
        pvm_host.cancel_timer(pvm_host.get_state(victim))
"""


def start(value: int = 100 * CBY, lane: int = 1_000_000, **options: object) -> ActorHandle:
    """Return an actor on a chain whose lane has so many cycles."""
    params = {"timers.lane_cycles_per_block": lane, **options}
    chain = LocalChain(params=params)
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=value)


def arm(actor: ActorHandle, *timers: str, plans: tuple[bytes, ...] = ()) -> LocalChain:
    """Schedule timers, each ``label,gas limit,blocks ahead,blocks alive``, and return the chain."""
    for plan in plans:
        actor.call("plan", plan, sender=actor.chain.accounts[0], check=True)
    actor.call("arm", " ".join(timers).encode(), sender=actor.chain.accounts[0], check=True)
    return actor.chain


def recorded(actor: ActorHandle) -> DecisionRecord:
    """Return the record of the last block; its examined timers must add up to it."""
    record = actor.chain.decisions(actor.chain.height)
    assert record is not None
    assert sum(item.cycles_used for item in record.examined) == record.lane_cycles_used
    fired = [item.rank for item in record.examined if item.outcome == "fire"]
    assert record.cut_off == max(fired, default=0)
    return record


def outcomes(actor: ActorHandle, record: DecisionRecord) -> list[tuple[bytes, str, str]]:
    """Return label, outcome and reason of each examined timer."""
    labels = {actor.storage[key]: key for key in actor.storage if len(key) == 1}
    return [(labels[item.timer_id], item.outcome, item.reason) for item in record.examined]


@pytest.mark.spec("F-41", "L-30")
def test_record_tells_every_fate_when_a_block_has_all_of_them() -> None:
    """One fires, one waits, one has expired, one is cancelled by the first: it was pre-charged, and never ran."""
    actor = start()
    chain = arm(actor, "a,500000,2,9", "b,400000,2,9", "c,300000,2,9", "d,50000,2,1", "e,60000,2,9", plans=(b"a=b",))
    chain.mine()
    chain.mine()
    record = recorded(actor)
    assert outcomes(actor, record) == [
        (b"a", "fire", ""),
        (b"b", "cancelled", ""),
        (b"c", "defer", "lane_full"),
        (b"d", "expire", ""),
        (b"e", "fire", ""),
    ]
    assert [item.rank for item in record.examined] == [1, 2, 3, 4, 5]
    assert [item.gas_limit for item in record.examined] == [500_000, 400_000, 300_000, 50_000, 60_000]
    used = [receipt.cycles_used for receipt in chain.receipts(chain.height)]
    assert [item.cycles_used for item in record.examined] == [used[0], 0, 0, 0, used[1]]
    assert {(item.actor, item.tip, item.weight, item.max_fee, item.fee_source) for item in record.examined} == {
        (bytes(actor.address), 0, 0, 0, FeeSource.NONE)
    }
    assert (record.mechanism, record.stopped, record.examined_count) == ("fifo", Stop.NONE_LEFT, 5)
    assert (record.outranked, record.not_joined, record.priced_out, record.over_cap) == (0, 0, 0, 0)


@pytest.mark.spec("L-30")
def test_record_tells_the_blocks_prices_and_limits_when_there_is_no_market() -> None:
    """The lane basefee shown is the cycle basefee, of this block and of the next; nothing of it is burned."""
    actor = start()
    chain = arm(actor, "a,90000,1,9")
    chain.mine()
    record = recorded(actor)
    assert (record.cycle_basefee, record.cell_basefee) == (BASEFEE, BASEFEE)
    assert (record.lane_basefee, record.next_lane_basefee) == (BASEFEE, BASEFEE)
    assert (record.previous_tip, record.median_fires, record.lane_burned, record.agent_cycles) == (0, 0, 0, 0)
    assert (record.lane_cycles_max, record.max_cycles_per_fire) == (1_000_000, 550_000)
    assert record.lane_cycles_used == chain.block().header.timer_cycles_used > 0
    assert record.gaps == ()


def test_record_shows_an_unfunded_timer_and_why_one_waits_for_the_clean_up() -> None:
    """The first removal uses up the clean-up budget; the second waits for another one."""
    actor = start(value=0, **{"timers.gc_cycles_per_block": 300, "timers.gc_cycles_per_timer": 200})
    chain = arm(actor, "a,90000,1,9", "b,90000,1,9")
    chain.mine()
    record = recorded(actor)
    assert outcomes(actor, record) == [(b"a", "unfund", ""), (b"b", "defer", "gc_exhausted")]
    assert (record.cut_off, record.lane_cycles_used, record.examined_count) == (0, 0, 2)


@pytest.mark.spec("F-74")
def test_record_counts_those_that_were_not_looked_at_when_the_bound_is_reached() -> None:
    """Two of five are examined; a deferred one waits too, and is not counted twice."""
    actor = start(lane=600_000, **{"timers.due_examined_max": 2})
    chain = arm(actor, *(f"{label},550000,1,9" for label in "abcde"))
    chain.mine()
    record = recorded(actor)
    assert outcomes(actor, record) == [(b"a", "fire", ""), (b"b", "defer", "lane_full")]
    assert (record.stopped, record.examined_count, record.outranked) == (Stop.EXAMINED_MAX, 2, 3)
    chain.mine()
    assert (recorded(actor).stopped, recorded(actor).outranked) == (Stop.EXAMINED_MAX, 2)


@pytest.mark.spec("F-75")
def test_record_counts_no_dead_timer_among_those_that_were_not_looked_at() -> None:
    """Of four expired ones one is removed and one deferred; the two that are left count nowhere, a living one does."""
    gc = {"timers.gc_cycles_per_block": 200, "timers.gc_cycles_per_timer": 200, "timers.dead_examined_max": 1}
    actor = start(**gc, **{"timers.due_examined_max": 1})
    chain = arm(actor, "a,50000,3,2", "b,50000,3,1", "c,50000,3,2", "d,50000,3,2", "e,50000,3,9", "f,50000,3,9")
    chain.mine(3)
    record = recorded(actor)
    assert outcomes(actor, record) == [(b"a", "defer", "gc_exhausted"), (b"b", "expire", ""), (b"e", "fire", "")]
    assert (record.stopped, record.examined_count, record.outranked) == (Stop.EXAMINED_MAX, 3, 1)


@pytest.mark.spec("F-74", "F-53")
@pytest.mark.parametrize(("victims", "outranked"), [(b"b", 3), (b"c", 2), (b"b c d", 1), (b"b c d e", 0)])
def test_record_counts_only_those_that_still_wait_when_a_fire_cancels_some(victims: bytes, outranked: int) -> None:
    """A deferred timer, or one that was not looked at, is gone when a fire of the block has cancelled it."""
    actor = start(lane=600_000, **{"timers.due_examined_max": 2})
    chain = arm(actor, *(f"{label},550000,1,9" for label in "abcde"), plans=(b"a=" + victims,))
    chain.mine()
    record = recorded(actor)
    assert outcomes(actor, record) == [(b"a", "fire", ""), (b"b", "defer", "lane_full")]
    assert record.outranked == outranked
    chain.check_invariants()


def test_record_names_a_bounded_number_of_timers_when_more_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others it keeps the number, and the cut-off is the last fire's rank all the same."""
    monkeypatch.setattr("trailboss.execution.decision_recorder.ENTRIES_MAX", 3)
    actor = start()
    chain = arm(actor, *(f"{label},20000,1,9" for label in "abcde"))
    chain.mine()
    record = chain.decisions(chain.height)
    assert record is not None
    assert outcomes(actor, record) == [(b"a", "fire", ""), (b"b", "fire", ""), (b"c", "fire", "")]
    assert (record.examined_count, record.cut_off) == (5, 5)


def test_record_names_who_fires_when_a_crowd_has_expired() -> None:
    """Of the expired it names some and counts all."""
    actor = start()
    crowd = 94
    for ahead in (5, 4, 3):
        chain = arm(actor, *[f"x,20000,{ahead},1"] * crowd)
    arm(actor, "a,20000,2,9")
    chain.mine(2)
    record = recorded(actor)
    named = [item.outcome for item in record.examined]
    assert (record.examined_count, named.count("expire"), named[-1]) == (3 * crowd + 1, APART_MAX, "fire")
