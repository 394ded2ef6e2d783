"""A node that stands still until a test moves it: a real chain with a scene on it, its index, a mempool and a feed."""

from types import SimpleNamespace
from typing import Any

from tools.explorer_scene import Scene, open_scene
from trailboss.explorer.address_labels import Names, fixed_names
from trailboss.explorer.documents import Cell, Document, Notice, PageTable, Section, Steps
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.model.timers import Timer
from trailboss.node.block_builder import Published
from trailboss.node.feed import Feed
from trailboss.node.options import NodeOptions
from trailboss.node.traces import TraceRoom
from trailboss.node.workbench import Workbench
from trailboss.primitives.errors import ErrorObject
from trailboss.views.read_only_calls import try_timer


class StandIn:
    """What the explorer needs of a node.

    Attributes:
        scene: Its chain, and those who act there.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.chain = scene.chain.chain
        self.index = Index.open(None, self.chain)
        self.view = self.chain.publish()
        self.mempool = Mempool()
        self.feed = Feed(self.view)
        self.options = NodeOptions()
        self.pace = self.options.pace
        self.health = SimpleNamespace(status="running", reason="")
        self.network = None
        self.traces = TraceRoom(self.index)
        self.workbench = Workbench(self.chain.params, self.chain.genesis.image)

    def step(self) -> None:
        """Play a step of the scene, and publish it."""
        before = self.chain.height
        self.scene.act()
        blocks = tuple(self.chain.blocks[before + 1 :])
        self.index.apply(blocks)
        self.view = self.chain.publish()
        self.feed.publish(Published(view=self.view, blocks=blocks))

    def try_timer(self, timer: Timer) -> ErrorObject | None:
        """Return what a live timer's fire would revert with."""
        return try_timer(self.chain, timer)

    def close(self) -> None:
        """Let go of everything."""
        self.workbench.close()
        self.index.close()
        self.scene.chain.close()


def stand_in(mechanism: str, steps: int, **options: Any) -> StandIn:
    """Return a stand-in after some steps of a scene."""
    return StandIn(open_scene(mechanism, steps, **options))


def look(node: Any) -> Reading:
    """Return a look at a node as it stands."""
    return Reading(node, node.view, Names(node.view, fixed_names(node.view), {}))


def ask(path: str = "/", **parameters: object) -> Query:
    """Return a query."""
    return Query.of(path, {name: str(value) for name, value in parameters.items()})


def section(document: Document, key: str) -> Any:
    """Return a section of a document."""
    return next(each for each in document.sections if each.key == key)


def words(content: tuple[Cell, ...]) -> str:
    """Return the text of cells."""
    return "".join(cell.text for cell in content)


def cells_of(part: Section) -> list[Cell]:
    """Return all cells of a section."""
    match part:
        case PageTable():
            found = [cell for row in part.rows for content in row.cells for cell in content]
            return found + ([part.more] if part.more else [])
        case Steps():
            return [cell for step in part.steps for cell in (*step.when, *step.content)]
        case Notice():
            return list(part.content)
    rows = getattr(part, "rows", ()) or getattr(part, "items", ())
    return [cell for row in rows for cell in (*row.content, *getattr(row, "hint", ()))]
