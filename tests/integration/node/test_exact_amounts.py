"""Amounts above 2⁵³ - 1 reach a client of JavaScript: each has its text beside it, in every answer."""

import json
from collections.abc import Iterator

import pytest

from tests.integration.node.apis import Api, lively_chain, serve
from tests.unit.codec.test_exact import lacking
from trailboss.api.operations import GET, JSON
from trailboss.api.routes import OPERATIONS
from trailboss.api.sse import EncodedBlocks
from trailboss.model.transactions import SetBalance
from trailboss.primitives.octets import Hash32

RICH = 2**100 + 1


@pytest.fixture(scope="module", params=["fifo", "lane", "auction", "globalbox"])
def rich(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A node of each mechanism, on whose chain an actor is rich."""
    chain, actor = lively_chain(request.param)
    chain.system(SetBalance(actor.address, RICH), sender=chain.deployer)
    chain.mine(3)
    with serve(chain, development=True) as api:
        yield api


def test_balance_has_its_text_when_it_is_large(rich: Api) -> None:
    """Beside the number, which stays where the public node has it."""
    [(address, _)] = [item for item in rich.node.view.accounts() if rich.node.view.balance(item[0]) > 2**99]
    found = rich.get(f"/account/0x{address.hex()}")
    assert found["balance_text"] == str(found["balance"])
    assert found["balance"] > 2**99
    assert "nonce_text" not in found


def test_every_answer_has_texts_whatever_is_asked(rich: Api) -> None:
    """Every GET of the API, with what the chain knows, and every block and event of the stream."""
    view = rich.node.view
    [richest] = [address for address, _ in view.accounts() if view.balance(address) > 2**99]
    known = {
        "address": f"0x{richest.hex()}",
        "payer": f"0x{richest.hex()}",
        "timer_id": rich.get("/timers?state=all")["timers"][0]["timer_id"],
        "hash": str(Hash32(view.head.receipts[0].origin_hash)) if view.head.receipts else "0x" + "00" * 32,
        "block": "latest",
        "height": str(view.height),
        "subject": str(view.height),
        "job": "1",
        "view": str(rich.post("/state/views", {})["view"]),
    }
    asked = [operation.path for operation in OPERATIONS if operation.method == GET and operation.produces == JSON]
    texts = 0
    for path in (*asked, "/openapi.json"):
        required = "?height=50&gas_limit=60000" if path == "/quote" else ""
        answer = rich.request("GET", path.format_map(known) + required)
        assert lacking(answer.json()) == [], path
        texts += "_text" in answer.text
    assert texts > 5
    tellings = EncodedBlocks()
    lines = b"".join(tellings.of(block).text() for block in view.blocks).splitlines()
    told = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
    assert [each for document in told for each in lacking(document)] == []
    assert any("_text" in json.dumps(document) for document in told)
