"""What a mempool asks of a chain about a transaction that is in no block yet: the rules of the block, ahead of it."""

from typing import NamedTuple

from trailboss.chain.reader import ChainReader
from trailboss.execution import development
from trailboss.execution.admission import check_balance, check_destination, check_limits, check_price, nonce_mismatch
from trailboss.execution.instructions import intrinsic_costs
from trailboss.model.configs import amount_of
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.state.keys import ACCOUNTS
from trailboss.state.view import StoreView

__all__ = ["Needs", "Standing", "changed_accounts", "check_admission", "check_balance", "check_sender"]
__all__ += ["nonce_mismatch", "standing_of"]


class Standing(NamedTuple):
    """What an account can send."""

    nonce: int  # of its next transaction
    balance: int  # base units


class Needs(NamedTuple):
    """What a transaction takes."""

    cycles: int  # cycles that it uses at least, before it runs
    cells: int  # cells that it uses at least, before it runs
    cost: int  # base units that it can cost its sender at most: its limits at its fee caps, and what it sends


def standing_of(reader: ChainReader, address: bytes) -> Standing:
    """Return what an account can send; an account that is not there is at nonce 0 and holds nothing."""
    account = reader.account(address)
    return Standing(0, 0) if account is None else Standing(account.nonce, amount_of(account.balance))


def changed_accounts(reader: ChainReader) -> frozenset[bytes] | None:
    """Return the accounts that the chain has changed since a view of it was published; None for a chain itself."""
    store = reader.store
    if not isinstance(store, StoreView):
        return None
    return frozenset(key.removeprefix(ACCOUNTS) for key in store.changed_since(ACCOUNTS))


def check_sender(reader: ChainReader, transaction: Transaction) -> None:
    """Refuse a transaction that its sender, or an additional signer, has not signed.

    An unsigned one passes on a development chain. Decision: D-69.

    Raises:
        Rejection: ``INVALID_SIGNATURE``; ``OVERFLOW`` or ``INVALID_DATA`` if a field does not fit the wire.
    """
    development.check_sender(transaction, reader.rules(), is_development=reader.genesis.development)


def check_admission(
    reader: ChainReader, transaction: Transaction, standing: Standing, *, promised: int = 0, ahead: int | None = None
) -> Needs:
    """Refuse a transaction that could not be in the next block even if that held nothing else.

    Args:
        reader: The chain.
        transaction: Its signature is not looked at.
        standing: Of its sender.
        promised: What the sender's other transactions that wait may need, base units.
        ahead: How far its nonce may be ahead of its sender's. None for a transaction that has waited before: it goes on
            waiting for those before it, however many they are, and for basefees that its fee caps cover.

    Raises:
        Rejection: ``CHAIN_ID_MISMATCH``, ``INVALID_DATA``, ``NONCE_MISMATCH``, ``NONCE_GAP``, ``OUT_OF_CYCLES``,
            ``OUT_OF_CELLS``, ``BLOCK_FULL``, ``BASEFEE_TOO_LOW``, ``INSUFFICIENT_GAS_BALANCE`` or
            ``INSUFFICIENT_BALANCE``: for the first rule that it breaks, in this order.
    """
    check_destination(transaction, reader.genesis.chain_id)
    expected, found = standing.nonce, transaction.nonce
    if found < expected:
        raise nonce_mismatch(transaction, expected)
    if ahead is not None and found > expected + ahead:
        what = f"{transaction.sender} is at nonce {expected}, the transaction has {found}: more than {ahead} ahead"
        raise Rejection(RejectionReason.NONCE_GAP, what, expected=expected, actual=found, ahead_max=ahead)
    rules = reader.rules()
    cycles, cells = intrinsic_costs(transaction.instruction, rules.params.costs)
    check_limits(transaction, (cycles, cells), rules.params.limits)
    if ahead is not None:
        check_price(transaction, rules)
    return Needs(cycles, cells, check_balance(transaction, standing.balance, promised))
