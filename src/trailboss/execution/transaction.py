"""A transaction: admission, charge, run, settle."""

from functools import partial

from trailboss.execution.admission import (
    Units,
    check_balance,
    check_destination,
    check_limits,
    check_price,
    nonce_mismatch,
)
from trailboss.execution.development import check_sender
from trailboss.execution.instructions import execute_instruction, intrinsic_costs
from trailboss.execution.paid_execution import run_envelope
from trailboss.execution.session import BlockSession, Envelope
from trailboss.fees.settlement import Prices, max_cost
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.transactions import ExecuteActor, Transaction, transaction_hash
from trailboss.primitives.units import Cells, Cycles


def apply_transaction(
    session: BlockSession, transaction: Transaction, *, signature_checked: bool = False
) -> ReceiptRecord:
    """Apply one transaction to the block, or raise the `Rejection` of one that may not be in it, unchanged.

    Spec: CIP-3 §2
    """
    instruction = transaction.instruction
    context = session.context
    intrinsic = intrinsic_costs(instruction, context.rules.params.costs)
    # CHECK
    check_sender(transaction, context.rules, is_development=context.is_development, signature_checked=signature_checked)
    origin_hash = transaction_hash(transaction)
    prices = check_admission(session, transaction, intrinsic)
    # CHARGE
    reserved = max_cost(Cycles(transaction.cycles_limit), Cells(transaction.cells_limit), prices)
    session.ledger.debit(transaction.sender, reserved)
    account = session.ledger.account(transaction.sender)
    account.nonce += 1
    session.ledger.put(transaction.sender, account)
    envelope = Envelope(
        origin=Origin.TRANSACTION,
        origin_hash=origin_hash,
        sender=transaction.sender,
        signer=transaction.sender,
        payer=transaction.sender,
        cycles_limit=Cycles(transaction.cycles_limit),
        cells_limit=Cells(transaction.cells_limit),
        intrinsic_cycles=intrinsic[0],
        intrinsic_cells=intrinsic[1],
        prices=prices,
        actor=instruction.actor if isinstance(instruction, ExecuteActor) else b"",
    )
    # RUN, SETTLE
    receipt = run_envelope(session, envelope, reserved, partial(execute_instruction, instruction))
    session.receipts.append(receipt)
    return receipt


def check_admission(session: BlockSession, transaction: Transaction, least: Units) -> Prices:
    """Return what the units of a transaction will cost, or raise the `Rejection` of the first rule that it breaks.

    Spec: CIP-1v1 §5
    Source: cowboy-facts §8
    """
    context = session.context
    check_destination(transaction, context.chain_id)
    account = session.ledger.account(transaction.sender)
    if transaction.nonce != account.nonce:
        raise nonce_mismatch(transaction, account.nonce)
    # Fires have limits of their own: those before the transactions take no room from them.
    used = (session.cycles_used - session.timer_cycles_used, session.cells_used - session.timer_cells_used)
    check_limits(transaction, least, context.rules.params.limits, used)
    prices = check_price(transaction, context.rules)
    check_balance(transaction, amount_of(account.balance))
    return prices
