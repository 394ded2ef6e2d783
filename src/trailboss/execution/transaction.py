"""A signed transaction: admission, charge, run, settle."""

from trailboss.execution.instructions import execute_instruction, intrinsic_costs
from trailboss.execution.session import BlockSession, Envelope, Scope
from trailboss.execution.settling import Run, run_envelope
from trailboss.fees.settlement import Prices, max_cost, offered_tip
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.transactions import (
    ExecuteActor,
    FundActor,
    Transaction,
    Transfer,
    check_signature,
    transaction_hash,
)
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.units import Cells, Cycles, Price
from trailboss.vm.meter import Meter


def apply_transaction(session: BlockSession, transaction: Transaction) -> ReceiptRecord:
    """Apply one transaction to the block.

    Spec: CIP-3 §2

    Raises:
        Rejection: If it may not be in this block; nothing has changed.
    """
    instruction = transaction.instruction
    costs = session.context.rules.params.costs
    intrinsic_cycles, intrinsic_cells = intrinsic_costs(instruction, costs)
    # CHECK
    check_signature(transaction)
    prices = check_admission(session, transaction, intrinsic_cycles, intrinsic_cells)
    # CHARGE
    reserved = max_cost(Cycles(transaction.cycles_limit), Cells(transaction.cells_limit), prices)
    session.ledger.debit(transaction.sender, reserved)
    account = session.ledger.account(transaction.sender)
    account.nonce += 1
    session.ledger.put(transaction.sender, account)
    envelope = Envelope(
        origin=Origin.TRANSACTION,
        origin_hash=transaction_hash(transaction),
        sender=transaction.sender,
        signer=transaction.sender,
        payer=transaction.sender,
        cycles_limit=Cycles(transaction.cycles_limit),
        cells_limit=Cells(transaction.cells_limit),
        intrinsic_cycles=intrinsic_cycles,
        intrinsic_cells=intrinsic_cells,
        prices=prices,
        actor=instruction.actor if isinstance(instruction, ExecuteActor) else b"",
    )

    def body(scope: Scope, meter: Meter) -> Run:
        return execute_instruction(scope, instruction, meter)

    # RUN, SETTLE
    receipt = run_envelope(session, envelope, reserved, body)
    session.receipts.append(receipt)
    return receipt


def check_admission(
    session: BlockSession, transaction: Transaction, intrinsic_cycles: int, intrinsic_cells: int
) -> Prices:
    """Refuse a transaction that may not be in this block; return what its units will cost.

    Source: cowboy-facts §8

    Raises:
        Rejection: The first rule that it breaks, in the order of the function.
    """
    context = session.context
    if transaction.chain_id != context.chain_id:
        raise Rejection(
            RejectionReason.CHAIN_ID_MISMATCH,
            f"the transaction is for chain {transaction.chain_id}, this is chain {context.chain_id}",
            expected=context.chain_id,
            actual=transaction.chain_id,
        )
    if transaction.origin_tx_hash is not None:
        raise Rejection(
            RejectionReason.INVALID_DATA,
            f"origin_tx_hash is 0x{transaction.origin_tx_hash.hex()}: only the chain makes deferred transactions",
            field="origin_tx_hash",
        )
    account = session.ledger.account(transaction.sender)
    if transaction.nonce != account.nonce:
        raise Rejection(
            RejectionReason.NONCE_MISMATCH,
            f"{transaction.sender} is at nonce {account.nonce}, the transaction has {transaction.nonce}",
            expected=account.nonce,
            actual=transaction.nonce,
        )
    _check_limits(session, transaction, intrinsic_cycles, intrinsic_cells)
    prices = _check_price(session, transaction)
    _check_balance(transaction, amount_of(account.balance))
    return prices


def _check_limits(session: BlockSession, transaction: Transaction, cycles: int, cells: int) -> None:
    limits = session.context.rules.params.limits
    for reason, unit, least, given, used, most in (
        (
            RejectionReason.OUT_OF_CYCLES,
            "cycles",
            cycles,
            transaction.cycles_limit,
            session.cycles_used,
            limits.block_cycles_max,
        ),
        (
            RejectionReason.OUT_OF_CELLS,
            "cells",
            cells,
            transaction.cells_limit,
            session.cells_used,
            limits.block_cells_max,
        ),
    ):
        if given < least:
            raise Rejection(
                reason,
                f"{unit}_limit is {given}, {transaction.instruction.name} uses {least} before it runs",
                used=least,
                limit=given,
            )
        if used + given > most:
            raise Rejection(
                RejectionReason.BLOCK_FULL,
                f"{unit}_limit is {given}, the block has {max(most - used, 0)} of {most} {unit} left",
                limit=given,
                left=max(most - used, 0),
            )


def _check_price(session: BlockSession, transaction: Transaction) -> Prices:
    cycle_basefee, cell_basefee = session.context.rules.user_basefees()
    if transaction.max_fee_per_cycle < cycle_basefee or transaction.max_fee_per_cell < cell_basefee:
        raise Rejection(
            RejectionReason.BASEFEE_TOO_LOW,
            f"fee caps are {transaction.max_fee_per_cycle} a cycle and {transaction.max_fee_per_cell} a cell, the "
            f"basefees {cycle_basefee} and {cell_basefee}",
            max_fee_per_cycle=str(transaction.max_fee_per_cycle),
            cycle_basefee=str(cycle_basefee),
            max_fee_per_cell=str(transaction.max_fee_per_cell),
            cell_basefee=str(cell_basefee),
        )
    return Prices(
        cycle_basefee,
        cell_basefee,
        offered_tip(transaction.max_fee_per_cycle, transaction.max_priority_fee_per_cycle, cycle_basefee),
        offered_tip(transaction.max_fee_per_cell, transaction.max_priority_fee_per_cell, cell_basefee),
    )


def _check_balance(transaction: Transaction, available: int) -> None:
    """Refuse a sender that could not pay every limit at its cap, and what it wants to send besides."""
    caps = Prices(Price(transaction.max_fee_per_cycle), Price(transaction.max_fee_per_cell))
    gas = max_cost(Cycles(transaction.cycles_limit), Cells(transaction.cells_limit), caps)
    if available < gas:
        raise Rejection(
            RejectionReason.INSUFFICIENT_GAS_BALANCE,
            f"{transaction.sender} holds {available} base units, its limits at its fee caps need {gas}",
            required=str(gas),
            available=str(available),
        )
    instruction = transaction.instruction
    amount = instruction.amount if isinstance(instruction, Transfer | FundActor) else 0
    if available < gas + amount:
        raise Rejection(
            RejectionReason.INSUFFICIENT_BALANCE,
            f"{transaction.sender} holds {available} base units, {amount} and fees of up to {gas} are needed",
            required=str(gas + amount),
            available=str(available),
        )
