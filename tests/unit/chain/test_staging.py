"""A staged block: sealed it is the block that `build` makes; forgotten it never was, in memory and on disk."""

from pathlib import Path

import pytest

from trailboss.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_transaction
from trailboss.chain.export import export_chain, import_chain
from trailboss.chain.replay import verify_chain
from trailboss.execution.genesis import Genesis, decode_genesis, encode_genesis, parse_genesis
from trailboss.model.transactions import Transaction, Transfer
from trailboss.model.validators import Validator
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Address

ALICE, BOB = development_account("account 0"), development_account("account 1")
FEES = Address(b"\x07" * 20)
VALIDATOR = Validator(b"\x01" * 32, 10, FEES)
HEAD = f'chain_id = 7\nproposer = "{ALICE.address}"\n[[validators]]\n'
FULL = f'public_key = "0x{"01" * 32}"\npower = 10\nfee_account = "{FEES}"\n'


def network_genesis() -> Genesis:
    return Genesis(
        chain_id=7, proposer=ALICE.address, accounts={ALICE.address: 10**15, BOB.address: 5}, validators=(VALIDATOR,)
    )


def transfer(chain: Chain) -> Transaction:
    return draft_transaction(chain, Transfer(BOB.address, 3), ALICE.private_key)


def test_forgotten_block_leaves_nothing(tmp_path: Path) -> None:
    """State, views and the reopened chain are those before it; the same height can be staged again and again."""
    with Chain.create(tmp_path / "chain", network_genesis()) as chain:
        root, transaction = chain.state_root, transfer(chain)
        for _ in range(3):
            staged = chain.stage((transaction,), proposer=FEES)
            assert staged.block.height == 1
            chain.forget()
            assert (chain.height, chain.state_root, chain.balance(BOB.address)) == (0, root, 5)
        chain.check_invariants()
        chain.stage((transaction,), proposer=FEES)
    with Chain.open(tmp_path / "chain") as chain:
        assert (chain.height, chain.state_root) == (0, root)
        chain.seal(chain.stage((transaction,), proposer=FEES))
        head = chain.head
    with Chain.open(tmp_path / "chain") as chain:
        assert chain.head == head
        assert chain.balance(BOB.address) == 8


def test_view_of_the_head_stays_as_it_was_while_a_block_is_staged() -> None:
    """What reads between staging and sealing sees the committed state."""
    chain = Chain(network_genesis())
    view = chain.publish()
    staged = chain.stage((transfer(chain),), proposer=FEES)
    assert view.balance(BOB.address) == 5
    chain.seal(staged)
    assert (view.balance(BOB.address), chain.publish().balance(BOB.address)) == (5, 8)


def test_tips_reach_the_proposer_and_replay_finds_it(tmp_path: Path) -> None:
    """The header states the fee account, a replay and an import give the same blocks, and a foreign one is noticed."""
    chain = Chain(network_genesis())
    chain.seal(chain.stage((transfer(chain),), proposer=FEES))
    chain.seal(chain.stage((), proposer=ALICE.address))
    assert [bytes(block.header.proposer) for block in chain.blocks] == [ALICE.address, FEES, ALICE.address]
    assert verify_chain(chain).ok
    export_chain(chain, tmp_path / "export")
    assert list(import_chain(tmp_path / "export").blocks) == list(chain.blocks)
    chain.seal(chain.stage((), proposer=BOB.address))
    report = verify_chain(chain)
    assert not report.ok
    assert "proposer" in str(report)


def test_idle_blocks_of_a_validator_are_replayed_and_exported(tmp_path: Path) -> None:
    """One interval after a block of the same proposer they follow from it alone, whoever the genesis states."""
    chain = Chain(network_genesis())
    chain.seal(chain.stage((transfer(chain),), proposer=FEES))
    for _ in range(3):
        chain.seal(chain.stage((), proposer=FEES))
    assert [bytes(block.header.proposer) for block in chain.blocks][1:] == [FEES] * 4
    assert [block.height for block in chain.blocks.records()] == [0, 1]
    assert verify_chain(chain).ok
    export_chain(chain, tmp_path / "export")
    assert list(import_chain(tmp_path / "export").blocks) == list(chain.blocks)


def test_validators_survive_the_way_through_toml_and_bytes() -> None:
    """The genesis binds them: its digest and the engine's name of the chain follow from them."""
    genesis = parse_genesis(HEAD + FULL)
    assert genesis.validators == (VALIDATOR,)
    assert decode_genesis(encode_genesis(genesis)) == genesis
    alone = parse_genesis(HEAD.removesuffix("[[validators]]\n"))
    assert genesis.engine_chain_id() != alone.engine_chain_id()
    assert len(genesis.engine_chain_id()) <= 50
    assert VALIDATOR.identity.hex() == "72cd6e8422c407fb6d098690f1130b7ded7ec2f7"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FULL + "[[validators]]\n" + FULL, "names a public key twice"),
        (FULL.replace("01" * 32, "01" * 31), "has 31 bytes"),
        (FULL.replace("power = 10", "power = 0"), "must be 1 or more"),
        (FULL.replace("power = 10", f"power = {2**60}"), "must be an integer within"),
        (
            FULL + "[[validators]]\n" + FULL.replace("01" * 32, "02" * 32).replace("= 10", f"= {2**60 - 1}"),
            "votes together",
        ),
        (FULL.replace("power", "weight"), "has exactly the keys"),
        (FULL.replace(f'"{FEES}"', '"0x12"'), "fee_account"),
    ],
)
def test_validators_that_cannot_be_are_refused(text: str, words: str) -> None:
    """Each mistake names its place and the rule."""
    with pytest.raises(ConfigurationError, match=words):
        parse_genesis(HEAD + text)


def test_a_network_is_no_development_chain() -> None:
    """So no block of it holds an unsigned transaction, a set balance or a moved timer, however it is proposed."""
    with pytest.raises(ConfigurationError, match="contradicts validators"):
        parse_genesis("development = true\n" + HEAD + FULL)
