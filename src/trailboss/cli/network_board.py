"""What `trailboss testnet start` shows: one table that lives in a terminal, else a line for each thing that happens."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Final

import httpx
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from trailboss.cli.output import Cell, columns, console, fitting_table, note, print_json
from trailboss.network.supervisor import NodeState, SupervisedNode
from trailboss.network.survey import Agreement, NodeStanding, compare, survey
from trailboss.primitives.octets import Hash32

LOOK_SECONDS: Final = 1  # how often the nodes are asked
LINE_SECONDS: Final = 30  # how often a line says how high the network is
NOTES_SHOWN: Final = 5  # below the table
HEADS: Final = columns("node | state | >height | >behind | >peers | >restarts | state root? | API and explorer")


def node_rows(standings: Sequence[NodeStanding], nodes: Sequence[SupervisedNode] = ()) -> list[tuple[Cell, ...]]:
    """Return a row for each node: what it says, and what its supervisor knows if there is one."""
    best = max((each.height for each in standings if each.height is not None), default=0)
    states = {node.home.name: (_state_words(node), str(node.restarts)) for node in nodes}
    rows: list[tuple[Cell, ...]] = []
    for each in standings:
        own = "does not answer" if each.height is None else "catches up" if each.is_behind else "runs"
        state, restarts = states.get(each.name, (own, None))
        rows.append(
            (
                each.name,
                own if state == NodeState.RUNS.value else state,
                None if each.height is None else str(each.height),
                None if each.height is None else str(best - each.height),
                None if each.peers is None else str(each.peers),
                restarts,
                None if each.state_root is None else Hash32.parse(each.state_root),
                each.api_url,
            )
        )
    return rows


def agreement_words(found: Agreement) -> str:
    """Return whether nodes agree, and on what."""
    if found.height is None:
        return "no node answers"
    if found.is_whole:
        block, root = next(iter(found.blocks.values()))
        count = len(found.blocks)
        who = "the one node that answers has" if count == 1 else f"all {count} nodes that answer have"
        return f"at height {found.height} {who} block {block} and state root {root}"
    each = "; ".join(f"{name} block {block}, root {root}" for name, (block, root) in found.blocks.items())
    return f"NODES DIFFER at height {found.height}: {each}"


class Board:
    """Asks the nodes each second, and shows what they say until the supervisor ends."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._notes: list[str] = []
        printer = console()
        self._live = Live(console=printer, auto_refresh=False) if printer.is_terminal and not as_json else None
        self._is_ready = False
        self._said_at = monotonic()

    def note(self, text: str) -> None:
        """Show something that has happened."""
        if self._live is None:
            note(text)
        else:
            self._notes = [*self._notes, text][-NOTES_SHOWN:]

    async def run(self, nodes: Sequence[SupervisedNode], ended: "asyncio.Task[None]") -> None:
        """Show nodes, of which more may come, until a task has ended."""
        async with httpx.AsyncClient() as client:
            if self._live is not None:
                self._live.start()
            try:
                while not ended.done():
                    await self._look(nodes, client)
                    await asyncio.wait((ended,), timeout=LOOK_SECONDS)
            finally:
                if self._live is not None:
                    self._live.stop()

    async def _look(self, nodes: Sequence[SupervisedNode], client: httpx.AsyncClient) -> None:
        nodes = list(nodes)
        homes = [node.home for node in nodes]
        if not homes:
            return
        standings = await survey(homes, client)
        agreement = await compare(homes, standings, client)
        if self._live is not None:
            self._live.update(_table(self._notes, standings, agreement, nodes), refresh=True)
            return
        is_ready = all(each.height for each in standings)
        if is_ready and not self._is_ready:
            self._is_ready = True
            if self._as_json:
                print_json(network_document(standings, agreement, nodes))
            for home in homes:
                self.note(f"{home.name} serves {home.api_url}/")
        elif not self._is_ready or monotonic() - self._said_at < LINE_SECONDS:
            return
        self._said_at = monotonic()
        self.note(agreement_words(agreement))


def network_document(
    standings: Sequence[NodeStanding], agreement: Agreement, nodes: Sequence[SupervisedNode] = ()
) -> dict[str, object]:
    """Return what the nodes say as a JSON document, with what their supervisor knows if there is one."""
    supervised = {
        node.home.name: {
            "state": node.state.value, "process_id": node.process_id, "restarts": node.restarts, "reason": node.reason,
        }
        for node in nodes
    }  # fmt: skip
    return {
        "height": agreement.height,
        "agree": agreement.is_whole,
        "blocks": {name: {"hash": block, "state_root": root} for name, (block, root) in agreement.blocks.items()},
        "nodes": [each.document() | supervised.get(each.name, {}) for each in standings],
    }


def _state_words(node: SupervisedNode) -> str:
    """Return a node's state; of one that has halted also the name of the reason, with which the reason begins."""
    return f"halted: {node.reason.partition(':')[0]}" if node.state is NodeState.HALTED else node.state.value


def _table(
    notes: Sequence[str], standings: Sequence[NodeStanding], agreement: Agreement, nodes: Sequence[SupervisedNode]
) -> RenderableType:
    table = fitting_table(console(), "", HEADS, node_rows(standings, nodes))
    return Group(table, *(Text(line) for line in (agreement_words(agreement), *notes, "Ctrl-C ends all nodes.")))
