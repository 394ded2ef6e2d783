"""Drafted transactions are ones that the next block takes, and a block of refused ones is none."""

from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.chain.drafts import Terms, draft_deployment, draft_transaction
from trailboss.model.transactions import ExecuteActor, FundActor, Transfer
from trailboss.views.records import build_block

ALICE, BOB = (development_account(account_name(index)) for index in range(2))
SOURCE = b"def echo(payload):\n    return payload\n"


def test_draft_takes_id_nonce_and_fees_from_the_chain() -> None:
    """Twice the basefee plus the tip, unless told otherwise."""
    chain = Chain(development_genesis())
    terms = Terms(max_priority_fee_per_cycle=7, max_fee_per_cell=50_000)
    drafted = draft_transaction(chain, Transfer(BOB.address, 5), ALICE.private_key, terms=terms, waiting=2)
    assert (drafted.chain_id, drafted.nonce, drafted.sender) == (1, 2, ALICE.address)
    assert (drafted.max_fee_per_cycle, drafted.max_fee_per_cell) == (20_007, 50_000)


def test_block_holds_transactions_that_follow_one_another() -> None:
    """An actor is deployed, funded and called in one block."""
    chain = Chain(development_genesis())
    deployment, actor = draft_deployment(ALICE.address, SOURCE, b"salt")
    instructions = (deployment, FundActor(actor, 9), ExecuteActor(actor, "echo", b"hello"))
    receipts = build_block(
        chain,
        [
            draft_transaction(chain, instruction, ALICE.private_key, waiting=index)
            for index, instruction in enumerate(instructions)
        ],
    )
    assert [receipt.status for receipt in receipts] == ["ok"] * 3
    assert (receipts[0].actor, receipts[2].return_value, chain.balance(actor)) == (actor, b"hello", 9)


def test_block_is_not_built_when_every_transaction_is_refused() -> None:
    """A refusal changes nothing, not even the height; beside a good one it is told apart."""
    chain = Chain(development_genesis())
    good = draft_transaction(chain, Transfer(BOB.address, 5), ALICE.private_key)
    late = draft_transaction(chain, Transfer(BOB.address, 5), ALICE.private_key, waiting=5)
    [refused] = build_block(chain, [late])
    assert (refused.status, refused.block_height, chain.height) == ("refused", 1, 0)
    assert [receipt.status for receipt in build_block(chain, [late, good, good])] == ["refused", "ok", "refused"]
    assert chain.height == 1
