"""A runway by the index is the one that the whole state gives, and says when it has not seen all."""

import pytest

from tests.unit.explorer.standin import StandIn, look
from trailboss.explorer import page_context as reading_module
from trailboss.forecast.runway import runway_of
from trailboss.views.recent_blocks import BLOCKS, recent_blocks
from trailboss.views.timer_list import TimerFilter


def test_runway_is_the_same_when_an_index_names_the_timers(lane: StandIn) -> None:
    """Whoever knows the payer's timers and the recent blocks spares the walk, and changes nothing."""
    recent = recent_blocks(lane.view, BLOCKS)
    people = [handle.address for handle in lane.scene.actors.values()]
    for payer in (*people, lane.scene.chain.accounts[1].address, lane.scene.chain.accounts[9].address):
        walked = runway_of(lane.view, payer)
        ids = lane.index.live_timers(TimerFilter(payer=payer), lane.view.height, 0, 1_000).items
        assert runway_of(lane.view, payer, timers=ids, recent=recent) == walked
        assert look(lane).runway(payer) == walked


def test_runway_says_so_when_there_are_more_timers_than_it_looks_at(
    lane: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lowest heights are counted, and a note says that there are more."""
    planner = lane.scene.actors["planner"].address
    ids = [timer.timer_id for timer in lane.view.timers() if timer.fee_payer == planner]
    found = runway_of(lane.view, planner, most=5, timers=ids)
    assert (found.timers, found.has_more) == (5, True)
    assert "more than 5 timers" in found.notes[0]
    assert runway_of(lane.view, planner, most=5) == found
    assert not runway_of(lane.view, planner, most=len(ids), timers=ids).has_more
    monkeypatch.setattr(reading_module, "PAID_TIMERS_MAX", 5)
    assert look(lane).runway(planner) == found
