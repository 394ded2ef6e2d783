"""The agents of a scenario on a development node."""

from pathlib import Path

import pytest

from tests.integration.node.apis import Api, serve
from trailboss.simulator.live import LiveCrowd
from trailboss.simulator.scenario import read_scenario
from trailboss.testing import LocalChain


def mine(api: Api, blocks: int) -> None:
    """Build blocks one by one, for the agents act after each step."""
    for _ in range(blocks):
        api.post("/dev/mine", {"blocks": 1})


@pytest.mark.slow
def test_agents_act_after_each_block_and_after_a_revert() -> None:
    """None of their orders reverts, and no timer of the blocks that are gone keeps them from going on."""
    with serve(LocalChain(mechanism="lane"), development=True) as api:
        scenario = read_scenario(Path("examples/scenarios/steady.toml"))
        api.node.gather(LiveCrowd(scenario, api.node.view))
        mine(api, 20)
        snapshot = api.post("/dev/snapshot", {})["snapshot"]
        fired = api.node.view.totals().fired
        assert fired > 0
        for _ in range(2):
            mine(api, 6)
            view = api.node.view
            assert view.totals().fired > fired
            assert [each.error for block in view.blocks.records(1) for each in block.receipts if each.error] == []
            api.post("/dev/revert", {"snapshot": snapshot})
            assert api.node.view.totals().fired == fired
