"""Applications without an engine, sockets or threads: what the tests of a network drive."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trailboss.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.wire import encode_transaction
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.model.transactions import Instruction
from trailboss.model.validators import Validator
from trailboss.network.application import Application, Committee, Result
from trailboss.node.block_builder import Builder, Clocks
from trailboss.node.options import NETWORK, NodeOptions
from trailboss.primitives.octets import Address, Hash32

ACCOUNTS = [development_account(f"account {number}") for number in range(4)]
VALIDATORS = tuple(Validator(bytes([number + 1]) * 32, 10, Address(bytes([0xF0 + number]) * 20)) for number in range(4))


def network_genesis(**fields: Any) -> Genesis:
    """Return the genesis of a network of four validators and four funded accounts."""
    given = {"overrides": {"governance.genesis_timestamp_ms": 1_000_000}, **fields}
    accounts = {account.address: 10**18 for account in ACCOUNTS}
    return Genesis(chain_id=7, proposer=ACCOUNTS[0].address, accounts=accounts, validators=VALIDATORS, **given)


class Member:
    """One node of a network without its engine: chain, mempool, index, application."""

    def __init__(self, genesis: Genesis, directory: Path | None = None) -> None:
        self.genesis, self.directory = genesis, directory
        self.open()

    def open(self) -> None:
        """Start the application on what is committed."""
        if self.directory is None:
            self.chain = Chain(self.genesis)
        else:
            is_there = self.directory.exists()
            self.chain = Chain.open(self.directory) if is_there else Chain.create(self.directory, self.genesis)
        options = NodeOptions(pace=NETWORK, development=False, directory=self.directory)
        clocks = Clocks(lambda: 0, lambda: 0)
        self.mempool, self.index = Mempool(), Index.open(None, self.chain)
        self.builder = Builder(
            *(self.chain, self.mempool, self.index, options, clocks),
            announce=lambda _: None,
            is_stopping=lambda: False,
        )
        self.application = Application(self.builder, self.mempool)

    def begin(self) -> Hash32:
        """Begin the chain as an engine does."""
        genesis = self.genesis
        validators = [(each.public_key, each.power) for each in genesis.validators]
        time_ms = genesis.params().governance.genesis_timestamp_ms
        return self.application.begin(genesis.engine_chain_id(), time_ms, validators, encode_genesis(genesis), 1)

    def finalize(self, transactions: Sequence[bytes] = (), proposer: int = 0) -> tuple[list[Result], Hash32]:
        """Finalize the next block, a second after the last one."""
        height = self.chain.blocks.height + 1
        return self.application.finalize(
            height, (1_000_000 + 1_000 * height) * 1_000_000, transactions, Committee(VALIDATORS[proposer].identity)
        )

    def close(self) -> None:
        """Close the chain, what is staged with it."""
        self.index.close()
        self.chain.close()


def signed(chain: Chain, instruction: Instruction, sender: int = 0, *, waiting: int = 0) -> bytes:
    """Return the wire bytes of a transaction for the next block."""
    return encode_transaction(draft_transaction(chain, instruction, ACCOUNTS[sender].private_key, waiting=waiting))
