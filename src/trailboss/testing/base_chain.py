"""`BaseChain`: opening a local chain, sending transactions, the passing of time, and reading."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from msgspec.structs import fields

from trailboss.chain import Chain, Snapshot, development
from trailboss.chain.development import ACCOUNT_COUNT, DEPLOYER, PROPOSER, account_name, development_genesis
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms, draft_deployment
from trailboss.chain.proofs import Proof, Subject, timer_subject
from trailboss.execution.genesis import Genesis
from trailboss.forecast.quote import WITHIN, Quote, quote_timer
from trailboss.forecast.runway import Runway, runway_of
from trailboss.governance.apply import ACTIVATION_NOTICE
from trailboss.governance.parameters import ACTIVATION
from trailboss.model.blocks import Block
from trailboss.model.decisions import DecisionRecord
from trailboss.model.timers import Timer
from trailboss.model.transactions import FundActor, Instruction, SetGovParam, Transaction, Transfer
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import ahead_of, forecast_beside, forecast_timer
from trailboss.rehearsal.rehearse import REHEARSED_BLOCKS, ActivationRehearsal, rehearse_activation
from trailboss.sandbox.engines import image_of
from trailboss.state.disk.files import TABLES_NAME
from trailboss.testing.debugger import find_debugger
from trailboss.testing.outbox import Outbox, read_source
from trailboss.testing.parties import (
    ActorHandle,
    Party,
    PendingReceipt,
    TestAccount,
    address_of_party,
    optional_address,
    show_printed,
)
from trailboss.views import Answer, Event, Receipt, TimerLife, TimerView, explain_timer
from trailboss.views.explain.life import events_since
from trailboss.views.labels import LabelBook, use_labels
from trailboss.views.mechanism import globalbox_records
from trailboss.views.mechanism.auction_records import AuctionView, auction_of
from trailboss.views.mechanism.base import Outlook
from trailboss.views.mechanism.globalbox_records import EndedView, FireView, MailboxView
from trailboss.views.mechanism.registry import views_for
from trailboss.views.read_only_calls import ask_actor, try_timer
from trailboss.views.recent_blocks import BLOCKS
from trailboss.views.records import block_prints, deployment_of, receipt_view
from trailboss.views.timer_list import timer_view
from trailboss.views.trace.executions import traceable
from trailboss.vm.native import NativeEngine


class BaseChain:
    """What every other part of `trailboss.testing.LocalChain` stands on.

    Attributes:
        chain: The chain beneath.
        accounts: Funded accounts, ten by default.
        deployer: One more, which may send system instructions.
        labels: Names of addresses and timers, those of the accounts included.
    """

    default_vm: ClassVar[str] = "native"
    """Engine of chains that name none; the option ``--trailboss-vm`` of pytest sets it."""
    chain_class: ClassVar[type[Chain]] = Chain
    """Class of the chain beneath; options as ``--trailboss-costs`` of pytest set it."""

    def __init__(
        self,
        *,
        mechanism: str = "fifo",
        preset: str = "mainnet",
        params: Mapping[str, int] | None = None,
        accounts: int = ACCOUNT_COUNT,
        data_dir: str | Path | None = None,
        vm: str | None = None,
    ) -> None:
        """Start a chain, or continue the one in ``data_dir``.

        Args:
            mechanism: What selects due timers.
            preset: ``mainnet``; ``minimal`` with a calendar that wraps within 40 blocks; or ``public``, which enforces
                entitlements.
            params: Parameters by dotted path, as ``{"timers.max_timers_per_actor": 10_000}``.
            accounts: Number of funded accounts, 1 to 1,000.
            data_dir: Directory of the chain, created if needed; None for a chain in memory.
            vm: ``native``, in this process; or ``sandbox``, in WebAssembly, as on a node for strangers; None for
                `default_vm`.

        Raises:
            ConfigurationError: For an unknown name or path, values that cannot be, or others than those that the
                chain in ``data_dir`` started with.
            StorageError: If ``data_dir`` cannot be used: in use, not a chain directory, damaged.
        """
        genesis = development_genesis(
            preset=preset,
            mechanism=mechanism,
            overrides=params,
            accounts=accounts,
            image=image_of(vm or self.default_vm),
        )
        self.accounts = tuple(local_account(account_name(index)) for index in range(accounts))
        self.deployer = local_account(DEPLOYER)
        self.proposer = genesis.proposer
        names = {bytes(each.address): each.name for each in (*self.accounts, self.deployer)}
        self.labels = LabelBook({**names, bytes(genesis.proposer): PROPOSER})
        use_labels(self.labels)
        self.chain = _open_chain(self.chain_class, genesis, data_dir)
        if isinstance(self.chain.engine, NativeEngine):
            self.chain.engine.find_debugger = find_debugger
        self._outbox = Outbox(self.chain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LocalChain {self.chain.genesis.mechanism}, height {self.height}>"

    def close(self) -> None:
        """Close the chain and its directory."""
        self.chain.close()

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
            init_handler: Its handler; None for ``init``, else ``deploy``, whichever the source has.
            entitlements: Those that the manifest declares, as ``["timer.schedule"]``.
            options: As `send`.

        Raises:
            RevertedError: If the deployment or the funding failed; within `one_block` when the block is built.
            ConfigurationError: If the path cannot be read.
        """
        code = self._read(source)
        # The nonce makes each address unique, also after a restart.
        salt = self.nonce(sender).to_bytes(8, "big")
        instruction, address = draft_deployment(
            sender.address, code, salt, init_handler=init_handler, init_payload=init_payload, entitlements=entitlements
        )
        is_open = self._outbox.is_open
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
        return ActorHandle(self, Address(address), traceable(self.chain, deployment_of(self.chain, address)))

    def transfer(self, to: Party, amount: int, *, sender: TestAccount, **options: Any) -> Receipt:
        """Send money in a transaction; options as `send`."""
        return self.send(Transfer(address_of_party(to), amount), sender=sender, **options)

    def system(self, instruction: Instruction, *, sender: TestAccount | None = None, **options: Any) -> Receipt:
        """Send a system instruction, from the deployer by default; options as `send`."""
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

        Without a cap, a cycle or a cell may cost twice the basefee plus the tip. Within `one_block` it returns a
        `PendingReceipt`, which reads like a receipt once the block is built.

        Raises:
            RevertedError: With ``check``, if it did not end well; within `one_block` when the block is built.
        """
        terms = Terms(
            cycles_limit=cycles_limit,
            cells_limit=cells_limit,
            max_fee_per_cycle=max_fee_per_cycle,
            max_fee_per_cell=max_fee_per_cell,
            max_priority_fee_per_cycle=max_priority_fee_per_cycle,
            max_priority_fee_per_cell=max_priority_fee_per_cell,
        )
        return self._outbox.send(instruction, sender, terms, check=check)

    def impersonate(self, party: Party, instruction: Instruction, *, check: bool = False, **options: int) -> Receipt:
        """Send an instruction unsigned, as any account or actor but a system actor; options as `send`."""
        return self._outbox.send_unsigned(instruction, address_of_party(party), Terms(**options), check=check)

    def submit(self, transaction: Transaction, *, check: bool = False) -> Receipt:
        """Put a transaction into a block of its own, or into the open one; returns and raises as `send`."""
        return self._outbox.submit(transaction, check=check)

    def one_block(self) -> AbstractContextManager[None]:
        """Gather the transactions sent within and build one block of them at the end; does not nest."""
        return self._outbox.one_block()

    def nonce(self, party: Party) -> int:
        """Return the next nonce of an account, transactions of the open block counted."""
        return self._outbox.nonce(address_of_party(party))

    def activate_lane(self, height: int | None = None) -> int:
        """Have governance activate the timer lane, by default as early as can be; return the lane's first height."""
        begins = self.height + 1 + ACTIVATION_NOTICE if height is None else height
        self.system(SetGovParam(ACTIVATION, begins.to_bytes(8, "big")), check=True)
        return begins

    # Time

    def mine(self, blocks: int = 1) -> None:
        """Build one or more blocks without transactions; every due timer runs in its own block, in order."""
        if blocks < 1:
            raise Rejection(RejectionReason.INVALID_DATA, f"mine({blocks}): at least one block", blocks=blocks)
        self.advance_to(self.height + blocks)

    def advance_to(self, height: int) -> None:
        """Build empty blocks up to a height: the same result as mining one by one, only faster."""
        self._outbox.check_closed("advance")
        deque(self._advance(height), maxlen=0)

    def snapshot(self) -> Snapshot:
        """Return the present point, for `revert`."""
        return self.chain.snapshot()

    def revert(self, mark: Snapshot) -> None:
        """Go back to a snapshot: clock, queue, fees, everything; ``NOT_FOUND`` if the chain has dropped it."""
        self._outbox.check_closed("revert")
        self.chain.revert(mark)

    def reorg(self, depth: int) -> None:
        """Drop the last blocks, 1 up to the present height; `mine` and `send` build others in their place.

        Raises:
            StorageError: If the chain is on disk and its undo journal does not reach that far.
        """
        self._outbox.check_closed("reorg")
        self.chain.reorg(depth)

    # Reading: nothing below changes the chain

    @property
    def height(self) -> int:
        """Height of the last block."""
        return self.chain.height

    @property
    def state_root(self) -> Hash32:
        """Root of the state after the last block."""
        return self.chain.state_root

    @property
    def burned(self) -> int:
        """Base units burned since genesis."""
        return self.chain.economy()[1]

    @property
    def supply(self) -> int:
        """Base units that genesis created, with the changes of `set_balance`."""
        return self.chain.economy()[0]

    @property
    def lane_basefee(self) -> int:
        """Lane basefee of the next block, base units per cycle; before the activation the cycle basefee."""
        return self.chain.rules().market.basefee

    def balance(self, party: Party) -> int:
        """Return a balance in base units."""
        return self.chain.balance(address_of_party(party))

    def block(self, height: int | None = None) -> Block:
        """Return a block; the last one by default."""
        return self.chain.head if height is None else self.chain.blocks[height]

    def decisions(self, height: int) -> DecisionRecord | None:
        """Return how the block of a height chose among its due timers; None if it had no choice."""
        return self.chain.decisions(height)

    def receipts(self, since: int = 0, *, origin: str | None = None, actor: Party | None = None) -> list[Receipt]:
        """Return receipts from block ``since`` on, inclusive; with an origin, as ``timer``, or an actor only those."""
        wanted = optional_address(actor)
        blocks = self.chain.blocks.eventful(since)
        views = (receipt_view(item, block.height) for block in blocks for item in block.receipts)
        found = (view for view in views if origin in (None, view.origin) and wanted in (None, view.actor))
        return [traceable(self.chain, view) for view in found]

    def refusals(self) -> list[Receipt]:
        """Return the receipts of all transactions that this object has sent and the chain has refused, in order."""
        return list(self._outbox.refused)

    def events(self, name: str | None = None, since: int = 0) -> list[Event]:
        """Return events from block ``since`` on, inclusive; with a name only those."""
        return list(events_since(self.chain, since, name))

    def timers(self, actor: Party | None = None, height: int | None = None) -> list[TimerView]:
        """Return live timers by height and then order of insertion, of one actor or one height if given."""
        found = self.chain.timers() if height is None else iter(self.chain.timers_at(height))
        wanted = optional_address(actor)
        return [self._view(timer) for timer in found if wanted is None or timer.actor == wanted]

    def mailbox(self, target: Party | None = None) -> list[MailboxView]:
        """Return the mailbox in the order of delivery, of one target if given; ``NOT_FOUND`` without Globalbox."""
        return globalbox_records.mailbox_of(self.chain, optional_address(target))

    def globalbox(self, limit: int | None = None) -> list[FireView]:
        """Return the first queued fires of Globalbox in their order; ``NOT_FOUND`` without Globalbox."""
        return globalbox_records.globalbox_of(self.chain, limit)

    def auction(self) -> AuctionView:
        """Return the auction's epoch and the weights of its actors; ``NOT_FOUND`` without auction."""
        return auction_of(self.chain)

    def ended_timer(self, timer_id: bytes) -> EndedView | None:
        """Return what is remembered of a timer of Globalbox that has ended; None if nothing is."""
        return globalbox_records.ended_timer_of(self.chain, timer_id)

    def ask(self, actor: Address, handler: str, payload: bytes, sender: Address) -> Answer:
        """Call a handler read-only; see `ActorHandle.view`."""
        return ask_actor(self.chain, actor, handler, payload, sender=sender)

    def explain(self, timer_id: bytes) -> TimerLife:
        """Return a timer's whole life, with the reason for each decision about it.

        Raises:
            TypeError: If it is no id: an event that is about no timer has None.
            Rejection: ``NOT_FOUND`` if no block of this chain scheduled it.
        """
        if not isinstance(timer_id, bytes):
            raise TypeError(f"explain({timer_id!r}): give a timer's id, the 32 bytes that `timers` and events have")

        def ahead(timer: Timer, outlook: Outlook) -> str:
            return forecast_beside(self.chain, timer, forecast_timer(self.chain, timer), outlook)

        return explain_timer(self.chain, timer_id, attempt=partial(try_timer, self.chain), ahead=ahead)

    def quote(
        self,
        height: int,
        gas_limit: int,
        tip: int | None = None,
        *,
        actor: Party | None = None,
        within: Sequence[int] = WITHIN,
        blocks: int = BLOCKS,
    ) -> Quote:
        """Quote the price of a timer scheduled now, and how often one would have run; see `quote_timer`."""
        with ahead_of(self.chain, height) as future:
            owner = optional_address(actor)
            return quote_timer(
                self.chain, height, gas_limit, tip, actor=owner, within=within, blocks=blocks, future=future
            )

    def runway(self, payer: Party, *, blocks: int = BLOCKS) -> Runway:
        """Return how many fires a balance still pays for, and in which block it runs out; see `runway_of`."""
        return runway_of(self.chain, address_of_party(payer), blocks=blocks)

    def rehearse_activation(self, height: int, blocks: int = REHEARSED_BLOCKS) -> ActivationRehearsal:
        """Simulate the activation of the timer lane at a height, and some blocks after it, on a copy of the chain."""
        return rehearse_activation(self.chain, height, blocks)

    def prove(self, subject: Subject | bytes, *, height: int | None = None) -> Proof:
        """Prove what the state holds to someone who has only `state_root`: ``proof.verify(root)`` needs no chain.

        The subject is one of `trailboss.testing`, or a timer's id; of a timer that is gone with the height at which it
        was due. What is not there is proven to be absent, a range to be complete.
        """
        found = timer_subject(self.chain.store, subject, height) if isinstance(subject, bytes) else subject
        return self.chain.prove(found)

    def check_invariants(self) -> None:
        """Check that money and timers add up and that state and queue agree; raises InvariantError if not."""
        self.chain.check_invariants()

    def _advance(self, height: int) -> Iterator[Block]:
        """Build empty blocks up to a height, show what each prints, and yield it."""
        for block in self.chain.advance_to(height):
            show_printed(block_prints(block))
            yield block

    def _read(self, source: str | Path) -> bytes:
        return read_source(self.chain.engine, source)

    def _view(self, timer: Timer) -> TimerView:
        return timer_view(timer, self.chain.tier(timer), self.chain.rules(), views_for(self.chain))


def _open_chain(chain_class: type[Chain], genesis: Genesis, data_dir: str | Path | None) -> Chain:
    """Return a new chain, in memory without a directory, or the one that the directory holds already."""
    if data_dir is None:
        return chain_class(genesis)
    directory = Path(data_dir)
    if not (directory / TABLES_NAME).exists():
        return chain_class.create(directory, genesis)
    chain = chain_class.open(directory)
    for field in fields(genesis):
        asked, found = getattr(genesis, field.name), getattr(chain.genesis, field.name)
        if asked != found:
            chain.close()
            raise ConfigurationError(
                f"{directory} holds a chain that started with {field.name} = {found!r}, not {asked!r}: "
                "open it with what it started with, or choose another directory"
            )
    return chain


def local_account(name: str) -> TestAccount:
    """Return the development account of a name, as tests use it."""
    account = development.development_account(name)
    return TestAccount(account.name, account.address, account.private_key)
