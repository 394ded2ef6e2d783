"""Transactions of a local chain on their way into blocks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trailboss.chain import Chain
from trailboss.chain.drafts import Terms, draft_transaction, draft_unsigned
from trailboss.crypto.digest import keccak256
from trailboss.model.transactions import Instruction, Transaction
from trailboss.primitives.errors import ConfigurationError, Rejection, TrailbossError
from trailboss.primitives.octets import Address
from trailboss.testing.parties import PendingReceipt, RevertedError, TestAccount, show_printed
from trailboss.views import Receipt
from trailboss.views.records import block_prints, build_block, refusal_view
from trailboss.views.trace.executions import traceable
from trailboss.vm.engine import Engine


class Outbox:
    """Signs transactions and puts each into a block of its own, or gathers them for one block."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._gathered: list[tuple[Transaction, PendingReceipt]] | None = None
        # Returns what each block holds behind the transactions that a test has sent.
        self.additions: Callable[[Sequence[Transaction]], Sequence[Transaction]] = lambda _: ()
        self.refused: list[Receipt] = []  # receipts of what the chain has refused, which no block holds

    @property
    def is_open(self) -> bool:
        """Whether transactions are gathered for one block."""
        return self._gathered is not None

    def check_closed(self, verb: str) -> None:
        """Raise TrailbossError while a block is open."""
        if self.is_open:
            raise TrailbossError(f"cannot {verb} while a block is open: leave `with chain.one_block():` first")

    def nonce(self, sender: Address) -> int:
        """Return the next nonce of an account, gathered transactions counted."""
        account = self._chain.account(sender)
        return (0 if account is None else account.nonce) + self._waiting(sender)

    def send(self, instruction: Instruction, sender: TestAccount, terms: Terms, *, check: bool) -> Receipt:
        """Sign an instruction and submit it; see `submit`."""
        waiting = self._waiting(sender.address)
        try:
            signed = draft_transaction(self._chain, instruction, sender.private_key, terms=terms, waiting=waiting)
        except Rejection as rejection:
            # What has no encoding, such as an amount of more than 64 bits, is refused like anything else.
            refusal = refusal_view(rejection, sender.address, self._chain.height + 1)
            self.refused.append(refusal)
            if check:
                raise RevertedError(refusal) from None
            return refusal
        return self.submit(signed, check=check)

    def send_unsigned(self, instruction: Instruction, sender: Address, terms: Terms, *, check: bool) -> Receipt:
        """Submit an instruction without a signature; see `submit`."""
        waiting = self._waiting(sender)
        return self.submit(draft_unsigned(self._chain, instruction, sender, terms=terms, waiting=waiting), check=check)

    def submit(self, transaction: Transaction, *, check: bool) -> Receipt:
        """Put a transaction into a block and return its receipt: a `PendingReceipt` while a block is open.

        Raises:
            RevertedError: With ``check``, if it did not end well.
        """
        pending = PendingReceipt(check=check)
        if self._gathered is not None:
            self._gathered.append((transaction, pending))
            return pending  # type: ignore[return-value]  # reads like a receipt once the block is built
        self._build([(transaction, pending)])
        return pending.receipt

    @contextmanager
    def one_block(self) -> Iterator[None]:
        """Gather the transactions sent within and build one block of them at the end; does not nest."""
        if self._gathered is not None:
            raise TrailbossError("a block is already open: `one_block` does not nest")
        self._gathered = []
        try:
            yield
            self._build(self._gathered)
        finally:
            self._gathered = None

    def build_additions(self) -> bool:
        """Build a block of `additions` alone, if there are any; return whether there were."""
        additions = self.additions(())
        if additions:
            self._put([], additions)
        return bool(additions)

    def _waiting(self, sender: Address) -> int:
        return sum(transaction.sender == sender for transaction, _ in self._gathered or ())

    def _build(self, gathered: list[tuple[Transaction, PendingReceipt]]) -> None:
        self._put(gathered, self.additions([transaction for transaction, _ in gathered]))

    def _put(self, gathered: list[tuple[Transaction, PendingReceipt]], additions: Sequence[Transaction]) -> None:
        receipts = self._receipts([*(transaction for transaction, _ in gathered), *additions])
        for (_, pending), receipt in zip(gathered, receipts, strict=False):
            pending.receive(traceable(self._chain, receipt))
        self.refused += (receipt for receipt in receipts if receipt.status == "refused")
        for _, pending in gathered:
            if pending.check and not pending.receipt.ok:
                raise RevertedError(pending.receipt)
        for receipt in receipts[len(gathered) :]:
            if receipt.status == "refused":
                raise RevertedError(receipt)

    def _receipts(self, transactions: Sequence[Transaction]) -> list[Receipt]:
        """Build a block of transactions, show what it prints, and return their receipts."""
        before = self._chain.height
        receipts = build_block(self._chain, transactions)
        if self._chain.height > before:
            show_printed(block_prints(self._chain.head))
        return receipts


def read_source(engine: Engine | None, source: str | Path) -> bytes:
    """Return an actor's source, given as text or as a ``.py`` path. `ConfigurationError` if that cannot be read."""
    if isinstance(source, str) and ("\n" in source or not source.endswith(".py")):
        return source.encode()
    path = Path(source)
    try:
        code = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read actor source {path}: {error.strerror}") from None
    if engine is not None:
        engine.name_source(keccak256(code), str(path.resolve()))
    return code
