"""The rules by which a block admits a transaction, one function each: a mempool asks them too, ahead of the block.

Source: docs/spec/sources.md §8
"""

from typing import Final

from trailboss.fees import Prices, offered_tip
from trailboss.governance.rules import Rules
from trailboss.model.transactions import FundActor, Transaction, Transfer
from trailboss.params import LimitParams
from trailboss.primitives.errors import Rejection, RejectionReason

Units = tuple[int, int]  # Cycles and cells.
_SENDING: Final = (Transfer, FundActor)


def check_destination(transaction: Transaction, chain_id: int) -> None:
    """Refuse a transaction of another chain, with ``CHAIN_ID_MISMATCH``, or one that only a chain could make."""
    if transaction.chain_id != chain_id:
        what = f"the transaction is for chain {transaction.chain_id}, this is chain {chain_id}"
        raise Rejection(RejectionReason.CHAIN_ID_MISMATCH, what, expected=chain_id, actual=transaction.chain_id)
    if transaction.origin_tx_hash is not None:
        what = f"origin_tx_hash is 0x{transaction.origin_tx_hash.hex()}: only the chain makes deferred transactions"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="origin_tx_hash")


def nonce_mismatch(transaction: Transaction, nonce: int) -> Rejection:
    """Return the refusal of a transaction whose sender is at another nonce."""
    return Rejection(
        RejectionReason.NONCE_MISMATCH,
        f"{transaction.sender} is at nonce {nonce}, the transaction has {transaction.nonce}",
        expected=nonce,
        actual=transaction.nonce,
    )


def check_limits(transaction: Transaction, least: Units, limits: LimitParams, used: Units = (0, 0)) -> None:
    """Refuse limits below what the transaction uses before it runs (``least``), or above what the block has left."""
    for unit, smallest, given, so_far, most in (
        ("cycles", least[0], transaction.cycles_limit, used[0], limits.block_cycles_max),
        ("cells", least[1], transaction.cells_limit, used[1], limits.block_cells_max),
    ):
        if given < smallest:
            raise Rejection(
                RejectionReason.OUT_OF_CYCLES if unit == "cycles" else RejectionReason.OUT_OF_CELLS,
                f"{unit}_limit is {given}, {transaction.instruction.name} uses {smallest} before it runs",
                used=smallest,
                limit=given,
            )
        if so_far + given > most:
            left = max(most - so_far, 0)
            what = f"{unit}_limit is {given}, the block has {left} of {most} {unit} left"
            raise Rejection(RejectionReason.BLOCK_FULL, what, limit=given, left=left)


def check_price(transaction: Transaction, rules: Rules) -> Prices:
    """Return what the transaction's units cost; refuse fee caps below the basefees with ``BASEFEE_TOO_LOW``."""
    cycle_basefee, cell_basefee = rules.user_basefees()
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


def check_balance(transaction: Transaction, balance: int, promised: int = 0) -> int:
    """Return the most that a transaction can cost its sender, base units: limits at fee caps, and what it sends.

    ``promised`` is what the sender's other transactions may need of its balance.

    Raises:
        Rejection: ``INSUFFICIENT_GAS_BALANCE`` or ``INSUFFICIENT_BALANCE``, if the sender could not pay that.
    """
    gas = transaction.cycles_limit * transaction.max_fee_per_cycle
    gas += transaction.cells_limit * transaction.max_fee_per_cell
    instruction = transaction.instruction
    amount = instruction.amount if isinstance(instruction, _SENDING) else 0
    available = balance - promised
    if available >= gas + amount:
        return gas + amount
    holds = f"{transaction.sender} holds {balance} base units"
    if promised:
        holds += f", of which its other transactions may need {promised}"
    if available < gas:
        what = f"{holds}, its limits at its fee caps need {gas}"
        raise Rejection(RejectionReason.INSUFFICIENT_GAS_BALANCE, what, required=str(gas), available=str(available))
    what = f"{holds}, {amount} and fees of up to {gas} are needed"
    raise Rejection(RejectionReason.INSUFFICIENT_BALANCE, what, required=str(gas + amount), available=str(available))
