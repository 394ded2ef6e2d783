"""The agents of a scenario on a chain that runs."""

from pathlib import Path

import pytest

from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_unsigned
from trailboss.model.transactions import transaction_hash
from trailboss.simulator.live import LiveCrowd
from trailboss.simulator.scenario import parse_scenario
from trailboss.testing import LocalChain

SCENARIO = """
name = "four kinds"
blocks = 100

[[agents]]
kind = "poisson"
name = "owner"
actors = 2
rate = 1
value = 50_000
offer = {kind = "best_response"}

[[agents]]
kind = "loop"
name = "clock"
actors = 2
every = 4

[[agents]]
kind = "traffic"
name = "users"
rate = 1
"""


def play(chain: LocalChain, blocks: int) -> LiveCrowd:
    crowd = LiveCrowd(parse_scenario(SCENARIO), chain.chain)
    for _ in range(blocks):
        transactions, waiting = [], dict[str, int]()
        asked = [(draft, None) for draft in crowd.preparation(chain.chain)]
        asked += [(draft, (number, order)) for draft, number, order in crowd.orders(chain.chain)]
        for draft, order in asked:
            sender, before = development_account(draft.sender).address, waiting.get(draft.sender, 0)
            made = draft_unsigned(chain.chain, draft.instruction, sender, terms=draft.terms, waiting=before)
            waiting[draft.sender] = before + 1
            transactions.append(made)
            if order is not None:
                crowd.sent(transaction_hash(made), *order)
        applied = chain.chain.build(transactions)
        assert applied.refused == ()
        crowd.record(chain.chain, applied.block)
    return crowd


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_agents_act_on_a_chain_that_runs(mechanism: str) -> None:
    """They schedule, fire and follow their fires, none of their orders reverts, and the money adds up."""
    with LocalChain(mechanism=mechanism) as chain:
        play(chain, 40)
        receipts = chain.receipts()
        assert [each.error for each in receipts if not each.ok] == []
        assert sum(each.origin == "timer" for each in receipts) > 30
        chain.check_invariants()


def test_crowd_draws_the_same_when_it_is_played_again() -> None:
    """Two chains have one root."""
    roots = []
    for _ in range(2):
        with LocalChain(mechanism="lane") as chain:
            play(chain, 20)
            roots.append(chain.state_root)
    assert roots[0] == roots[1]


def test_examples_are_read_by_a_crowd(chain: LocalChain) -> None:
    """Every scenario that is shipped makes one."""
    for path in sorted(Path("examples/scenarios").glob("*.toml")):
        assert LiveCrowd(parse_scenario(path.read_text()), chain.chain).preparation(chain.chain)
