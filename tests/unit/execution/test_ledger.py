"""Accounts and money: every movement is exact, and a refused one moves nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.execution.ledger import Ledger
from trailboss.model.actors import Account
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

ONE, TWO, THREE = (Address(bytes([number]) * 20) for number in (1, 2, 3))
U128_MAX = 2**128 - 1


def ledger() -> Ledger:
    return Ledger(Overlay(MemoryStore()))


def test_balance_is_zero_when_there_is_no_account() -> None:
    """Asking does not create one."""
    book = ledger()
    assert book.balance(ONE) == 0
    assert book.find(ONE) is None
    assert book.account(ONE) == Account()
    assert book.find(ONE) is None


def test_nothing_is_written_when_the_amount_is_zero() -> None:
    """Crediting or debiting nothing creates no account."""
    book = ledger()
    book.credit(ONE, 0)
    book.debit(ONE, 0)
    assert book.find(ONE) is None


@pytest.mark.spec("E-06")
def test_debit_is_refused_when_a_unit_is_missing() -> None:
    """The exact balance can go, one unit more cannot; the refusal has all three facts."""
    book = ledger()
    book.credit(ONE, 10)
    with pytest.raises(Rejection) as caught:
        book.debit(ONE, 11)
    assert caught.value.reason is RejectionReason.INSUFFICIENT_BALANCE
    assert caught.value.what == f"{ONE} holds 10 base units, 11 are needed"
    assert caught.value.context == {"account": str(ONE), "required": "11", "available": "10"}
    assert book.balance(ONE) == 10
    book.debit(ONE, 10)
    assert book.balance(ONE) == 0


def test_credit_stops_the_chain_when_the_balance_would_not_fit() -> None:
    """The supply fits 128 bits, so a balance that does not is money out of nothing."""
    book = ledger()
    book.credit(ONE, U128_MAX)
    with pytest.raises(InvariantError, match=f"the balance of {ONE} would be {2**128}, more than 128 bits"):
        book.credit(ONE, 1)
    assert book.balance(ONE) == U128_MAX


def test_code_is_found_under_its_hash_when_stored() -> None:
    """An account that names code which is not there is a broken chain, not a user's mistake."""
    book = ledger()
    book.store_code(b"h" * 32, "x = 'ü'\n".encode())
    assert book.code(Account(code_hash=b"h" * 32)) == "x = 'ü'\n"
    with pytest.raises(InvariantError, match="the state holds no code"):
        book.code(Account(code_hash=b"g" * 32))


@pytest.mark.spec("E-04", "F-81")
@given(
    st.lists(
        st.tuples(st.sampled_from([ONE, TWO, THREE]), st.sampled_from([ONE, TWO, THREE]), st.integers(0, 2**90)),
        max_size=30,
    )
)
def test_money_is_conserved_when_it_moves(moves: list[tuple[Address, Address, int]]) -> None:
    """Transfers, refused ones and those to oneself among them, and burning: the sum stays, to the unit."""
    book = ledger()
    supply = 2**89 + 1
    book.credit(ONE, supply)
    for sender, to, amount in moves:
        try:
            book.transfer(sender, to, amount)
        except Rejection:
            pass
        else:
            share = book.balance(to) // 7
            book.debit(to, share)
            book.burned += share
        assert sum(book.balance(address) for address in (ONE, TWO, THREE)) + book.burned == supply
