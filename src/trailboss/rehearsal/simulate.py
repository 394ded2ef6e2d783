"""Simulating: a transaction or a timer's fire runs as it would, and everything that it writes is thrown away.

Decision: D-107
"""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.chain.drafts import DEFAULT_TERMS, Terms, capped, draft_unsigned
from trailboss.chain.reader import ChainReader
from trailboss.chain.replay import replay_to
from trailboss.execution.block import apply_transaction
from trailboss.execution.delivery import deliver_timers
from trailboss.execution.development import check_unsigned
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockContext, BlockSession
from trailboss.execution.timers import committed_timers
from trailboss.governance.rules import read_rules
from trailboss.mechanisms.base import Follower, Phase
from trailboss.mechanisms.registry import Succession
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.timers import Timer
from trailboss.model.transactions import Instruction, Transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.rehearsal.overrides import NO_OVERRIDES, Overrides, write_overrides
from trailboss.rehearsal.run import CANCELLED, ENDS, EXPIRED, UNFUNDED, endings, fork_of
from trailboss.state.overlay import Overlay
from trailboss.timer_queue.bucket import Pending
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import StoredTimers
from trailboss.views import Receipt
from trailboss.views.records import receipt_view, refusal_view
from trailboss.vm.engine import Engine

FIRE_BLOCKS_MAX: Final = 100_000  # most blocks until a fire; where nothing happens, they cost next to nothing
BUSY_BLOCKS_MAX: Final = 1_000  # most of them in which something happens
CYCLES_MAX: Final = 100_000_000  # cycles after which no further block is built, a second or two of work


def simulate(
    chain: ChainReader,
    engine: Engine,
    instruction: Instruction,
    sender: Address,
    *,
    terms: Terms = DEFAULT_TERMS,
    overrides: Overrides = NO_OVERRIDES,
) -> Receipt:
    """Run an instruction as the first transaction of the next block, signed by no one, and return its receipt.

    The chain stays as it is. The receipt is that of the same transaction in the next block, if it is the first one
    there. Where timers run before the transactions, what is due runs before it. The engine must not be at work in
    another thread. Complexity: what the transaction costs; where timers run first, also O(live timers).

    Raises:
        Rejection: For overrides that cannot be; see `write_overrides`. What the block would refuse is a receipt with
            the status ``refused``.
    """
    overlay = Overlay(chain.store)
    context = chain.next_context()
    if overrides is not NO_OVERRIDES:
        write_overrides(chain, overrides, overlay, engine)
        context = replace(context, rules=read_rules(chain.params, overlay.read, context.height))
    try:
        drafted = draft_unsigned(chain, instruction, sender, terms=capped(terms, context.rules))
        record = engine.perform(partial(_apply, chain, engine, context, overlay, drafted))
    except Rejection as rejection:
        return refusal_view(rejection, sender, context.height)
    return receipt_view(record, context.height)


def _apply(
    chain: ChainReader, engine: Engine, context: BlockContext, overlay: Overlay, transaction: Transaction
) -> ReceiptRecord:
    check_unsigned(transaction, context.rules)
    market = context.rules.market.kind
    mechanism = Succession(chain.genesis.mechanism, chain.params).by_market[market]
    if mechanism.policy.phase is Phase.AFTER_TRANSACTIONS:
        # Nothing is delivered before it: it can only ask for the height of a timer, and place and take timers.
        queue = TimerQueue(chain.params.calendar, _Unread(chain.store), now=context.height)
        follower = Follower()
    else:
        queue = TimerQueue(chain.params.calendar, StoredTimers(chain.store), now=chain.height)
        queue.advance(context.height)
        follower = mechanism
    session = BlockSession(context, overlay, Ledger(overlay), queue, engine, follower, MARKETS[market])
    if follower is mechanism:
        mechanism.begin(partial(committed_timers, chain.store))
        deliver_timers(session, mechanism)
    return apply_transaction(session, transaction, sender_checked=True)


class _Unread(StoredTimers):
    """A source of which a queue reads nothing ahead: where nothing is delivered, nothing need be in memory."""

    __slots__ = ()

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield nothing."""
        del height, timer_id
        return iter(())


def simulate_fire(
    chain: ChainReader, engine: Engine, timer_id: bytes, *, overrides: Overrides = NO_OVERRIDES
) -> Receipt:
    """Return the receipt of a live timer's next fire, as it comes without further transactions.

    A fork of the chain goes on, block by block, until the timer has fired: at its height, or as much later as it has to
    wait, with what other timers do until then, at the prices of that block. The chain stays as it is. The engine must
    not be at work in another thread.

    Raises:
        Rejection: ``NOT_FOUND`` if no such timer is live; ``INVALID_DATA`` if it lies too far ahead; for overrides
            that cannot be. A timer that ends without a fire is a receipt with the status ``refused``.
    """
    overlay = Overlay(chain.store)
    write_overrides(chain, overrides, overlay, engine)
    with closing(fork_of(chain, overlay.changes(), engine)) as fork:
        timer = fork.timer(timer_id)
        if timer is None:
            what = f"there is no live timer {Hash32(timer_id)} after block {chain.height}"
            raise Rejection(RejectionReason.NOT_FOUND, what, timer_id=timer_id.hex())
        last = min(fork.height + FIRE_BLOCKS_MAX, U64_MAX - 1)
        busy = cycles = 0
        for block in fork.advance_to(last):
            found = _end_in(block, timer)
            if found is not None:
                return found
            busy += bool(block.receipts or block.events)
            cycles += block.header.cycles_used
            if busy == BUSY_BLOCKS_MAX or cycles > CYCLES_MAX:
                break
        height = fork.height
    what = (
        f"timer {Hash32(timer_id)}, due at height {timer.height}, has not fired by block {height}: a simulation builds "
        f"at most {FIRE_BLOCKS_MAX:,} blocks, {BUSY_BLOCKS_MAX:,} in which something happens, for {CYCLES_MAX:,} cycles"
    )
    raise Rejection(RejectionReason.INVALID_DATA, what, timer_id=timer_id.hex(), height=height)


def state_after(chain: Chain, height: int, *, engine: Engine | None = None) -> ChainReader:
    """Return a chain as it stood after the block of a height.

    Where the chain can still go back, that is a view of it; below that the blocks are built again from genesis, with
    the engine given. Complexity: O(keys changed since); below `Chain.floor` what the blocks up to there cost.

    Raises:
        Rejection: ``NOT_FOUND`` if there is no such block, or the chain lacks the blocks that lead to it.
    """
    if chain.floor <= height <= chain.height:
        return chain.publish(height)
    if 0 <= height < chain.blocks.base:
        chain.blocks.check_there(height)
    return replay_to(chain, height, engine=engine or chain.engine)


def _end_in(block: Block, timer: Timer) -> Receipt | None:
    """Return the receipt of a timer's fire in a block, a refusal if it ended without one; None for neither."""
    for receipt in block.receipts:
        if receipt.origin is Origin.TIMER and receipt.timer_id == timer.timer_id:
            return receipt_view(receipt, block.height)
    for timer_id, outcome, missing in endings(block):
        if timer_id == timer.timer_id:
            what = f"timer {Hash32(timer_id)} does not fire: it {ENDS[outcome]} in block {block.height}"
            if missing:
                what += f", its payer {Address(timer.fee_payer)} lacks {missing} base units"
            reason, fix = _REFUSALS[outcome]
            refusal = refusal_view(Rejection(reason, what, fix), Address(timer.fee_payer), block.height)
            return replace(refusal, origin=Origin.TIMER.value, timer_id=Hash32(timer_id), actor=Address(timer.target))
    return None


_REFUSALS: Final = {
    EXPIRED: (RejectionReason.NOT_FOUND, "extend it, or schedule it with a later expires_at"),
    UNFUNDED: (RejectionReason.INSUFFICIENT_GAS_BALANCE, "fund its payer before that block"),
    CANCELLED: (RejectionReason.NOT_FOUND, "see with a forecast which fires come before it"),
}
