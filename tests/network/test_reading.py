"""What the API and the explorer of a node say about its network."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.integration.node.apis import Api, serve
from tests.network.nodes import VALIDATORS
from tests.unit.explorer.standin import ask, look, section, words
from tests.unit.explorer.test_pages import built
from trailboss.explorer.links import VALIDATORS as PATH
from trailboss.explorer.pages.validators import validators
from trailboss.node.network import NetworkStatus, ValidatorStatus
from trailboss.primitives.octets import Hash32
from trailboss.testing import LocalChain


class Network:
    """A network in which the second validator has not signed since block 1, and nothing is known of the third."""

    def __init__(self) -> None:
        self.relayed: list[Hash32] = []

    def relay(self, transactions: Sequence[Hash32]) -> None:
        self.relayed.extend(transactions)

    def status(self) -> NetworkStatus:
        return NetworkStatus(
            name="node0",
            engine_chain_id="trailboss-1-00",
            engine="CometBFT 0.38.25",
            engine_restarts=2,
            is_catching_up=False,
            peers=("node1", "node2"),
        )

    def validators(self) -> list[ValidatorStatus]:
        seen = ((9, 8, 9, 9), (0, 1, 9, 1), (0, 0, 0, None))
        return [
            ValidatorStatus(
                identity=each.identity,
                public_key=each.public_key,
                power=each.power,
                fee_account=each.fee_account,
                is_here=each is VALIDATORS[0],
                proposed=proposed,
                signed=signed,
                blocks=blocks,
                last_signed=last,
            )
            for each, (proposed, signed, blocks, last) in zip(VALIDATORS, seen, strict=False)
        ]

    async def signed_header(self, height: int) -> Mapping[str, Any] | None:
        return {"header": {"height": str(height)}} if height < 5 else None


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """A node of a chain of ten blocks in that network."""
    local = LocalChain(preset="minimal")
    local.advance_to(10)
    with serve(local) as served:
        served.node.network = Network()
        yield served


def test_api_shows_node_and_validators(api: Api) -> None:
    """Each validator with its part in the last blocks."""
    found = api.get("/network")
    assert found["height"] == 10
    assert found["node"]["peers"] == ["node1", "node2"]
    assert [each["last_signed"] for each in found["validators"]] == [9, 1, None]


def test_api_gives_signed_headers(api: Api) -> None:
    """As the engine states them; a height that it has not committed is not found."""
    assert api.get("/light/4") == {"height": 4, "signed_header": {"header": {"height": "4"}}}
    assert "no signed header of height 5" in api.error("GET", "/light/5", 404)["what"]


def test_a_chain_of_one_node_has_no_network() -> None:
    """The API and the page say so."""
    with serve(LocalChain()) as api:
        for path in ("/network", "/light/1"):
            assert "without a network" in api.error("GET", path, 404)["what"]
        assert built(validators(look(api.node), ask(PATH), "")).sections[0].title == "There are no validators"


def test_page_shows_who_signs_and_who_is_behind(api: Api) -> None:
    """By the last block that each has signed."""
    document = built(validators(look(api.node), ask(PATH), ""))
    rows = section(document, "validators").rows
    assert [words(row.cells[1]) for row in rows] == ["signs", "behind by 8 blocks", "unknown"]
    assert [words(row.cells[4]) for row in rows[:2]] == ["8 of 9", "1 of 9"]
    assert "this node" in words(rows[0].cells[0])
    facts = {row.label: words(row.content) for row in section(document, "standing").rows}
    assert facts["Connected with"] == "node1, node2"
    assert facts["Engine restarts"] == "2"
