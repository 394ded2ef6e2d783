"""Parties of a local chain: accounts with known keys, deployed actors, and the receipts of their transactions."""

import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from trailboss.model.transactions import ExecuteActor
from trailboss.primitives.errors import TrailbossError
from trailboss.primitives.octets import Address
from trailboss.views import Answer, Receipt, TimerView
from trailboss.views.labels import labelled, labels_in_use, short_id
from trailboss.views.records import Printed
from trailboss.vm.failures import TRACEBACK

if TYPE_CHECKING:
    from trailboss.testing.base_chain import BaseChain
    from trailboss.testing.local_chain import LocalChain


class ChainWarning(UserWarning):
    """What an actor did is allowed on this chain, and not on a public one."""


class RevertedError(TrailbossError):
    """A transaction failed that was expected to succeed; it has its receipt."""

    def __init__(self, receipt: Receipt) -> None:
        where = "" if receipt.error is None else str(receipt.error.context.get(TRACEBACK) or "")
        super().__init__(labelled("\n  ".join((f"{receipt.status}: {receipt.error}", *where.splitlines()))))
        self.receipt = receipt


class TestAccount(Struct, frozen=True):
    """A funded account with a public private key of 32 bytes."""

    __test__ = False  # pytest would collect it by its name.
    name: str
    address: Address
    private_key: bytes

    def __repr__(self) -> str:
        name = labels_in_use().get(self.address) or self.name
        return f"<TestAccount {name} ({short_id(self.address)})>"


class PendingReceipt:
    """The receipt of a transaction that waits in `LocalChain.one_block`: readable once the block is built.

    With ``check`` anything but success raises when the block is built.
    """

    def __init__(self, *, check: bool = False) -> None:
        self.check = check
        self._receipt: Receipt | None = None

    def receive(self, receipt: Receipt) -> None:
        """Take the receipt, when the block is built."""
        self._receipt = receipt

    @property
    def receipt(self) -> Receipt:
        """The receipt; raises TrailbossError while the block is still open."""
        if self._receipt is None:
            raise TrailbossError("the block is still open: read the receipt after the `with chain.one_block():`")
        return self._receipt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.receipt, name)

    def __repr__(self) -> str:
        return "<PendingReceipt: the block is still open>" if self._receipt is None else repr(self._receipt)


class ActorHandle(Struct, frozen=True):
    """A deployed actor, and the receipt of its deployment."""

    chain: "BaseChain"
    address: Address
    receipt: Receipt

    def __hash__(self) -> int:
        # A receipt holds values that have no hash; a handle can stand for its address in a table.
        return hash(self.address)

    def call(self, handler: str, payload: bytes = b"", *, sender: TestAccount, **options: Any) -> Receipt:
        """Call a handler in a transaction; options as `LocalChain.send`."""
        return self.chain.send(ExecuteActor(self.address, handler, payload), sender=sender, **options)

    def simulate(self, handler: str, payload: bytes = b"", *, sender: "Party", **options: Any) -> Receipt:
        """Call a handler in a transaction that changes nothing, sent by anyone; options as `LocalChain.simulate`."""
        chain = cast("LocalChain", self.chain)
        return chain.simulate(ExecuteActor(self.address, handler, payload), sender=sender, **options)

    def view(self, handler: str, payload: bytes = b"", *, sender: TestAccount | None = None) -> Answer:
        """Call a handler read-only, by default as the first account: no transaction, no fee; changes are refused."""
        caller = (sender or self.chain.accounts[0]).address
        answer = self.chain.ask(self.address, handler, payload, caller)
        show_printed(answer.printed)
        return answer

    @property
    def storage(self) -> Mapping[bytes, bytes]:
        """Its present slots."""
        return self.chain.chain.storage(self.address)

    @property
    def balance(self) -> int:
        """Its balance in base units."""
        return self.chain.balance(self.address)

    def __repr__(self) -> str:
        return f"<Actor {labels_in_use().short(self.address)}>"

    def timers(self) -> list[TimerView]:
        """Its live timers, by height and then order of insertion."""
        return self.chain.timers(actor=self)


Party = TestAccount | ActorHandle | Address | bytes  # what has an address


def address_of_party(party: Party) -> Address:
    """Return the address of a party; ``INVALID_DATA`` for bytes of another width."""
    return party.address if isinstance(party, TestAccount | ActorHandle) else Address(party)


def optional_address(party: Party | None) -> Address | None:
    """Return the address of a party, and None for None."""
    return None if party is None else address_of_party(party)


def show_printed(lines: Iterable[Printed]) -> None:
    """Write what actors have printed to the standard output, and give the chain's warnings. Decision: D-89, D-91."""
    for line in lines:
        if line.is_warning:
            warnings.warn(f"{line.handler}: {line.text}", ChainWarning, stacklevel=1)
        else:
            sys.stdout.write(f"{line}\n")
