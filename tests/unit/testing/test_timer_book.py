"""`TimerBook` finds what does not add up."""

import pytest
from msgspec.structs import replace

from trailboss.primitives.errors import InvariantError
from trailboss.testing import LocalChain
from trailboss.testing.timer_book import TimerBook, check_books


def test_book_has_every_timer_and_how_it_ended(chain: LocalChain) -> None:
    """Live, fired and cancelled; after a reorg the book is that of the other branch."""
    book = TimerBook(chain.chain)
    fired, cancelled, live = (chain.schedule(chain.height + ahead) for ahead in (9, 20, 30))
    chain.cancel(cancelled.timer_id)
    mark = chain.snapshot()
    chain.mine(8)
    book.check_all()
    assert book.live == {live.timer_id}
    assert book.ended == {fired.timer_id: "fired", cancelled.timer_id: "cancelled"}
    chain.revert(mark)
    chain.mine()
    book.check_all()
    assert book.live == {live.timer_id, fired.timer_id}
    check_books(chain)


def test_book_names_the_timer_when_it_is_lost(chain: LocalChain) -> None:
    """A timer that is not there, and that no event has ended."""
    book = TimerBook(chain.chain)
    book.check()
    book.live.add(b"\x01" * 32)
    with pytest.raises(InvariantError, match="1 timers were scheduled and have not ended, and 0 are live"):
        book.check()
    book.live.clear()
    book.live.add(chain.schedule(20).timer_id)
    with pytest.raises(InvariantError, match="is scheduled in block 1, and is live already"):
        book.check()


def test_book_names_the_block_when_a_receipt_does_not_add_up(chain: LocalChain) -> None:
    """What is reserved is paid or given back."""
    chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0])
    block = chain.block()
    wrong = replace(block, receipts=(replace(block.receipts[0], reserved=1),))
    with pytest.raises(InvariantError, match="a receipt of block 1 reserved 1 and accounts for"):
        TimerBook(chain.chain)._read(wrong)


def test_book_says_how_it_ended_before_when_a_timer_ends_twice(chain: LocalChain) -> None:
    """Exactly one event ends a timer."""
    chain.schedule(chain.height + 3)
    chain.mine(5)
    book = TimerBook(chain.chain)
    book.check()
    last = next(block for block in chain.chain.blocks.eventful(2) if block.receipts)
    with pytest.raises(InvariantError, match=r"is fired in block \d+, after fired"):
        book._read(last)
