"""What nodes say of themselves when they are asked from outside, and what is shown of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from msgspec.structs import replace

from tests.event_loop import on_loop
from trailboss.chain.opening import GenesisOptions
from trailboss.cli import network_board
from trailboss.cli.network_board import agreement_words, network_document, node_rows
from trailboss.network.home import Home, StateSync
from trailboss.network.supervisor import NodeState, SupervisedNode
from trailboss.network.survey import Agreement, compare, survey, trust
from trailboss.network.testnet import Plan, create_testnet
from trailboss.primitives.errors import ConfigurationError

ROOTS: Final = {9: "0x" + "9a" * 32, 7: "0x" + "7a" * 32}
HASH: Final = "AB" * 32


@pytest.fixture
def homes(tmp_path: Path) -> list[Home]:
    """Return the homes of three validators."""
    plan = Plan(validators=3, genesis=GenesisOptions(vm="native"), seed="s")
    return create_testnet(tmp_path / "net", plan, 1_700_000_000_000)


class World:
    """Three nodes: at height 9, at height 7 and still fetching blocks, and one that does not answer."""

    def __init__(self, homes: list[Home]) -> None:
        self.answers: dict[str, Any] = {}
        for home, height in zip(homes, (9, 7), strict=False):
            self.answers |= {
                f"{home.api_url}/status": {
                    "height": height,
                    "state_root": ROOTS[height],
                    "genesis": {"instance_id": f"0x{home.genesis.instance_id().hex()}"},
                },
                f"{home.api_url}/block/7?limit=1": {"hash": "0x" + "77" * 32, "header": {"state_root": ROOTS[7]}},
                f"{home.rpc_url}/status": {
                    "result": {
                        "node_info": {"network": home.genesis.engine_chain_id()},
                        "sync_info": {"catching_up": height == 7, "latest_block_height": str(height)},
                    }
                },
                f"{home.rpc_url}/net_info": {"result": {"n_peers": "1"}},
                f"{home.rpc_url}/commit": {"result": {"signed_header": {"header": {"height": str(height)}}}},
                f"{home.rpc_url}/commit?height=8": {
                    "result": {"signed_header": {"commit": {"block_id": {"hash": HASH}}}}
                },
            }

    def client(self) -> httpx.AsyncClient:
        """Return a client of this world alone."""
        return httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        found = self.answers.get(str(request.url))
        if found is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json=found)


@on_loop
async def test_nodes_are_compared_where_all_have_been(homes: list[Home]) -> None:
    """At the lowest height of those that answer; one other block, or one other root, is a difference."""
    world = World(homes)
    async with world.client() as client:
        standings = await survey(homes, client)
        assert [(each.height, each.is_behind, each.peers) for each in standings] == [
            (9, False, 1),
            (7, True, 1),
            (None, None, None),
        ]
        agreement = await compare(homes, standings, client)
        assert (agreement.height, agreement.is_whole, len(agreement.blocks)) == (7, True, 2)
        assert agreement_words(agreement).startswith("at height 7 all 2 nodes that answer have block 0x7777")
        block = world.answers[f"{homes[1].api_url}/block/7?limit=1"]
        block["header"]["state_root"] = ROOTS[9]
        agreement = await compare(homes, standings, client)
        assert not agreement.is_whole
        assert "NODES DIFFER at height 7: node0" in agreement_words(agreement)
        document = network_document(standings, agreement)
        assert (document["agree"], document["height"]) == (False, 7)
    nobody = Agreement(None, {})
    assert (nobody.is_whole, agreement_words(nobody)) == (False, "no node answers")
    one = Agreement(7, {"node0": ("0x1", "0x2")})
    assert agreement_words(one) == "at height 7 the one node that answers has block 0x1 and state root 0x2"


@on_loop
async def test_another_network_on_the_same_ports_is_none_of_ours(homes: list[Home]) -> None:
    """Its nodes answer in the place of ours, and nothing that they say is about ours."""
    other = [replace(home, genesis=replace(home.genesis, chain_id=2)) for home in homes]
    async with World(homes).client() as client:
        standings = await survey(other, client)
        assert [(each.height, each.engine_height) for each in standings] == [(None, None)] * 3
        with pytest.raises(ConfigurationError, match="no node of the network answers"):
            await trust(other, client)


@on_loop
async def test_rows_say_who_is_behind_and_who_has_halted(homes: list[Home]) -> None:
    """What a node says itself, and what its supervisor knows where it says nothing."""
    async with World(homes).client() as client:
        standings = await survey(homes, client)
    assert [row[1:6] for row in node_rows(standings)] == [
        ("runs", "9", "0", "1", None),
        ("catches up", "7", "2", "1", None),
        ("does not answer", None, None, None, None),
    ]
    nodes = [SupervisedNode(home, lambda _: (), lambda _: None, ()) for home in homes]
    for node, state in zip(nodes, (NodeState.RUNS, NodeState.RUNS, NodeState.HALTED), strict=True):
        node.state = state
    nodes[1].restarts = 2
    nodes[2].reason = "height-gap: 3 is not 4; do this (exit status 3)"
    rows = node_rows(standings, nodes)
    assert [(row[1], row[5]) for row in rows] == [("runs", "0"), ("catches up", "2"), ("halted: height-gap", "0")]
    assert [each["state"] for each in network_document(standings, Agreement(None, {}), nodes)["nodes"]] == [
        "runs",
        "runs",
        "halted",
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_board_shows_nodes_as_they_come(
    homes: list[Home], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    """Before there are any, when they do not answer, with notes below: a table in a terminal, lines elsewhere."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(network_board, "LOOK_SECONDS", 0.01)
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    async def show() -> None:
        board = network_board.Board(as_json=False)
        nodes: list[SupervisedNode] = []

        async def supervise() -> None:
            await asyncio.sleep(0.05)
            nodes.extend(SupervisedNode(home, lambda _: (), board.note, ()) for home in homes)
            board.note("node0 runs as process 7")
            await asyncio.sleep(0.2)

        await board.run(nodes, asyncio.create_task(supervise()))

    asyncio.run(show())
    shown = capsys.readouterr()
    assert ("node2" in shown.out and "API and explorer" in shown.out) is is_terminal
    assert "node0 runs as process 7" in (shown.out if is_terminal else shown.err)


@on_loop
async def test_new_node_trusts_what_two_agree_on(homes: list[Home]) -> None:
    """The block before the last; it trusts nobody if they differ, one has no such block, or none answers."""
    world = World(homes)
    async with world.client() as client:
        wanted = StateSync(tuple(str(home.rpc) for home in homes[:2]), 8, "0x" + HASH.lower())
        assert await trust(homes, client) == wanted
        lone = await trust(homes[:1], client)
        assert lone.servers == (str(homes[0].rpc),) * 2
        other = {"result": {"signed_header": {"commit": {"block_id": {"hash": "CD" * 32}}}}}
        changes: list[tuple[Callable[[], Any], str]] = [
            (lambda: world.answers.update({f"{homes[1].rpc_url}/commit?height=8": other}), "have different blocks"),
            (lambda: world.answers.pop(f"{homes[1].rpc_url}/commit?height=8"), "of node1 does not have block 8 yet"),
            (world.answers.clear, "no node of the network answers"),
        ]
        for change, words in changes:
            change()
            with pytest.raises(ConfigurationError, match=words):
                await trust(homes, client)
