"""Charts and maps show what there is, however large prices and heights become."""

import pytest

from tests.unit.explorer.standin import ask, look, section, stand_in
from tests.unit.explorer.test_pages import built
from trailboss.explorer.documents import HALF, Chart
from trailboss.explorer.links import CALENDAR
from trailboss.explorer.pages.calendar import calendar
from trailboss.explorer.renderer import chart_svg, section_html


@pytest.mark.parametrize("bars", [True, False])
@pytest.mark.parametrize("values", [[2**127, None, 3], [0, 0, 0], [1_000, 1_000, 1_000], [0.5, 2, None]])
def test_chart_is_drawn_whatever_its_values_are(values: list[int | float | None], *, bars: bool) -> None:
    """It has no script and no style of its own, and loads nothing."""
    chart = Chart("k", "t", "l", [1, 2, 3], [("Price", values), ("Other", [3, 0.5, 4])], bars=bars, span=HALF)
    drawn = chart_svg(chart)
    assert drawn.startswith("<svg")
    for word in ("<script", "<style", "<!--", "href", ' id="'):
        assert word not in drawn
    assert drawn.count("series serie-") >= 2
    assert chart_svg(chart) == drawn


def test_chart_of_one_point_shows_a_dot() -> None:
    """A line of one point has no length."""
    assert "<circle" in chart_svg(Chart("k", "t", "l", [1], [("Price", [7])]))


def test_chart_has_its_values_as_a_table() -> None:
    """Screen readers and tips read exact numbers, with a mark for a gap."""
    html = section_html(Chart("k", "t", "what it shows", [8, 9], [("Price", [2**90, None])]))
    assert "<caption>what it shows</caption>" in html
    assert f"<th scope=row>8</th><td>{2**90:,}</td>" in html
    assert "<th scope=row>9</th><td>·</td>" in html


def test_calendar_is_exact_when_a_height_is_huge() -> None:
    """The map of the overflow ends with the last timer."""
    node = stand_in("fifo", 1, params={"timers.max_ttl_blocks": 2**63})
    last = 2**63
    node.scene.chain.schedule(last)
    node.index.apply(node.chain.blocks[node.index.height + 1 :])
    node.view = node.chain.publish()
    found = section(built(calendar(look(node), ask(CALENDAR), "")), "overflow")
    assert found.cells[-1].last == last
    assert [cell.count for cell in found.cells if cell.count] == [1]
    node.close()
