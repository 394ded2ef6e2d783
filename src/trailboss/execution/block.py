"""`apply_block`: the whole state transition, top to bottom; and one transaction: admission, charge, run, settle.

Spec: CIP-1 §3, CIP-5 §5.1
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.crypto.digest import merkle_root
from trailboss.execution.admission import (
    check_balance,
    check_destination,
    check_limits,
    check_price,
    nonce_mismatch,
)
from trailboss.execution.delivery import deliver_timers
from trailboss.execution.development import check_sender
from trailboss.execution.instructions import execute_instruction, intrinsic_costs
from trailboss.execution.ledger import Ledger, read_economy
from trailboss.execution.mailbox import charge_delivery, nothing_waits, take_waiting
from trailboss.execution.markets import MARKETS
from trailboss.execution.paid_execution import handler_body, run_envelope
from trailboss.execution.runner import check_reply, close_job
from trailboss.execution.session import BlockContext, BlockSession, Envelope
from trailboss.execution.timers import committed_timers
from trailboss.fees import max_cost
from trailboss.governance.rules import BASEFEES_KEY, ECONOMY_KEY
from trailboss.mechanisms.base import Mechanism, Phase
from trailboss.model.blocks import HEADER_VERSION, Block, Header, Origin, ReceiptRecord, header_hash, receipts_root
from trailboss.model.configs import Basefees, Economy, amount_octets, amount_of, encode_record
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import EventRecord, PrintedLine
from trailboss.model.transactions import UNSIGNED, ExecuteActor, ReplyJob, Transaction, transaction_hash
from trailboss.primitives.errors import InvariantError, Rejection
from trailboss.primitives.units import Cells, Cycles
from trailboss.state.overlay import Overlay
from trailboss.state.store import Store
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine

_TRANSACTION: Final = Origin.TRANSACTION  # bound once: looking up a member of an enum takes as long as ten constants


class Applied(Struct, frozen=True):
    """A block that has been applied and committed, and the transactions that may not be in it, with their refusals."""

    block: Block
    refused: tuple[tuple[Transaction, Rejection], ...]


def apply_block(
    context: BlockContext,
    transactions: Iterable[Transaction],
    *,
    store: Store,
    queue: TimerQueue,
    engine: Engine,
    mechanism: Mechanism,
    signatures_checked: bool = False,
) -> Applied:
    """Apply a block on top of the store's state and commit it; its height is one above the store's.

    Refused transactions are left out and reported. The caller may have checked the signatures of all signed ones.
    Spec: CIP-1 §3, CIP-5 §5.1.

    Raises:
        InvariantError: If the chain contradicts itself; it must not go on.
    """
    overlay = Overlay(store)
    hooks = MARKETS[context.rules.market.kind]
    session = BlockSession(context, overlay, Ledger(overlay), queue, engine, mechanism, hooks)
    # Epoch maintenance reads timers that come near, and writes nothing.
    queue.advance(context.height)
    mechanism.begin(partial(committed_timers, store))
    if mechanism.policy.phase is Phase.BEFORE_TRANSACTIONS:
        close_market = deliver_timers(session, mechanism)
        accepted, refused = _apply_transactions(session, transactions, signatures_checked)
    else:
        accepted, refused = _apply_transactions(session, transactions, signatures_checked)
        close_market = deliver_timers(session, mechanism)
    if not nothing_waits(overlay.read):
        _deliver_messages(session)
    close_block(session, close_market)
    state_root = store.commit(context.height, overlay.written())
    block = seal_block(
        context,
        state_root,
        transactions=accepted,
        receipts=tuple(session.receipts),
        events=tuple(session.events),
        used=(session.cycles_used, session.cells_used, session.timer_cycles_used),
        decisions=session.decisions,
        printed=tuple(session.printed),
    )
    return Applied(block, refused)


def _apply_transactions(
    session: BlockSession, transactions: Iterable[Transaction], signatures_checked: bool
) -> tuple[tuple[Transaction, ...], tuple[tuple[Transaction, Rejection], ...]]:
    accepted, refused = [], []
    for transaction in transactions:
        mark = session.overlay.mark()
        try:
            apply_transaction(session, transaction, signature_checked=signatures_checked)
        except Rejection as rejection:
            if session.overlay.mark() != mark:
                raise InvariantError(f"a refused transaction has written: {rejection}") from rejection
            refused.append((transaction, rejection))
        else:
            accepted.append(transaction)
    return tuple(accepted), tuple(refused)


def _deliver_messages(session: BlockSession) -> None:
    """Run deferred transactions, and then messages, after the timers. Spec: CIP-5 §5.1. Decision: D-42, D-88."""
    for waiting in take_waiting(session):
        charged = charge_delivery(session, waiting)
        if charged is not None:
            envelope, reserved, handler = charged
            body = handler_body(envelope.actor, handler, waiting.payload, envelope.sender)
            session.receipts.append(run_envelope(session, envelope, reserved, body))


def close_block(session: BlockSession, close_market: Callable[[], None]) -> None:
    """Write what the block leaves for the next: totals, basefees and the money burned. Spec: CIP-3 §2."""
    if session.reservations:
        raise InvariantError(f"{len(session.reservations)} reserved timers neither ran nor were cancelled")
    rules, overlay = session.context.rules, session.overlay
    for path in session.ends.__struct_fields__:
        if ended := getattr(session.ends, path):
            session.count(path, ended)
    close_market()
    cycle, cell = rules.next_basefees(session.cycles_used, session.cells_used)
    if (cycle, cell) != (rules.cycle_basefee, rules.cell_basefee):
        overlay.write(BASEFEES_KEY, encode_record(Basefees(amount_octets(cycle), amount_octets(cell))))
    if session.ledger.burned:
        economy = read_economy(overlay.read)
        burned = amount_octets(amount_of(economy.burned) + session.ledger.burned)
        overlay.write(ECONOMY_KEY, encode_record(Economy(economy.supply, burned)))


def seal_block(
    context: BlockContext,
    state_root: bytes,
    *,
    transactions: tuple[Transaction, ...] = (),
    receipts: tuple[ReceiptRecord, ...] = (),
    events: tuple[EventRecord, ...] = (),
    used: tuple[int, int, int] = (0, 0, 0),
    decisions: DecisionRecord | None = None,
    printed: tuple[PrintedLine, ...] = (),
) -> Block:
    """Return a block of what has been applied; by default the one in which nothing happens, with basefees at rest.

    ``used`` are the cycles and cells of everything, and the cycles of fires.
    """
    hashes = [receipt.origin_hash for receipt in receipts if receipt.origin is _TRANSACTION]
    # Plain bytes, for a chain keeps millions of headers and the collector visits every object of a class of ours.
    header = Header(
        version=HEADER_VERSION,
        chain_id=context.chain_id,
        height=context.height,
        parent=context.parent,
        timestamp_ms=context.timestamp_ms,
        proposer=context.proposer,
        transactions_root=bytes(merkle_root(hashes)),
        receipts_root=bytes(receipts_root(receipts, events)),
        state_root=bytes(state_root),
        cycle_basefee=amount_octets(context.rules.cycle_basefee),
        cell_basefee=amount_octets(context.rules.cell_basefee),
        cycles_used=used[0],
        cells_used=used[1],
        timer_cycles_used=used[2],
    )
    return Block(
        header=header,
        hash=header_hash(header),
        transactions=transactions,
        receipts=receipts,
        events=events,
        decisions=decisions,
        printed=printed,
    )


def apply_transaction(
    session: BlockSession,
    transaction: Transaction,
    *,
    signature_checked: bool = False,
    sender_checked: bool = False,
) -> ReceiptRecord:
    """Apply one transaction to the block, or raise the `Rejection` of the first rule by which it may not be in it.

    A refusal leaves the block unchanged. A simulation has checked the sender itself: it takes unsigned transactions on
    every chain. Spec: CIP-3 §2, CIP-1v1 §5. Source: cowboy-facts §8
    """
    instruction = transaction.instruction
    context = session.context
    intrinsic = intrinsic_costs(instruction, context.rules.params.costs)
    # CHECK
    if not sender_checked and (not signature_checked or transaction.signature == UNSIGNED):
        check_sender(transaction, context.rules, is_development=context.is_development)
    # Plain bytes, as in a receipt that is read again; they are also hashed and encoded in half the time.
    origin_hash, sender = bytes(transaction_hash(transaction)), bytes(transaction.sender)
    check_destination(transaction, context.chain_id)
    account = session.ledger.account(sender)
    if transaction.nonce != account.nonce:
        raise nonce_mismatch(transaction, account.nonce)
    # Fires have limits of their own: those before the transactions take no room from them.
    used = (session.cycles_used - session.timer_cycles_used, session.cells_used - session.timer_cells_used)
    check_limits(transaction, intrinsic, context.rules.params.limits, used)
    prices = check_price(transaction, context.rules)
    check_balance(transaction, amount_of(account.balance))
    job = check_reply(session, transaction.sender, instruction) if isinstance(instruction, ReplyJob) else None
    # CHARGE
    cycles_limit, cells_limit = Cycles(transaction.cycles_limit), Cells(transaction.cells_limit)
    reserved = max_cost(cycles_limit, cells_limit, prices)
    session.ledger.put_debited(sender, replace(account, nonce=account.nonce + 1), reserved)
    if isinstance(instruction, ReplyJob) and job is not None:
        close_job(session, instruction.job, job)
    envelope = Envelope(
        origin=_TRANSACTION,
        origin_hash=origin_hash,
        sender=sender,
        signer=sender,
        payer=sender,
        cycles_limit=cycles_limit,
        cells_limit=cells_limit,
        intrinsic_cycles=intrinsic[0],
        intrinsic_cells=intrinsic[1],
        prices=prices,
        actor=job.actor if job else instruction.actor if isinstance(instruction, ExecuteActor) else b"",
    )
    # RUN, SETTLE
    receipt = run_envelope(session, envelope, reserved, partial(execute_instruction, instruction))
    session.receipts.append(receipt)
    return receipt
