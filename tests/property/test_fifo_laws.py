"""CIP-5's mechanism against an independent slow reading, and the bounds that must hold whatever is due."""

from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.mechanisms.due_timers import due_apart, expiry_order
from trailboss.fees import Prices
from trailboss.mechanisms.base import Decision, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.fifo import Fifo, build_fifo
from trailboss.model.decisions import Stop
from trailboss.model.timers import RECORD_VERSION, DeferralReason, Timer
from trailboss.params import load_params

HEIGHT = 50
PAYERS = [bytes([number]) * 20 for number in range(1, 4)]


@st.composite
def due_timers(draw: st.DrawFn) -> list[Timer]:
    """Draw due timers of a few payers in due order; lives end around the block's height."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(HEIGHT - 5, HEIGHT),
                st.sampled_from(PAYERS),
                st.integers(1, 40),
                st.integers(HEIGHT - 2, HEIGHT + 3),
            ),
            max_size=40,
        )
    )
    return [
        Timer(RECORD_VERSION, bytes(20), height, b"%032d" % n, n, "tick", b"", payer, gas_limit, 0, expires_at, 1)
        for n, (height, payer, gas_limit, expires_at) in enumerate(sorted(rows, key=lambda row: row[0]))
    ]


class Bounds(NamedTuple):
    """Living timers that a block examines, and dead ones that it defers."""

    examined: int
    dead: int


Scene = tuple[list[Timer], dict[bytes, int], dict[str, int], Bounds]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Draw due timers, balances, the numbers of a context and bounds, all small enough to collide."""
    numbers = {
        "height": HEIGHT,
        "cycle_basefee": draw(st.integers(0, 5)),
        "cell_basefee": draw(st.integers(0, 3)),
        "max_cells_per_fire": draw(st.integers(0, 20)),
        "lane_cycles_max": draw(st.integers(0, 300)),
        "gc_cycles_max": draw(st.integers(0, 50)),
        "gc_cycles_per_timer": draw(st.integers(1, 9)),
    }
    balances = {payer: draw(st.integers(0, 600)) for payer in PAYERS}
    return draw(due_timers()), balances, numbers, Bounds(draw(st.integers(1, 45)), draw(st.integers(1, 5)))


def slow_reading(
    due: list[Timer], balances: dict[bytes, int], numbers: dict[str, int], bounds: Bounds
) -> tuple[list[tuple[bytes, str, str | None]], Stop]:
    """Read the rules literally: every budget is summed up anew from the outcomes so far."""
    height = numbers["height"]
    dead = sorted((timer for timer in due if timer.expires_at < height), key=expiry_order)
    removable = numbers["gc_cycles_max"] // numbers["gc_cycles_per_timer"]
    told = {timer.timer_id: ("expire", None) for timer in dead[:removable]}
    told |= {timer.timer_id: ("defer", "gc_exhausted") for timer in dead[removable:][: bounds.dead]}
    stopped, fired, out = Stop.NONE_LEFT, [], set()

    def price(timer: Timer) -> int:
        cells = numbers["max_cells_per_fire"] * numbers["cell_basefee"]
        return timer.gas_limit * numbers["cycle_basefee"] + cells

    def count(*outcome: str | None) -> int:
        return sum(each == outcome for each in told.values())

    for timer in due:
        if timer in dead or timer.fee_payer in out:
            continue
        if count("fire", None) + count("defer", "lane_full") == bounds.examined:
            stopped = Stop.EXAMINED_MAX
            break
        charged = sum(price(earlier) for earlier in fired if earlier.fee_payer == timer.fee_payer)
        if balances[timer.fee_payer] - charged >= price(timer):
            fits = sum(earlier.gas_limit for earlier in fired) + timer.gas_limit <= numbers["lane_cycles_max"]
            fired += [timer] * fits
            told[timer.timer_id] = ("fire", None) if fits else ("defer", "lane_full")
        elif count("expire", None) + count("unfund", None) < removable:
            told[timer.timer_id] = "unfund", None
        elif count("defer", "gc_exhausted") < bounds.dead:
            told[timer.timer_id] = "defer", "gc_exhausted"
        else:
            out.add(timer.fee_payer)
    return [(timer.timer_id, *told[timer.timer_id]) for timer in due if timer.timer_id in told], stopped


def decide(
    due: list[Timer], balances: dict[bytes, int], numbers: dict[str, int], bounds: Bounds
) -> tuple[list[Decision], Rest]:
    """Return all decisions about due timers, and what is left."""
    selection = build(bounds).select(due_apart(due, HEIGHT), make_context(balances, numbers))
    return list(selection), selection.rest()


def build(bounds: Bounds) -> Fifo:
    overrides = {"timers.due_examined_max": bounds.examined, "timers.dead_examined_max": bounds.dead}
    return build_fifo(load_params(overrides=overrides))


def make_context(balances: dict[bytes, int], numbers: dict[str, int]) -> SelectionContext[Market]:
    lane = numbers["lane_cycles_max"]
    market = Market(max_cycles_per_fire=lane)
    return SelectionContext(balance_of=balances.__getitem__, lane_cycles_left=lambda: lane, market=market, **numbers)


@settings(max_examples=300, deadline=None)
@given(scenes())
@pytest.mark.spec("F-41", "F-51", "F-52", "F-74", "F-75", "F-76")
def test_selection_equals_the_slow_reading(scene: Scene) -> None:
    """Verdicts and reasons agree timer by timer, and so does what is left unexamined."""
    decisions, rest = decide(*scene)
    told = [(d.timer.timer_id, str(d.verdict), None if d.reason is None else str(d.reason)) for d in decisions]
    expected, stopped = slow_reading(*scene)
    assert told == expected
    assert rest == Rest(stopped=stopped)


@settings(max_examples=300, deadline=None)
@given(scenes())
@pytest.mark.spec("F-05", "F-63", "F-74", "F-75")
def test_no_budget_is_overdrawn_and_order_is_kept(scene: Scene) -> None:
    """Lane, clean-up budget and balances suffice for what is decided; decisions come in due order."""
    due, balances, numbers, bounds = scene
    decisions, _ = decide(*scene)
    prices = Prices(numbers["cycle_basefee"], numbers["cell_basefee"])
    assert all(decision.prices == prices for decision in decisions)
    decided = [decision.timer for decision in decisions]
    assert decided == [timer for timer in due if timer in decided]
    assert [decision.rank for decision in decisions] == list(range(1, len(decisions) + 1))
    assert [decision.gas_limit for decision in decisions] == [timer.gas_limit for timer in decided]
    fired = [decision for decision in decisions if decision.verdict is Verdict.FIRE]
    ended = [decision for decision in decisions if decision.verdict in (Verdict.EXPIRE, Verdict.UNFUND)]
    assert sum(decision.timer.gas_limit for decision in fired) <= numbers["lane_cycles_max"]
    assert len(ended) * numbers["gc_cycles_per_timer"] <= numbers["gc_cycles_max"]
    assert sum(decision.reason is DeferralReason.GC_EXHAUSTED for decision in decisions) <= bounds.dead
    assert sum(decision.reason is DeferralReason.LANE_FULL for decision in decisions) + len(fired) <= bounds.examined
    for payer, balance in balances.items():
        assert sum(decision.max_cost for decision in fired if decision.timer.fee_payer == payer) <= balance
    assert all((decision.reason is None) == (decision.verdict is not Verdict.DEFER) for decision in decisions)


@settings(max_examples=300, deadline=None)
@given(scenes())
@pytest.mark.spec("F-75")
def test_expired_timers_change_nothing_for_the_living(scene: Scene) -> None:
    """Without them, and with what they use up of the clean-up budget, every living timer has the same fate."""
    due, balances, numbers, bounds = scene
    dead = [timer for timer in due if timer.expires_at < HEIGHT]
    told = [(each.timer, each.verdict, each.available) for each in decide(*scene)[0] if each.timer not in dead]
    spent = min(len(dead), numbers["gc_cycles_max"] // numbers["gc_cycles_per_timer"])
    kept = min(len(dead) - spent, bounds.dead)
    assume(kept < bounds.dead)
    left = numbers | {"gc_cycles_max": numbers["gc_cycles_max"] - spent * numbers["gc_cycles_per_timer"]}
    alone = decide(
        [timer for timer in due if timer not in dead], balances, left, Bounds(bounds.examined, bounds.dead - kept)
    )
    assert told == [(each.timer, each.verdict, each.available) for each in alone[0]]


@settings(max_examples=100, deadline=None)
@given(scenes())
@pytest.mark.spec("F-80", "F-82")
def test_selection_is_the_same_when_asked_twice(scene: Scene) -> None:
    """A mechanism keeps nothing between calls: a rehearsal or a replay sees what the block saw."""
    due, balances, numbers, bounds = scene
    fifo, context = build(bounds), make_context(balances, numbers)
    first, second = (list(fifo.select(due_apart(due, HEIGHT), context)) for _ in range(2))
    assert first == second == decide(*scene)[0]
