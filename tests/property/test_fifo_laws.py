"""CIP-5's mechanism against an independent slow reading, and the bounds that must hold whatever is due."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Decision, DueTimers, Rest, Verdict
from trailboss.mechanisms.context import LaneContext
from trailboss.mechanisms.fifo import build_fifo
from trailboss.model.decisions import Stop
from trailboss.model.timers import RECORD_VERSION, Timer
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


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Timer], dict[bytes, int], dict[str, int], int]:
    """Draw due timers, balances, the numbers of a context and a bound, all small enough to collide."""
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
    return draw(due_timers()), balances, numbers, draw(st.integers(1, 45))


def slow_reading(
    due: list[Timer], balances: dict[bytes, int], numbers: dict[str, int], bound: int
) -> list[tuple[bytes, str, str | None]]:
    """Read the rules literally: every budget is summed up anew from the outcomes so far."""
    outcomes: list[tuple[bytes, str, str | None]] = []
    fired: list[Timer] = []
    removed = 0

    def price(timer: Timer) -> int:
        cells = numbers["max_cells_per_fire"] * numbers["cell_basefee"]
        return timer.gas_limit * numbers["cycle_basefee"] + cells

    for timer in due[:bound]:
        charged = sum(price(earlier) for earlier in fired if earlier.fee_payer == timer.fee_payer)
        in_time = numbers["height"] <= timer.expires_at
        funded = balances[timer.fee_payer] - charged >= price(timer)
        if in_time and funded:
            if sum(earlier.gas_limit for earlier in fired) + timer.gas_limit <= numbers["lane_cycles_max"]:
                fired.append(timer)
                outcomes.append((timer.timer_id, "fire", None))
            else:
                outcomes.append((timer.timer_id, "defer", "lane_full"))
        elif (removed + 1) * numbers["gc_cycles_per_timer"] <= numbers["gc_cycles_max"]:
            removed += 1
            outcomes.append((timer.timer_id, "unfund" if in_time else "expire", None))
        else:
            outcomes.append((timer.timer_id, "defer", "gc_exhausted"))
    return outcomes


def decide(
    due: list[Timer], balances: dict[bytes, int], numbers: dict[str, int], bound: int, waiting: int = 1_000
) -> tuple[list[Decision], Rest]:
    """Return all decisions about due timers, and what is left; those beyond the first ``waiting`` join just now."""
    fifo = build_fifo(load_params(overrides={"timers.due_examined_max": bound}))
    lane = numbers["lane_cycles_max"]
    context = LaneContext(balance_of=balances.__getitem__, lane_cycles_left=lambda: lane, **numbers)
    selection = fifo.select(DueTimers(iter(due[:waiting]), due[waiting:]), context)
    return list(selection), selection.rest()


@settings(max_examples=300, deadline=None)
@given(scenes())
@pytest.mark.spec("F-41", "F-51", "F-52", "F-74", "F-75", "F-76")
def test_selection_equals_the_slow_reading(scene: tuple[list[Timer], dict[bytes, int], dict[str, int], int]) -> None:
    """Verdicts and reasons agree timer by timer, and so does what is left unexamined."""
    due, balances, numbers, bound = scene
    decisions, rest = decide(due, balances, numbers, bound)
    told = [(d.timer.timer_id, str(d.verdict), None if d.reason is None else str(d.reason)) for d in decisions]
    assert told == slow_reading(due, balances, numbers, bound)
    assert len(decisions) == min(len(due), bound)
    assert rest == Rest(stopped=Stop.EXAMINED_MAX if len(due) > bound else Stop.NONE_LEFT)


@settings(max_examples=300, deadline=None)
@given(scenes())
@pytest.mark.spec("F-05", "F-63", "F-74", "F-75")
def test_no_budget_is_overdrawn_and_order_is_kept(
    scene: tuple[list[Timer], dict[bytes, int], dict[str, int], int],
) -> None:
    """Lane, clean-up budget and balances suffice for what is decided; decisions come in due order."""
    due, balances, numbers, bound = scene
    decisions, _ = decide(due, balances, numbers, bound)
    prices = Prices(numbers["cycle_basefee"], numbers["cell_basefee"])
    assert all(decision.prices == prices for decision in decisions)
    assert [(decision.rank, decision.gas_limit) for decision in decisions] == [
        (number, timer.gas_limit) for number, timer in enumerate(due[: len(decisions)], start=1)
    ]
    assert [decision.timer for decision in decisions] == due[: len(decisions)]
    fired = [decision for decision in decisions if decision.verdict is Verdict.FIRE]
    ended = [decision for decision in decisions if decision.verdict in (Verdict.EXPIRE, Verdict.UNFUND)]
    assert sum(decision.timer.gas_limit for decision in fired) <= numbers["lane_cycles_max"]
    assert len(ended) * numbers["gc_cycles_per_timer"] <= numbers["gc_cycles_max"]
    for payer, balance in balances.items():
        assert sum(decision.max_cost for decision in fired if decision.timer.fee_payer == payer) <= balance
    assert all((decision.reason is None) == (decision.verdict is not Verdict.DEFER) for decision in decisions)


@settings(max_examples=100, deadline=None)
@given(scenes(), st.integers(0, 40))
@pytest.mark.spec("F-80", "F-82")
def test_selection_is_the_same_when_asked_twice(
    scene: tuple[list[Timer], dict[bytes, int], dict[str, int], int], waiting: int
) -> None:
    """A mechanism keeps nothing between calls: a rehearsal or a replay sees what the block saw.

    Nor does it matter which of the due timers have waited before.
    """
    due, balances, numbers, bound = scene
    fifo = build_fifo(load_params(overrides={"timers.due_examined_max": bound}))
    lane = numbers["lane_cycles_max"]
    context = LaneContext(balance_of=balances.__getitem__, lane_cycles_left=lambda: lane, **numbers)
    first, second = (list(fifo.select(DueTimers(due), context)) for _ in range(2))
    assert first == second == decide(due, balances, numbers, bound, waiting)[0]
