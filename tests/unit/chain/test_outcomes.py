"""What one block came to: its changes are those of the state, and two outcomes name what differs first."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_deployment, draft_transaction
from trailboss.chain.outcomes import BlockOutcome, compare_outcomes, outcome_from_json, outcome_of, read_outcome
from trailboss.execution.genesis import Genesis
from trailboss.model.transactions import Transfer
from trailboss.primitives.errors import Rejection
from trailboss.state.keys import KEY_WIDTHS
from trailboss.views.json_values import to_json_value

ALICE, BOB = development_account("account 0"), development_account("account 1")
TICKS = b"""
def init(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")

def handle_timer(payload):
    pvm_host.set_state(b"at", str(pvm_host.block_height()).encode())
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")
"""


def genesis() -> Genesis:
    return Genesis(chain_id=7, preset="minimal", proposer=BOB.address, accounts={ALICE.address: 10**18})


def grown(chain: Chain, blocks: int) -> list[dict[bytes, bytes]]:
    """Build blocks in which timers fire, and return the whole state after each, genesis first."""

    def state() -> dict[bytes, bytes]:
        return {key: value for namespace in KEY_WIDTHS for key, value in chain.store.iterate(namespace)}

    states = [state()]
    instruction, actor = draft_deployment(ALICE.address, TICKS, b"")
    for height in range(1, blocks + 1):
        drafts = [instruction, Transfer(actor, 10**15)] if height == 1 else []
        chain.build(draft_transaction(chain, each, ALICE.private_key, waiting=at) for at, each in enumerate(drafts))
        states.append(state())
    return states


@pytest.mark.parametrize("is_on_disk", [False, True], ids=["memory", "disk"])
def test_changes_are_what_two_states_differ_in(tmp_path: Path, *, is_on_disk: bool) -> None:
    """Of every block, however long ago, and also while the next one is staged."""
    with Chain.create(tmp_path / "chain", genesis()) if is_on_disk else Chain(genesis()) as chain:
        states = grown(chain, 12)
        staged = chain.stage(())
        for height in range(1, 13):
            changes = chain.store.changes_at(height)
            before, after = states[height - 1], states[height]
            differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            assert differing <= changes.keys()
            assert all(after.get(key) == value for key, value in changes.items())
        chain.seal(staged)


def test_outcomes_name_the_first_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt, the key and the fields, without a replay."""
    right = Chain(genesis())
    grown(right, 3)
    monkeypatch.setattr("trailboss.execution.paid_execution.settle", raised(1), raising=True)
    left = Chain(genesis())
    grown(left, 3)
    parting = compare_outcomes(outcome_of(left, 1), outcome_of(right, 1), ("here", "there"))
    assert parting is not None
    assert parting.height == 1
    assert parting.first("transaction") is None
    assert "fee_burned" in parting.first("receipt").what
    assert "account" in parting.first("state").what
    assert compare_outcomes(outcome_of(right, 2), outcome_of(right, 2), ("here", "there")) is None


def raised(by: int) -> Callable[..., object]:
    from trailboss.execution import paid_execution  # noqa: PLC0415

    original = paid_execution.settle

    def settle(*arguments: object, **named: object) -> object:
        found = original(*arguments, **named)
        return replace(found, burned=found.burned + by, refund=found.refund - by)

    return settle


def test_outcome_survives_json_and_is_checked() -> None:
    """A record of another block, or none at all, is refused."""
    chain = Chain(genesis())
    grown(chain, 3)
    outcome = outcome_of(chain, 2)
    assert outcome_from_json(to_json_value(outcome)) == outcome
    assert read_outcome(outcome) == chain.blocks[2]
    for wrong in (BlockOutcome(3, outcome.block, []), BlockOutcome(2, b"", [])):
        with pytest.raises(Rejection):
            read_outcome(wrong)
    for document in ({}, {"height": 2, "block": "0xzz", "changes": []}, [], {"height": 2, "block": 7, "changes": 1}):
        with pytest.raises(Rejection, match="no outcome"):
            outcome_from_json(document)
    for height in (0, 4):
        with pytest.raises(Rejection, match="is not among those"):
            outcome_of(chain, height)
