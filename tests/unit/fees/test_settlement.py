"""What is reserved comes back, is burned, or is a tip; nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.fees import Prices, max_cost, offered_tip, settle

price = st.integers(0, 10**20)
unit = st.integers(0, 10**6)


@pytest.mark.spec("F-62")
def test_max_cost_is_the_formula_of_the_text_when_there_is_no_tip() -> None:
    """The gas limit × cycle basefee + cells × cell basefee."""
    assert max_cost(550_000, 550_000, Prices(10_000, 10_000)) == 11_000_000_000


@pytest.mark.spec("L-06")
def test_max_cost_has_tip_and_lane_basefee_per_cycle_when_there_is_a_market() -> None:
    """Cycles at all three prices, cells at their basefee: nothing else is pre-charged."""
    prices = Prices(10_000, 20_000, cycle_tip=300, lane_basefee=4_000)
    assert max_cost(250_000, 550_000, prices) == 250_000 * 14_300 + 550_000 * 20_000


@pytest.mark.spec("F-63", "F-65", "E-04", "L-07")
@given(
    prices=st.builds(Prices, price, price, price, price, price), limits=st.tuples(unit, unit), share=st.integers(0, 100)
)
def test_settlement_splits_the_reservation_when_less_is_used(prices: Prices, limits: tuple, share: int) -> None:
    """Burned, tip and refund add up to what was reserved; the basefees alone are burned, the lane's counted apart."""
    cycles, cells = (limit * share // 100 for limit in limits)
    reserved = max_cost(*limits, prices)
    outcome = settle(reserved, cycles, cells, prices)
    assert outcome.burned + outcome.tip + outcome.refund == reserved
    assert outcome.lane_burned == cycles * prices.lane_basefee
    assert outcome.burned - outcome.lane_burned == cycles * prices.cycle_basefee + cells * prices.cell_basefee
    assert outcome.tip == cycles * prices.cycle_tip + cells * prices.cell_tip
    assert outcome.refund >= 0
    assert outcome.paid == max_cost(cycles, cells, prices)


@pytest.mark.spec("E-03")
@pytest.mark.parametrize(("max_fee", "priority", "expected"), [(150, 20, 20), (110, 20, 10), (100, 20, 0)])
def test_tip_is_held_under_the_cap_when_the_basefee_takes_most_of_it(
    max_fee: int, priority: int, expected: int
) -> None:
    """The cap covers basefee and tip together."""
    assert offered_tip(max_fee, priority, basefee=100) == expected
