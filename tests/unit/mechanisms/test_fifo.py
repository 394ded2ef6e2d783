"""CIP-5's mechanism, clause by clause: order, expiry, funds, lane, clean-up budget, bound."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.unit.mechanisms.due_timers import due_apart
from trailboss.fees import Prices, max_cost
from trailboss.mechanisms.base import Charging, Decision, DueTimers, Phase, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.fifo import build_fifo
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.timers import RECORD_VERSION, DeferralReason, Timer
from trailboss.params import load_params

ALICE, BOB, CAROL = b"\x0a" * 20, b"\x0b" * 20, b"\x0c" * 20
FULL_COST = 100 * 7 + 50 * 3
"""What a timer of 100 cycles costs at most in `CONTEXT`."""

CONTEXT = SelectionContext(
    height=20,
    cycle_basefee=7,
    cell_basefee=3,
    max_cells_per_fire=50,
    lane_cycles_max=1_000,
    gc_cycles_max=400,
    gc_cycles_per_timer=200,
    balance_of={ALICE: 10**9, BOB: 0}.__getitem__,
    lane_cycles_left=lambda: 1_000,
    market=Market(max_cycles_per_fire=1_000),
)
BASE = Timer(
    version=RECORD_VERSION,
    actor=b"\x01" * 20,
    height=20,
    timer_id=bytes(32),
    sequence=0,
    handler="handle_timer",
    payload=b"",
    fee_payer=ALICE,
    gas_limit=100,
    access_limit=0,
    expires_at=1_000,
    schedule_block=1,
)


def timers(*changes: dict[str, object]) -> list[Timer]:
    """Return one timer for each change of `BASE`; sequence and id follow the position."""
    return [
        msgspec.structs.replace(BASE, sequence=number, timer_id=b"%032d" % number, **change)
        for number, change in enumerate(changes)
    ]


def context(**changes: object) -> SelectionContext[Market]:
    fields = {name: getattr(CONTEXT, name) for name in SelectionContext.__struct_fields__}
    return SelectionContext(**(fields | changes))


def walk(
    due: DueTimers, examined_max: int = 1_000, dead_examined_max: int = 256, **changes: object
) -> tuple[list[Decision], Rest]:
    """Return all decisions about due timers, and what is left of them."""
    bounds = {"timers.due_examined_max": examined_max, "timers.dead_examined_max": dead_examined_max}
    selection = build_fifo(load_params(overrides=bounds)).select(due, context(**changes))
    return list(selection), selection.rest()


def select(due: list[Timer], **changes: object) -> list[Decision]:
    terms = context(**{name: value for name, value in changes.items() if name in SelectionContext.__struct_fields__})
    return walk(due_apart(due, terms.height), **changes)[0]


def verdicts(decisions: list[Decision]) -> list[str]:
    return [str(decision.reason or decision.verdict) for decision in decisions]


def told(decisions: list[Decision]) -> list[tuple[int, str]]:
    """Return number and verdict or reason of each decision."""
    return list(zip((decision.timer.sequence for decision in decisions), verdicts(decisions), strict=True))


@pytest.mark.spec("F-40", "F-43")
def test_policy_is_that_of_cip_5() -> None:
    """After the transactions, all pre-charged before any runs, no index, no market, the bounds from the parameters."""
    fifo = build_fifo(load_params())
    assert fifo.name == "fifo"
    assert fifo.policy.phase is Phase.AFTER_TRANSACTIONS
    assert fifo.policy.charging is Charging.ALL_FIRST
    assert (fifo.policy.joined_max, fifo.policy.passed_over_max) == (0, 0)
    assert fifo.policy.examined_max == load_params().timers.due_examined_max == 25_000
    assert fifo.policy.dead_examined_max == load_params().timers.dead_examined_max == 256


@pytest.mark.spec("F-41", "F-05")
def test_due_timers_are_classified_in_their_order_when_all_kinds_are_mixed() -> None:
    """Expired, unfunded and live timers get their verdicts at their own places."""
    due = timers({}, {"expires_at": 19}, {"fee_payer": BOB}, {}, {"gas_limit": 900}, {})
    decisions, rest = walk(due_apart(due, CONTEXT.height))
    assert [decision.timer for decision in decisions] == due
    assert verdicts(decisions) == ["fire", "expire", "unfund", "fire", "lane_full", "fire"]
    assert [decision.rank for decision in decisions] == [1, 2, 3, 4, 5, 6]
    assert rest == Rest(stopped=Stop.NONE_LEFT)


def test_cells_of_each_fire_are_reserved_when_a_block_has_so_many() -> None:
    """Room for two fires of 50 cells: the dead still leave, and want of cycles is told before want of cells."""
    due = timers({}, {}, {"expires_at": 19}, {}, {"fee_payer": BOB}, {"gas_limit": 900}, {})
    decisions = select(due, lane_cells_max=149)
    assert verdicts(decisions) == ["fire", "fire", "expire", "cells_full", "unfund", "lane_full", "cells_full"]
    assert verdicts(select(due[:2], lane_cells_max=100)) == ["fire", "fire"]
    assert verdicts(select(due[:2], lane_cells_max=99)) == ["fire", "cells_full"]


def test_selection_is_empty_when_nothing_is_due() -> None:
    """No timers, no decisions."""
    assert walk(DueTimers(())) == ([], Rest(stopped=Stop.NONE_LEFT))


@pytest.mark.spec("F-41", "F-75")
@pytest.mark.parametrize("places", [[0, 1, 4], [2, 3, 4], [0, 2, 4]], ids=str)
def test_expired_timer_stands_at_its_own_place_when_others_are_decided(places: list[int]) -> None:
    """Before, between and behind the living; ranks count all of them."""
    due = timers(*[{"expires_at": 19 - number} if number in places else {} for number in range(5)])
    decisions = select(due, gc_cycles_max=600)
    assert told(decisions) == [(number, "expire" if number in places else "fire") for number in range(5)]
    assert [decision.rank for decision in decisions] == [1, 2, 3, 4, 5]


@pytest.mark.spec("F-62", "F-63")
def test_pre_charge_is_the_worst_case_at_the_lane_prices() -> None:
    """100 cycles at 7 and 50 cells at 3 are 850; the prices go with the decision, without a tip or a lane basefee."""
    (decision,) = select(timers({}))
    assert (decision.verdict, decision.max_cost) == (Verdict.FIRE, FULL_COST)
    assert decision.prices == Prices(cycle_basefee=7, cell_basefee=3)
    assert decision.max_cost == max_cost(decision.gas_limit, CONTEXT.max_cells_per_fire, decision.prices)
    assert (decision.available, decision.reason) == (10**9, None)


def test_decision_has_no_market_when_the_mechanism_has_none() -> None:
    """Its own gas limit, no weight, no fee cap, no agent."""
    (decision,) = select(timers({"gas_limit": 123}))
    assert (decision.gas_limit, decision.weight, decision.max_fee) == (123, 0, 0)
    assert (decision.fee_source, decision.agent_cycles) == (FeeSource.NONE, 0)


@pytest.mark.spec("F-52")
def test_timer_expires_when_its_last_height_has_passed() -> None:
    """It may fire at expires_at itself, and not one block later; no price is looked at then."""
    assert verdicts(select(timers({"expires_at": 20}, {"expires_at": 19}))) == ["fire", "expire"]
    (decision,) = select(timers({"expires_at": 19, "fee_payer": b"\xff" * 20}))
    assert (decision.verdict, decision.max_cost, decision.available) == (Verdict.EXPIRE, 0, 0)


@pytest.mark.spec("F-51")
@pytest.mark.parametrize(("balance", "verdict"), [(FULL_COST, "fire"), (FULL_COST - 1, "unfund"), (0, "unfund")])
def test_timer_is_unfunded_when_its_payer_is_one_unit_short(balance: int, verdict: str) -> None:
    """The exact cost is enough; what was needed and what was there are told."""
    decisions = select(timers({}), balance_of=lambda _: balance)
    assert verdicts(decisions) == [verdict]
    assert (decisions[0].max_cost, decisions[0].available) == (FULL_COST, balance)


@pytest.mark.spec("F-51", "F-63")
def test_earlier_pre_charges_count_when_timers_share_a_payer() -> None:
    """Two can be paid, the third finds what they left; a payer of its own is not touched by it."""
    balances = {ALICE: 2 * FULL_COST + 5, BOB: FULL_COST}
    decisions = select(timers({}, {}, {}, {"fee_payer": BOB}), balance_of=balances.__getitem__)
    assert verdicts(decisions) == ["fire", "fire", "unfund", "fire"]
    assert [decision.available for decision in decisions] == [
        2 * FULL_COST + 5,
        FULL_COST + 5,
        5,
        FULL_COST,
    ]


@pytest.mark.spec("F-74")
def test_scan_goes_on_when_a_timer_does_not_fit_the_lane() -> None:
    """600 of 1,000 cycles are reserved; 500 more do not fit, 400 do, and then not even one."""
    due = timers({"gas_limit": 600}, {"gas_limit": 500}, {"gas_limit": 400}, {"gas_limit": 1})
    assert verdicts(select(due)) == ["fire", "lane_full", "fire", "lane_full"]


@pytest.mark.spec("F-74")
def test_deferred_timer_reserves_no_money_when_its_payer_has_little() -> None:
    """It costs its payer nothing in this block: the next timer of the same payer finds the whole balance."""
    due = timers({"gas_limit": 2_000}, {"gas_limit": 1_000})
    balance = 2_000 * 7 + 150
    decisions = select(due, balance_of=lambda _: balance)
    assert verdicts(decisions) == ["lane_full", "fire"]
    assert decisions[1].available == balance


def test_unfunded_timer_ends_when_the_lane_is_full_too() -> None:
    """Funds are looked at before the lane, so that it does not wait for a lane that it cannot pay."""
    due = timers({"gas_limit": 1_000}, {"fee_payer": BOB})
    assert verdicts(select(due)) == ["fire", "unfund"]


@pytest.mark.spec("F-75")
def test_live_timer_fires_when_a_storm_of_expired_ones_precedes_it() -> None:
    """Removals draw on their own budget: a hundred expired timers take nothing of the lane."""
    due = timers(*[{"expires_at": 1}] * 100, {"gas_limit": 1_000})
    decisions = select(due)
    assert verdicts(decisions) == ["expire"] * 2 + ["gc_exhausted"] * 98 + ["fire"]


@pytest.mark.spec("F-75")
def test_clean_up_budget_is_spent_by_expiry_when_not_all_can_be_removed() -> None:
    """The first to expire go first, and who expires together in due order; the decisions stand in due order."""
    due = timers(*[{"expires_at": last} for last in (18, 17, 18, 3, 19)])
    removed = [(number, "expire") for number in (0, 1, 3)]
    found = told(select(due, gc_cycles_max=600))
    assert found == sorted([*removed, (2, "gc_exhausted"), (4, "gc_exhausted")])


@pytest.mark.spec("F-75")
def test_clean_up_budget_is_for_the_expired_first_when_expired_and_unfunded_mix() -> None:
    """Both cost the same; what the expired leave of it goes to the unfunded, in due order."""
    due = timers({"fee_payer": BOB}, {"expires_at": 1}, {"expires_at": 1}, {"fee_payer": BOB}, {})
    for gc_cycles_max, ends in ((199, []), (400, [1, 2]), (599, [1, 2]), (600, [0, 1, 2]), (800, [0, 1, 2, 3])):
        found = verdicts(select(due, gc_cycles_max=gc_cycles_max))
        assert found[4] == "fire"
        for number, end in enumerate(("unfund", "expire", "expire", "unfund")):
            assert found[number] == (end if number in ends else "gc_exhausted")


@pytest.mark.spec("F-75")
def test_so_many_dead_are_deferred_when_the_budget_is_spent_and_no_more() -> None:
    """Two removed, three deferred of ten expired; the others are left without a word, and so are the unfunded."""
    due = timers(*[{"expires_at": number + 1} for number in range(10)], {"fee_payer": BOB}, {})
    found = [(number, "expire") for number in (0, 1)] + [(number, "gc_exhausted") for number in (2, 3, 4)]
    assert told(select(due, dead_examined_max=3)) == [*found, (11, "fire")]


@pytest.mark.spec("F-75")
def test_payer_is_out_for_the_block_when_it_cannot_pay_and_the_dead_are_too_many() -> None:
    """Alice can pay one of 100 cycles, but not one of 500: from the latter on she has no turn. Others have theirs."""
    due = timers(
        *[{"fee_payer": BOB}] * 4, {"gas_limit": 100}, {"gas_limit": 500}, {"gas_limit": 100}, {"fee_payer": CAROL}
    )
    balances = {ALICE: 2 * FULL_COST, BOB: 0, CAROL: FULL_COST}
    found = select(due, balance_of=balances.__getitem__, dead_examined_max=1)
    assert told(found) == [(0, "unfund"), (1, "unfund"), (2, "gc_exhausted"), (4, "fire"), (7, "fire")]
    assert [decision.rank for decision in found] == [1, 2, 3, 4, 5]


@pytest.mark.spec("F-75")
def test_dead_timers_do_not_count_as_examined() -> None:
    """A hundred expired ones, and a hundred whose payer has nothing: both of the living are looked at."""
    dead = [{"expires_at": 1}] * 100 + [{"fee_payer": BOB}] * 100
    decisions, rest = walk(due_apart(timers(*dead, {}, {}, {}), 20), examined_max=2)
    assert told(decisions)[-2:] == [(200, "fire"), (201, "fire")]
    assert (len(decisions), rest.stopped) == (2 + 256 + 2 - 58, Stop.EXAMINED_MAX)


@pytest.mark.spec("F-76")
def test_uncleared_timer_is_still_expired_when_the_next_block_looks() -> None:
    """A block later it has the same verdict, and now the budget."""
    due = timers(*[{"expires_at": 19}] * 3)
    first = select(due)
    waiting = [decision.timer for decision in first if decision.verdict is Verdict.DEFER]
    assert verdicts(first) == ["expire", "expire", "gc_exhausted"]
    assert verdicts(select(waiting, height=21)) == ["expire"]


@pytest.mark.spec("F-75")
def test_unfunded_timer_keeps_its_facts_when_its_removal_must_wait() -> None:
    """What was needed and what was there explain the deferral."""
    (decision,) = select(timers({"fee_payer": BOB}), gc_cycles_max=199)
    assert (decision.verdict, decision.reason) == (Verdict.DEFER, DeferralReason.GC_EXHAUSTED)
    assert (decision.max_cost, decision.available) == (FULL_COST, 0)


@pytest.mark.spec("F-74", "Q-08")
@pytest.mark.parametrize(("waiting", "examined", "pulled"), [(9, 9, 9), (10, 10, 10), (11, 10, 11), (500, 10, 11)])
def test_backlog_is_not_walked_when_it_exceeds_the_bound(waiting: int, examined: int, pulled: int) -> None:
    """At most ten are looked at, oldest first; one more is pulled to learn that there are more."""
    drawn: list[Timer] = []

    def backlog() -> Iterator[Timer]:
        for timer in timers(*[{"gas_limit": 2_000}] * waiting):
            drawn.append(timer)
            yield timer

    decisions, rest = walk(DueTimers(backlog()), examined_max=10)
    assert len(decisions) == examined
    assert rest.stopped is (Stop.EXAMINED_MAX if waiting > 10 else Stop.NONE_LEFT)
    assert len(drawn) == pulled


@pytest.mark.spec("F-80")
def test_fifo_remembers_nothing_when_it_hears_of_timers() -> None:
    """Whatever it is told, and whatever it has decided before, a block's decisions follow from its due timers alone."""
    fifo, due = build_fifo(load_params()), timers({}, {"expires_at": 19}, {})
    first = list(fifo.select(due_apart(due, CONTEXT.height), CONTEXT))
    fifo.leave(due[0].timer_id)
    fifo.expire([due[2].timer_id])
    fifo.replace(msgspec.structs.replace(due[1], expires_at=50))
    fifo.recount(BASE.actor, 7)
    fifo.rewind()
    assert not fifo.only_wait(len(due))
    assert list(fifo.select(due_apart(due, CONTEXT.height), CONTEXT)) == first


def test_balance_is_read_once_when_a_payer_has_many_timers() -> None:
    """Also one of zero: a broke payer's backlog does not read the same account again and again."""
    read: list[bytes] = []

    def balance_of(payer: bytes) -> int:
        read.append(payer)
        return 0 if payer == BOB else 10**9

    select(timers({}, {"fee_payer": BOB}, {}, {"fee_payer": BOB}), balance_of=balance_of)
    assert read == [ALICE, BOB]
