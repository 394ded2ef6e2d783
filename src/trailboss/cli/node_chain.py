"""The chain of a node, with the calls of a local chain."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from trailboss.chain import Chain
from trailboss.chain.development import DEPLOYER, account_name
from trailboss.chain.drafts import Terms
from trailboss.chain.opening import funded_accounts
from trailboss.cli.remote.chain import RemoteChain
from trailboss.model.transactions import Instruction, Transaction
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import FORECAST_BLOCKS, QueueForecast
from trailboss.rehearsal.overrides import Overrides
from trailboss.testing import LocalChain
from trailboss.testing.base_chain import local_account
from trailboss.testing.cheats import Cheats
from trailboss.testing.clock import ClockCalls
from trailboss.testing.label_calls import LabelCalls
from trailboss.testing.outbox import Outbox, read_source
from trailboss.testing.parties import RevertedError, show_printed
from trailboss.testing.simulation import Simulation
from trailboss.testing.timer_calls import TimerCalls
from trailboss.views import Answer, Receipt, TimerLife
from trailboss.views.accounts import known_names
from trailboss.views.labels import LabelBook, labels_in_use, use_labels


class NodeOutbox(Outbox):
    """Sends signed transactions to a node, and waits for their receipts."""

    def __init__(self, remote: RemoteChain) -> None:
        super().__init__(cast(Chain, remote))
        self._remote = remote

    def send_unsigned(self, instruction: Instruction, sender: Address, terms: Terms, *, check: bool) -> Receipt:
        """Have the node send an instruction as an account's; see `Outbox.send_unsigned`."""
        receipt = self._remote.impersonate(sender, instruction, terms)
        if check and not receipt.ok:
            raise RevertedError(receipt)
        return receipt

    def _waiting(self, sender: Address) -> int:
        return super()._waiting(sender) + self._remote.waiting(sender)

    def _receipts(self, transactions: Sequence[Transaction]) -> list[Receipt]:
        receipts = self._remote.submit(transactions)
        show_printed(line for receipt in receipts for line in receipt.printed)
        return receipts


class NodeChain(TimerCalls, ClockCalls, Simulation, LabelCalls, Cheats):
    """A node's chain at one height, with the calls of `LocalChain` that a node answers.

    The node builds the blocks: transactions that are gathered for one block may come into several. A change moves on to
    a later height, and `refresh` to the present one. Its accounts are the development accounts that its genesis funds.
    """

    chain: RemoteChain  # type: ignore[assignment]  # it reads as a chain does

    def __init__(self, remote: RemoteChain) -> None:
        """Take the connection to a node, which closes with it."""
        genesis = remote.genesis
        self.accounts = tuple(local_account(account_name(index)) for index in range(funded_accounts(genesis)))
        self.deployer = local_account(DEPLOYER)
        self.proposer = genesis.proposer
        self.labels = LabelBook({**known_names(genesis), **dict(labels_in_use())})
        use_labels(self.labels)
        self.chain = remote
        self._outbox = NodeOutbox(remote)

    def __repr__(self) -> str:
        return f"<NodeChain {self.chain.url}, {self.chain.mechanism.name}, height {self.height}>"

    def __getattr__(self, name: str) -> Any:
        if hasattr(LocalChain, name):
            raise AttributeError(f"the chain of a node has no {name}: only that of a directory or a fresh one has")
        raise AttributeError(f"there is no {name}: help(chain) shows what there is")

    def refresh(self) -> None:
        """Read the present height."""
        self.chain.refresh()

    def ask(self, actor: Address, handler: str, payload: bytes, sender: Address) -> Answer:
        """Call a handler read-only at the node."""
        return self.chain.ask_view(actor, handler, payload, sender)

    def explain(self, timer_id: bytes) -> TimerLife:
        """Return a timer's whole life; see `BaseChain.explain`."""
        return self.chain.explain(Hash32(timer_id))

    def forecast(self, blocks: int = FORECAST_BLOCKS) -> QueueForecast:
        """Return what becomes of the live timers in the next blocks, if nothing is sent."""
        return self.chain.forecast(blocks)

    def _run(
        self, instruction: Instruction, sender: Address, terms: Terms, height: int | None, overrides: Overrides
    ) -> Receipt:
        return self.chain.simulate(instruction, sender, terms, height, overrides)

    def _run_fire(self, timer_id: bytes, height: int | None, overrides: Overrides) -> Receipt:
        return self.chain.simulate_fire(Hash32(timer_id), height, overrides)

    def _read(self, source: str | Path) -> bytes:
        return read_source(None, source)

    def snapshot(self) -> Any:
        """Have the node remember the present point, and return its number, for `revert`."""
        return self.chain.mark()

    def revert(self, mark: Any) -> None:
        """Have the node go back to a point that it remembers."""
        self.chain.go_back(str(mark))
