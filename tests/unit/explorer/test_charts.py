"""Charts and maps hold what a browser can hold, however large prices and heights become."""

from nicegui import json

from tests.unit.explorer.standin import ask, look, section, stand_in
from tests.unit.explorer.test_pages import built
from trailboss.explorer.charts import line_chart
from trailboss.explorer.documents import encoded
from trailboss.explorer.links import CALENDAR
from trailboss.explorer.pages.calendar import calendar


def test_chart_is_sent_when_a_price_is_huge() -> None:
    """The encoder of the socket refuses whole numbers of more than 64 bits."""
    chart = line_chart("k", "t", [1, 2], [("Price", [2**127, None]), ("Other", [3, 0.5])], label="l")
    sent = json.loads(json.dumps(encoded(chart)))
    assert sent["options"]["series"][0]["data"] == [2.0**127, None]
    assert sent["options"]["series"][1]["data"] == [3, 0.5]


def test_calendar_is_exact_when_a_height_is_huge() -> None:
    """Heights that a browser would round are sent as text, and the map of the overflow ends with the last timer."""
    node = stand_in("fifo", 1, params={"timers.max_ttl_blocks": 2**63})
    last = 2**63
    node.scene.chain.schedule(last)
    node.index.apply(node.chain.blocks[node.index.height + 1 :])
    node.view = node.chain.publish()
    found = section(built(calendar(look(node), ask(CALENDAR), "")), "overflow")
    assert found.cells[-1].last == str(last)
    assert [cell.count for cell in found.cells if cell.count] == [1]
    json.dumps(encoded(found))
    node.close()
