"""A transaction on its way: in the mempool, refused, and in a block."""

from collections.abc import Iterator

import pytest

from tests.unit.explorer.standin import StandIn, ask, look, section, stand_in, words
from tests.unit.explorer.test_pages import built
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.wire import encode_transaction
from trailboss.explorer.links import transaction as transaction_path
from trailboss.explorer.page_context import Redirect
from trailboss.explorer.pages.accounts import account
from trailboss.explorer.pages.blocks import mempool, transaction
from trailboss.explorer.pages.search import search
from trailboss.model.transactions import Transaction, Transfer, transaction_hash
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32


@pytest.fixture
def node() -> Iterator[StandIn]:
    """Return a stand-in that may be moved."""
    made = stand_in("fifo", 1)
    yield made
    made.close()


def sent(node: StandIn, *, ahead: int = 0) -> Transaction:
    """Put a transfer into the mempool, with a nonce so far ahead, and return it."""
    alice, bob = node.scene.chain.accounts[6:8]
    made = draft_transaction(node.chain, Transfer(bob.address, 7), alice.private_key, waiting=ahead)
    verdict = node.mempool.add(node.view, made, encode_transaction(made), transaction_hash(made))
    assert verdict.rejection is None
    return made


def test_transaction_waits_and_then_is_in_a_block(node: StandIn) -> None:
    """Its page says first why it waits, and then what came of it; lists and searches lead there."""
    made = sent(node)
    name = transaction_hash(made)
    waiting = built(transaction(look(node), ask(), str(name)))
    assert waiting.subject[-1].text == "waits"
    assert "the next of its sender" in words(section(waiting, "waits").content)
    assert "0.000000007 CBY" in words(section(waiting, "instruction").rows[2].content)
    listed = section(built(mempool(look(node), ask(), "")), "transactions")
    assert [row.key for row in listed.rows] == [name.hex()]
    assert search(look(node), ask(q=str(name)), "") == Redirect(transaction_path(name))
    facts = section(built(account(look(node), ask(), str(made.sender))), "facts")
    assert any("1 transaction" in words(fact.content) for fact in facts.rows)

    block = node.chain.build([made]).block
    node.index.apply([block])
    node.view = node.chain.publish()
    node.mempool.settle(node.view, [name], {})

    done = built(transaction(look(node), ask(), str(name)))
    assert done.subject[-1].text == "ok"
    assert words(section(done, "receipt").rows[1].content).startswith(f"{block.height} at position 0")
    assert not section(built(mempool(look(node), ask(), "")), "transactions").rows


def test_transaction_page_names_the_gap_when_a_nonce_is_missing(node: StandIn) -> None:
    """What waits for others says for which."""
    made = sent(node, ahead=2)
    waiting = built(transaction(look(node), ask(), str(transaction_hash(made))))
    assert f"Its nonce is {made.nonce} and the sender's next is {made.nonce - 2}" in words(
        section(waiting, "waits").content
    )


def test_transaction_page_says_why_when_it_was_refused(node: StandIn) -> None:
    """What the node remembers of a refusal stands there, with what to do."""
    made = sent(node)
    name = transaction_hash(made)
    node.mempool.settle(node.view, [], {Hash32(name): Rejection(RejectionReason.OVERFLOW, "too wide")})
    refused = built(transaction(look(node), ask(), str(name)))
    assert refused.subject[-1].text == "refused"
    assert section(refused, "error").title == "E1007 overflow"
    assert words(section(refused, "error").content) == "too wide"
