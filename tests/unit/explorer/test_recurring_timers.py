"""An actor's page shows its recurring timers and their last runs, whatever the actor wrote there."""

from collections.abc import Iterator

import pytest

from tests.integration.recurring import call, deploy_planner
from tests.unit.explorer.standin import StandIn, ask, look, section, words
from tests.unit.explorer.test_pages import built
from tools.explorer_scene import Scene
from trailboss.explorer.pages.accounts import actor
from trailboss.explorer.renderer import section_html
from trailboss.testing import ActorHandle, LocalChain

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")
MARKUP = "<b>\u202e"


@pytest.fixture
def planner() -> Iterator[tuple[StandIn, ActorHandle]]:
    chain = LocalChain()
    planner = deploy_planner(chain)
    call(chain, planner, "plan", blocks=10, attempts=2)
    call(chain, planner, "plan", name=MARKUP, blocks=1_000)
    chain.advance_to(13)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(22)
    node = StandIn(Scene(chain, "fifo"))
    yield node, planner
    node.close()


def test_actor_page_shows_schedules_and_their_last_runs(planner: tuple[StandIn, ActorHandle]) -> None:
    """Period, next run, counts; and each run with its outcome and reason."""
    node, handle = planner
    document = built(actor(look(node), ask(), str(handle.address)))  # checks links, keys and characters

    (forged, job) = section(document, "schedules").rows
    shown = [words(content) for content in job.cells]
    assert shown[:4] == ["job", "10", "grid", "work"]
    assert shown[4].startswith("23, attempt 2 0x")
    assert shown[5:] == ["1", "0", "0", "0"]
    assert "\u202e" not in words(forged.cells[0])
    runs = [[words(content) for content in row.cells] for row in section(document, "runs").rows]
    assert [(row[0], row[2], row[6]) for row in runs] == [("22", "22", "retried"), ("12", "12", "ok")]
    assert runs[0][7] == "E1210 pvm_error: ValueError: slot 22 is broken"
    html = "".join(section_html(section(document, key)) for key in ("schedules", "runs"))
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_actor_without_schedules_has_no_such_table(lane: StandIn) -> None:
    """The page of every other actor stays as it was."""
    handle = next(iter(lane.scene.actors.values()))
    document = built(actor(look(lane), ask(), str(handle.address)))

    assert not {"schedules", "runs"} & {part.key for part in document.sections}
