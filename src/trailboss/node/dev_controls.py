"""The development calls of a node: clock, branches, balances and timers of a chain that runs as `trailboss dev`.

They run on the chain thread, between two blocks. So a transaction is drafted for the very next block, and two requests
never take one nonce. Decision: D-69.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from trailboss.chain.crowd import Storm, Wave, congestion, draft_crowd, storm
from trailboss.chain.development import (
    DEPLOYER,
    DevelopmentAccount,
    development_account,
    draft_drop,
    draft_force,
    draft_hold,
)
from trailboss.chain.drafts import DEFAULT_TERMS, Terms, draft_transaction, draft_unsigned
from trailboss.chain.jobs import JobAnswer, draft_reply
from trailboss.chain.view import ChainView
from trailboss.mempool import AdmissionOutcome, Mempool
from trailboss.model.transactions import Instruction, SetBalance, SetRunner, Transaction, Transfer
from trailboss.node.block_builder import Builder, Mark
from trailboss.node.options import Pace
from trailboss.primitives.bounded import BoundedDict
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, format_cby
from trailboss.views.jobs import job_of

Result = TypeVar("Result")
SNAPSHOTS_MAX: Final = 1_000  # snapshots that are kept; the oldest makes room
FAUCET: Final = "faucet"  # the development account that the faucet gives from, once the deployer has filled it
FAUCET_AMOUNT: Final = 5_000 * BASE_UNITS_PER_CBY  # base units that one request gets
FAUCET_FILLED: Final = 1_000_000 * BASE_UNITS_PER_CBY
FAUCET_LOW: Final = FAUCET_FILLED // 2  # base units below which the faucet is filled again
SHORT_OF_MONEY: Final = frozenset((RejectionReason.INSUFFICIENT_BALANCE, RejectionReason.INSUFFICIENT_GAS_BALANCE))


class Do(Protocol):
    """Runs a command on the chain thread."""

    async def __call__(self, command: Callable[[Builder], Result], /) -> Result:
        """Return the command's result."""


class Development:
    """The development calls of a node.

    Those that send a transaction return its hash as soon as it waits in the mempool, or raise the `Rejection` of the
    mempool; under the pace ``AUTO`` its block comes at once, else with the interval or with `mine`.
    """

    def __init__(
        self,
        mempool: Mempool,
        do: Do,
        admit: Callable[[Sequence[Transaction]], list[AdmissionOutcome]],
        set_pace: Callable[[Pace], Awaitable[None]],
        mine_here: Callable[[], int | None],
    ) -> None:
        """Take the parts of a node: ``admit`` looks at no signatures, ``mine_here`` builds a block if it is small."""
        self._mine_here = mine_here
        self.set_pace = set_pace
        self._mempool = mempool
        self._do = do
        self._admit = admit
        self._marks: BoundedDict[int, Mark] = BoundedDict(SNAPSHOTS_MAX)
        self._next_mark = 1
        self._filling: Hash32 | None = None

    async def mine(self, blocks: int = 1) -> int:
        """Build blocks at once, the first from the mempool, and return the height after.

        Raises:
            Rejection: ``INVALID_DATA`` unless there are 1 up to `block_builder.ADVANCE_MAX`.
            StoppingError: If the node stops before they are built.
        """
        if blocks < 1:
            raise Rejection(RejectionReason.INVALID_DATA, f"cannot mine {blocks} blocks: at least one", blocks=blocks)
        height = self._mine_here() if blocks == 1 else None
        if height is not None:
            return height
        return await self._do(lambda builder: _advance(builder, builder.chain.height + blocks))

    async def advance(self, height: int) -> int:
        """Build blocks up to a height, as `mine`, and return it.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one, or too far above it.
            StoppingError: If the node stops before it is reached.
        """
        return await self._do(lambda builder: _advance(builder, height))

    async def snapshot(self) -> int:
        """Remember the present point of chain and mempool, and return its number, for `revert`."""
        return await self._do(self._remember)

    async def revert(self, snapshot_id: int) -> int:
        """Go back to a snapshot, forget those taken after it, and return the height. It can be gone back to again.

        Raises:
            Rejection: ``NOT_FOUND`` if there is no such snapshot, or the chain no longer holds its block;
                ``INVALID_DATA`` if it lies further back than the chain on disk can go.
        """
        return await self._do(lambda builder: self._revert(builder, snapshot_id))

    async def reorg(self, depth: int, *, keep_transactions: bool = True) -> int:
        """Drop the last blocks, as when another branch wins, and return the height; see `Builder.reorg`."""

        def drop(builder: Builder) -> int:
            builder.reorg(depth, keep_transactions=keep_transactions)
            return builder.chain.height

        return await self._do(drop)

    async def interfere(self, instruction: Instruction) -> Hash32:
        """Send an instruction of `trailboss.execution.development`, as the deployer."""
        return await self._govern(lambda _: instruction)

    async def hold(self, timer_id: Hash32, until: int | None = None) -> Hash32:
        """Hold a timer back: to a height, or to the last one at which it may fire; ``NOT_FOUND`` if it is not live."""
        return await self._govern(lambda view: draft_hold(view, timer_id, until))

    async def force(self, timer_id: Hash32) -> Hash32:
        """Make a timer due as early as can be; ``NOT_FOUND`` if it is not live."""
        return await self._govern(lambda view: draft_force(view, timer_id))

    async def drop(self, timer_id: Hash32) -> Hash32:
        """Take a timer away without running it; ``NOT_FOUND`` if it is not live."""
        return await self._govern(lambda view: draft_drop(view, timer_id))

    async def congest(self, blocks: int, load: float) -> list[Hash32]:
        """Let a crowd fill the cycles of fires in some blocks; return the hashes of its transactions.

        Raises:
            Rejection: ``INVALID_INPUT`` for what makes no crowd, or that of the mempool.
        """
        return await self._do(lambda builder: self._crowd(builder.view, congestion(builder.view, blocks, load)))

    async def storm(self, kind: str, blocks: int) -> list[Hash32]:
        """Let timers of a crowd fall due at one height, for the cycles of so many blocks; otherwise as `congest`."""
        is_funded = kind != Storm.UNFUNDED
        return await self._do(
            lambda builder: self._crowd(builder.view, storm(builder.view, kind, blocks), funded=is_funded)
        )

    async def set_runner(self, jobs_max: int) -> Hash32:
        """Have so many runner jobs wait for replies at most; 0 for no runner."""
        return await self._govern(lambda _: SetRunner(jobs_max))

    async def reply(self, job: int, answer: JobAnswer) -> Hash32:
        """Reply to a runner job; refused as `draft_reply` refuses it."""

        def send(builder: Builder) -> Hash32:
            view = builder.view
            return self._send(
                draft_reply(view, job, answer, waiting=self._mempool.waiting(view, job_of(view, job).actor))
            )

        return await self._do(send)

    async def impersonate(self, sender: Address, instruction: Instruction, terms: Terms = DEFAULT_TERMS) -> Hash32:
        """Send a transaction of any account, without its key."""

        def send(builder: Builder) -> Hash32:
            waiting = self._mempool.waiting(builder.view, sender)
            return self._send(draft_unsigned(builder.view, instruction, sender, terms=terms, waiting=waiting))

        return await self._do(send)

    async def faucet(self, address: Address) -> Hash32:
        """Give an account 5,000 CBY, from the faucet's own account or, until that is filled, from the deployer's.

        Raises:
            Rejection: ``INSUFFICIENT_BALANCE`` if neither can pay, or if the mempool refuses the transaction for
                another reason.
        """
        return await self._do(lambda builder: self._give(builder.view, address))

    # On the chain thread

    def _remember(self, builder: Builder) -> int:
        number = self._next_mark
        self._next_mark += 1
        self._marks[number] = builder.mark()
        return number

    def _revert(self, builder: Builder, number: int) -> int:
        mark = self._marks.get(number)
        if mark is None:
            raise Rejection(RejectionReason.NOT_FOUND, f"there is no snapshot {number}", snapshot=number)
        builder.revert(mark)
        for later in [each for each in self._marks if each > number]:
            del self._marks[later]
        return builder.chain.height

    async def _govern(self, draft: Callable[[ChainView], Instruction]) -> Hash32:
        deployer = development_account(DEPLOYER)
        return await self._do(lambda builder: self._send_from(builder.view, deployer, draft(builder.view)))

    def _give(self, view: ChainView, address: Address) -> Hash32:
        faucet, deployer = development_account(FAUCET), development_account(DEPLOYER)
        is_filling = self._filling is not None and self._mempool.find(self._filling) is not None
        if view.genesis.development and view.balance(faucet.address) < FAUCET_LOW and not is_filling:
            # The gift may be possible without, and the next request tries again.
            with suppress(Rejection):
                self._filling = self._send_from(view, deployer, SetBalance(faucet.address, FAUCET_FILLED))
        for account in (faucet, deployer):
            try:
                return self._send_from(view, account, Transfer(address, FAUCET_AMOUNT))
            except Rejection as rejection:
                if rejection.reason not in SHORT_OF_MONEY:
                    raise
        raise Rejection(
            RejectionReason.INSUFFICIENT_BALANCE,
            f"the faucet is empty: neither its account {faucet.address} nor the deployer's {deployer.address} can pay "
            f"{format_cby(FAUCET_AMOUNT)} CBY and the fees",
            faucet=str(faucet.address),
            deployer=str(deployer.address),
        )

    def _crowd(self, view: ChainView, waves: list[Wave], *, funded: bool = True) -> list[Hash32]:
        return [
            self._send_from(view, development_account(draft.sender), draft.instruction, draft.terms)
            for draft in draft_crowd(view, waves, funded=funded)
        ]

    def _send_from(
        self, view: ChainView, account: DevelopmentAccount, instruction: Instruction, terms: Terms = DEFAULT_TERMS
    ) -> Hash32:
        waiting = self._mempool.waiting(view, account.address)
        return self._send(draft_transaction(view, instruction, account.private_key, terms=terms, waiting=waiting))

    def _send(self, transaction: Transaction) -> Hash32:
        [verdict] = self._admit([transaction])
        if verdict.rejection is not None:
            raise verdict.rejection
        return verdict.hash


def _advance(builder: Builder, height: int) -> int:
    builder.advance(height)
    return builder.chain.height
