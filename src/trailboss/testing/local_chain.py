"""`LocalChain`: a whole chain behind a handful of plain calls."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from trailboss.chain import Snapshot
from trailboss.chain.development import (
    ACCOUNT_COUNT,
    DEPLOYER,
    account_name,
    development_account,
    development_genesis,
)
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms, draft_deployment, draft_transaction, draft_unsigned
from trailboss.crypto.digest import keccak256
from trailboss.governance.parameters import ACTIVATION
from trailboss.governance.votes import ACTIVATION_NOTICE
from trailboss.model.transactions import FundActor, Instruction, SetGovParam, Transaction, Transfer
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing.data_dir import open_chain
from trailboss.testing.local_faults import LocalFaults
from trailboss.testing.local_prints import show_printed
from trailboss.testing.parties import ActorHandle, Party, PendingReceipt, RevertedError, TestAccount, address_of_party
from trailboss.views import Receipt
from trailboss.views.receipts import build_block, deployment_of
from trailboss.views.records import block_prints, refusal_view
from trailboss.vm.native import NativeEngine

CBY: Final = BASE_UNITS_PER_CBY
"""One CBY in base units."""
ENGINES: Final = ("native",)


class LocalChain(LocalFaults):
    """A local chain with real fees and real state roots.

    Attributes:
        chain: The chain beneath.
        accounts: Funded accounts, ten unless told otherwise.
        deployer: One more, which may send system instructions.
    """

    def __init__(
        self,
        *,
        mechanism: str = "fifo",
        preset: str = "mainnet",
        params: Mapping[str, int] | None = None,
        accounts: int = ACCOUNT_COUNT,
        data_dir: str | Path | None = None,
        vm: str = "native",
    ) -> None:
        """Start a chain, or go on with the one in ``data_dir``.

        Args:
            mechanism: What selects due timers.
            preset: ``mainnet``; ``minimal`` with a calendar that wraps within 40 blocks; or ``public``, which enforces
                entitlements.
            params: Parameters by dotted path, as ``{"timers.max_timers_per_actor": 10_000}``.
            accounts: How many accounts are funded, 1 to 1,000.
            data_dir: Directory that the chain lives in, made if it is not there; None for a chain in memory.
            vm: ``native``.

        Raises:
            ConfigurationError: For an unknown name or path, values that cannot be, or others than those that the
                chain in ``data_dir`` started with.
            StorageError: If ``data_dir`` cannot be used: in use, not a chain directory, damaged.
        """
        if vm not in ENGINES:
            raise ConfigurationError(f"unknown vm {vm!r}; there are: {', '.join(ENGINES)}")
        genesis = development_genesis(preset=preset, mechanism=mechanism, overrides=params, accounts=accounts)
        self.accounts = tuple(_account(account_name(index)) for index in range(accounts))
        self.deployer = _account(DEPLOYER)
        self.proposer = genesis.proposer
        self._engine = NativeEngine(genesis.params())
        self.chain = open_chain(genesis, self._engine, data_dir)
        self._queued: list[tuple[Transaction, PendingReceipt]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release what the chain holds."""
        self.chain.close()

    # Sending

    def deploy(
        self,
        source: str | Path,
        *,
        sender: TestAccount,
        value: int = 0,
        init_payload: bytes = b"",
        init_handler: str | None = None,
        entitlements: Iterable[str] = (),
        **options: Any,
    ) -> ActorHandle:
        """Deploy an actor and fund it, in a block of their own, or in the open one.

        Args:
            source: A path ending in ``.py``, or source text.
            sender: Deployer and owner.
            value: Base units for the actor, in a second transaction of the same block.
            init_payload: Argument of the creation call.
            init_handler: What the creation call runs; None for ``init``, else ``deploy``, whichever the source has.
            entitlements: What its manifest declares, as ``["timer.schedule"]``.
            options: As `send`.

        Raises:
            RevertedError: If the deployment or the funding failed; within `one_block` that is when the block is built.
            ConfigurationError: If the path cannot be read.
        """
        code = self._read_source(source)
        # The nonce makes the address another one each time, also after a restart.
        salt = self.nonce(sender).to_bytes(8, "big")
        instruction, address = draft_deployment(
            sender.address,
            code,
            salt,
            init_handler=init_handler,
            init_payload=init_payload,
            entitlements=entitlements,
        )
        is_open = self._queued is not None
        with nullcontext() if is_open else self.one_block():
            deployed = self.send(instruction, sender=sender, **{**options, "check": True})
            if value:
                self.send(FundActor(address, value), sender=sender, check=True)
        receipt = deployed.receipt if isinstance(deployed, PendingReceipt) and not is_open else deployed
        return ActorHandle(self, address, receipt)

    def actor(self, address: bytes) -> ActorHandle:
        """Return the handle of an actor that is deployed already, as after opening a ``data_dir``.

        Raises:
            Rejection: ``ACTOR_NOT_FOUND`` if no transaction of this chain has deployed it.
        """
        return ActorHandle(self, Address(address), deployment_of(self.chain, address))

    def transfer(self, to: Party, amount: int, *, sender: TestAccount, **options: Any) -> Receipt:
        """Move money in a transaction; options as `send`."""
        return self.send(Transfer(address_of_party(to), amount), sender=sender, **options)

    def system(self, instruction: Instruction, *, sender: TestAccount | None = None, **options: Any) -> Receipt:
        """Send a system instruction, from the deployer unless told otherwise; options as `send`."""
        return self.send(instruction, sender=sender or self.deployer, **options)

    def send(
        self,
        instruction: Instruction,
        *,
        sender: TestAccount,
        cycles_limit: int = CYCLES_LIMIT,
        cells_limit: int = CELLS_LIMIT,
        max_fee_per_cycle: int | None = None,
        max_fee_per_cell: int | None = None,
        max_priority_fee_per_cycle: int = 0,
        max_priority_fee_per_cell: int = 0,
        check: bool = False,
    ) -> Receipt:
        """Sign an instruction and put it into a block of its own, or into the open one.

        Args:
            instruction: What to do.
            sender: Who signs and pays.
            cycles_limit: Most cycles it may use.
            cells_limit: Most cells it may use.
            max_fee_per_cycle: Most a cycle may cost; None for twice the basefee plus the tip.
            max_fee_per_cell: Most a cell may cost; None for twice the basefee plus the tip.
            max_priority_fee_per_cycle: Tip a cycle.
            max_priority_fee_per_cell: Tip a cell.
            check: Whether anything but success raises; within `one_block` that is when the block is built.

        Returns:
            The receipt; within `one_block` a `PendingReceipt` that reads like one once the block is built.

        Raises:
            RevertedError: With ``check``, if it did not end well.
        """
        terms = Terms(
            cycles_limit=cycles_limit,
            cells_limit=cells_limit,
            max_fee_per_cycle=max_fee_per_cycle,
            max_fee_per_cell=max_fee_per_cell,
            max_priority_fee_per_cycle=max_priority_fee_per_cycle,
            max_priority_fee_per_cell=max_priority_fee_per_cell,
        )
        waiting = self._waiting(sender.address)
        try:
            signed = draft_transaction(self.chain, instruction, sender.private_key, terms=terms, waiting=waiting)
        except Rejection as rejection:
            # What has no encoding, such as an amount of more than 64 bits, is refused like anything else.
            refusal = refusal_view(rejection, sender.address, self.height + 1)
            if check:
                raise RevertedError(refusal) from None
            return refusal
        return self.submit(signed, check=check)

    def impersonate(self, party: Party, instruction: Instruction, *, check: bool = False, **options: int) -> Receipt:
        """Send an instruction as anybody, without a signature: an actor, or an account whose key nobody has.

        Args:
            party: Who sends and pays; not a system actor.
            instruction: What to do.
            check: As `send`.
            options: Limits and fees, as `send` has them.

        Returns:
            As `send`.

        Raises:
            RevertedError: As `send`.
        """
        sender = address_of_party(party)
        terms, waiting = Terms(**options), self._waiting(sender)
        return self.submit(draft_unsigned(self.chain, instruction, sender, terms=terms, waiting=waiting), check=check)

    def submit(self, transaction: Transaction, *, check: bool = False) -> Receipt:
        """Put a transaction into a block of its own, or into the open one. Returns and raises as `send`."""
        pending = PendingReceipt(check=check)
        if self._queued is not None:
            self._queued.append((transaction, pending))
            return pending  # type: ignore[return-value]  # reads like a receipt once the block is built
        self._build([(transaction, pending)])
        return pending.receipt

    @contextmanager
    def one_block(self) -> Iterator[None]:
        """Gather the transactions sent within and build one block of them at the end.

        Raises:
            TrailbossError: If a block is open already.
        """
        if self._queued is not None:
            raise TrailbossError("a block is already open: `one_block` does not nest")
        self._queued = []
        try:
            yield
            self._build(self._queued)
        finally:
            self._queued = None

    def nonce(self, party: Party) -> int:
        """Return the next nonce of an account, transactions waiting in the open block counted."""
        account = self.chain.account(address_of_party(party))
        return (0 if account is None else account.nonce) + self._waiting(address_of_party(party))

    def activate_lane(self, height: int | None = None) -> int:
        """Have governance activate the timer lane at a height, in a block of its own, and return the height.

        Args:
            height: First block under the lane's rules; None for the earliest that governance may name, two blocks
                after the one that this builds.

        Raises:
            RevertedError: If it is too early, or the lane is active already.
        """
        begins = self.height + 1 + ACTIVATION_NOTICE if height is None else height
        self.system(SetGovParam(ACTIVATION, begins.to_bytes(8, "big")), check=True)
        return begins

    # Time

    def mine(self, blocks: int = 1) -> None:
        """Build blocks without transactions; every due timer runs in its own block, in order.

        Raises:
            Rejection: ``INVALID_DATA`` for fewer than one.
        """
        if blocks < 1:
            raise Rejection(RejectionReason.INVALID_DATA, f"mine({blocks}): at least one block", blocks=blocks)
        self.advance_to(self.height + blocks)

    def advance_to(self, height: int) -> None:
        """Build empty blocks up to a height: the same result as mining one by one, only faster.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one.
        """
        self._check_closed_block("advance")
        for block in self.chain.advance_to(height):
            show_printed(block_prints(block))

    def snapshot(self) -> Snapshot:
        """Return the present point, for `revert`."""
        return self.chain.snapshot()

    def revert(self, mark: Snapshot) -> None:
        """Go back to a snapshot: clock, queue, fees, everything.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain does not hold it any more.
        """
        self._check_closed_block("revert")
        self.chain.revert(mark)

    def reorg(self, depth: int) -> None:
        """Drop the last blocks, as when another branch wins; `mine` and `send` build others in their place.

        Args:
            depth: Blocks to drop, 1 up to the present height.

        Raises:
            Rejection: ``INVALID_DATA`` for another depth.
            StorageError: If the chain is on disk and its undo journal does not reach that far.
        """
        self._check_closed_block("reorg")
        self.chain.reorg(depth)

    # Beneath

    def _waiting(self, sender: Address) -> int:
        return sum(1 for transaction, _ in self._queued or () if transaction.sender == sender)

    def _build(self, queued: list[tuple[Transaction, PendingReceipt]]) -> None:
        before = self.height
        receipts = build_block(self.chain, [transaction for transaction, _ in queued])
        if self.height > before:
            show_printed(block_prints(self.chain.head))
        for (_, pending), receipt in zip(queued, receipts, strict=True):
            pending.receive(receipt)
        for _, pending in queued:
            if pending.check and not pending.receipt.ok:
                raise RevertedError(pending.receipt)

    def _read_source(self, source: str | Path) -> bytes:
        if isinstance(source, str) and ("\n" in source or not source.endswith(".py")):
            return source.encode()
        path = Path(source)
        try:
            code = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"cannot read actor source {path}: {error.strerror}") from None
        self._engine.name_source(keccak256(code), str(path.resolve()))
        return code

    def _check_closed_block(self, verb: str) -> None:
        if self._queued is not None:
            raise TrailbossError(f"cannot {verb} while a block is open: leave `with chain.one_block():` first")


def _account(name: str) -> TestAccount:
    account = development_account(name)
    return TestAccount(account.name, account.address, account.private_key)
