"""Simulations and forecasts of a node: the same as the chain's own, and nothing waits for them."""

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest

from tests.integration.node.apis import Api, serve
from tests.integration.simulations import arm, busy
from trailboss.codec.layout import INSTRUCTION
from trailboss.model.transactions import ExecuteActor, Transfer
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.json_values import to_json_value

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.parties.ChainWarning")
BOB = "0x" + "42" * 20


@pytest.fixture(params=["fifo", "lane", "auction", "globalbox"])
def busy_api(request: pytest.FixtureRequest) -> Iterator[tuple[Api, ActorHandle]]:
    """Yield a node, and an actor on it that has timers."""
    chain = LocalChain(mechanism=request.param)
    actor = busy(chain, request.param)
    arm(actor, f"count/:{chain.height + 5}:100000", f"raise/:{chain.height + 7}:100000")
    with serve(chain) as api:
        yield api, actor


def call_of(actor: ActorHandle, word: bytes) -> dict[str, Any]:
    """Return the body of a simulated call."""
    call = INSTRUCTION.show(ExecuteActor(actor.address, "do", word))
    return {"sender": str(actor.chain.accounts[1].address), "instruction": call}


def test_node_answers_as_the_chain_does(busy_api: tuple[Api, ActorHandle]) -> None:
    """Receipts, forecasts and quotes, on a chain that stays where it is."""
    api, actor = busy_api
    chain, height = api.local, api.get("/height")
    for word in (b"count/", b"deep/raise/", b"spin/"):
        told = api.post("/simulate", call_of(actor, word))
        assert told == to_json_value(actor.simulate("do", word, sender=chain.accounts[1]))
    for timer in chain.timers():
        told = api.post("/simulate/fire", {"timer_id": str(timer.timer_id)})
        assert told == to_json_value(chain.simulate_fire(timer.timer_id))
        [row] = api.get(f"/forecast?timer_id={timer.timer_id}")["timers"]
        assert (row["block"], row["paid"]) == (told["block_height"], told["fee_paid"])
    ahead = api.get("/forecast?blocks=20")
    assert ahead["timers"] == to_json_value(chain.forecast(20).timers)
    assert [each["outcome"] for each in api.get("/forecast?blocks=20&offset=1")["timers"]] == ["reverts"]
    assert api.get("/height") == height
    chain.check_invariants()


def test_overrides_and_earlier_heights_are_read_strictly(busy_api: tuple[Api, ActorHandle]) -> None:
    """What is wrong is named, and what is right holds for one answer."""
    api, actor = busy_api
    body, address = call_of(actor, b"count/"), str(actor.address)
    rich = {"balances": {BOB: 10**15}, "slots": {address: {"0x636f756e74": "0x3431", "0x61743a31": None}}}
    told = api.post("/simulate", {**body, "sender": BOB, "overrides": rich})
    assert (told["status"], told["payer"]) == ("ok", BOB)
    coded = {"code": {address: "def do(payload):\n    return b'other'\n"}}
    assert api.post("/simulate", {**body, "overrides": coded})["return_value"] == f"0x{b'other'.hex()}"
    assert api.post("/simulate", {**body, "height": 1})["block_height"] == 2
    for wrong, what in (
        ({"balance": {}}, "there is no override 'balance'; there are balances, slots, code, cycle_basefee"),
        ({"balances": []}, "the override of balances is list, it must be an object of addresses"),
        ({"balances": {BOB: "1"}}, f"the override of balance of {BOB} is '1', it must be an integer within"),
        ({"balances": {"0x12": 1}}, "0x12"),
        ({"slots": {BOB: 5}}, f"the override of the slots of {BOB} is int, it must be an object"),
        ({"slots": {BOB: {"name": "0x"}}}, "the override of a slot's name is 'name', it must be 0x and two"),
        ({"slots": {BOB: {"0x00": "0x0"}}}, "the override of a slot's value is '0x0', it must be 0x and two"),
        ({"code": {BOB: 5}}, f"the override of the code of {BOB} is int, it must be text"),
        ({"code": {BOB: "import os\n"}}, "would not be deployed: line 1, column 1: import of os"),
        ({"cell_basefee": -1}, "the override of cell_basefee is -1, it must be an integer within"),
    ):
        assert what in api.error("POST", "/simulate", 422, json={**body, "overrides": wrong})["what"], wrong
    assert "there is no state of height 99" in api.error("POST", "/simulate", 404, json={**body, "height": 99})["what"]
    gone = api.error("POST", "/simulate/fire", 404, json={"timer_id": "0x" + "42" * 32})
    assert gone["what"].startswith("there is no live timer 0x4242")
    api.error("GET", "/forecast?blocks=1001", 400)


def test_blocks_are_built_and_reads_answered_while_a_simulation_runs() -> None:
    """It has its turn to itself, and nothing else waits for that."""
    with serve(LocalChain(), development=True) as api:
        with api.node.workbench._turn:  # as if one were running
            assert api.post("/dev/mine", {"blocks": 3})["height"] == 3
            assert api.get("/height")["height"] == 3
        transfer = INSTRUCTION.show(Transfer(api.local.accounts[1].address, 5))
        told = api.post("/simulate", {"sender": str(api.local.accounts[0].address), "instruction": transfer})
        assert (told["status"], told["block_height"]) == ("ok", 4)


def test_forecast_of_a_head_is_kept_until_the_next_block() -> None:
    """However often it is asked for; then it goes, for a fork keeps all that the chain changes after it."""
    with serve(LocalChain(), development=True) as api:
        workbench = api.node.workbench
        first = workbench.ahead(api.node.view, 10)
        assert workbench.ahead(api.node.view, 10) is first
        assert workbench.ahead(api.node.view, 20) is not first
        assert workbench.ahead(api.node.view, 10) is first
        fork = ref(first.fork)
        del first
        api.post("/dev/mine", {"blocks": 1})
        gc.collect()
        assert fork() is None
        assert workbench.ahead(api.node.view, 10).forecast.from_height == 1
