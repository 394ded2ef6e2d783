"""Expectations around statements: what they accept, what they refuse, and what their messages show."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from trailboss.model.transactions import SetBalance
from trailboss.primitives.errors import TrailbossError
from trailboss.testing import ActorHandle, LocalChain, RevertedError

CBY = 10**9
NOBODY = bytes(19) + b"\x77"
SHOP = """
from cowboy_sdk import codec

def pay(payload):
    if payload == b"no":
        raise ValueError("no money")
    pvm_host.emit_event("paid", payload)

def sell(payload):
    pvm_host.emit_event("sold", codec.encode({"to": pvm_host.context()["sender"], "price": 5, "tags": ["a"]}))

def later(payload):
    return pvm_host.schedule_timer_ex(pvm_host.block_height() + 3, payload, gas_limit=50_000)

def handle_timer(payload):
    if payload == b"bad":
        raise ValueError("bad timer")
"""
Expecting = Callable[[LocalChain, ActorHandle], AbstractContextManager[Any]]


@pytest.fixture
def shop(chain: LocalChain) -> ActorHandle:
    """Return an actor with money, labelled."""
    return chain.label(chain.deploy(SHOP, sender=chain.accounts[0], value=100 * CBY), "shop")


def pay(shop: ActorHandle, payload: bytes = b"1", **options: Any) -> None:
    """Have the second account call the shop."""
    shop.call("pay", payload, sender=shop.chain.accounts[1], **options)


def message(expecting: AbstractContextManager[Any], action: Callable[[], object]) -> list[str]:
    """Return the lines of the AssertionError of an expectation that does not hold."""
    with pytest.raises(AssertionError) as caught, expecting:
        action()
    return str(caught.value).splitlines()


# Failures


@pytest.mark.parametrize(
    "reason", [None, "E1210", 1210, "pvm_error", "no money", "ValueError: no", re.compile("^E1210 .*no m")]
)
def test_failure_is_met_by_code_slug_message_and_pattern(
    chain: LocalChain, shop: ActorHandle, reason: str | int | re.Pattern[str] | None
) -> None:
    """Other receipts within may be what they are."""
    with chain.expect_revert(reason, actor=shop) as failure:
        pay(shop)
        pay(shop, b"no")
    assert failure.receipt == chain.receipts()[-1]


@pytest.mark.parametrize("reason", ["E1202", 1202, "invalid_input", "no monet", re.compile("^no money")])
def test_failure_is_not_met_by_another_reason(
    chain: LocalChain, shop: ActorHandle, reason: str | int | re.Pattern[str]
) -> None:
    """The message has the failure that there was, with the line, before what succeeded."""
    lines = message(chain.expect_revert(reason), lambda: (pay(shop), pay(shop, b"no")))
    assert lines[1] == "happened: none of 2 receipts"
    assert lines[2].startswith("  reverted with E1210 pvm_error: ValueError: no money, line 6, in pay, block 3:")
    assert lines[3].startswith("  ok, block 2: transaction to shop (0x044d")


def test_failure_is_taken_from_calls_that_raise_it(chain: LocalChain, shop: ActorHandle) -> None:
    """A deployment, a call with ``check``, a whole block, and what no block takes."""
    with chain.expect_revert("E1101"):
        chain.deploy("import random\n", sender=chain.accounts[0])
    with chain.expect_revert("no money"):
        pay(shop, b"no", check=True)
    with chain.expect_revert("no money"), chain.one_block():
        pay(shop)
        pay(shop, b"no", check=True)
    with chain.expect_revert("insufficient_balance") as failure:
        chain.transfer(NOBODY, 10**18, sender=chain.accounts[0])
    assert failure.receipt.status == "refused"
    with chain.expect_revert("sets its own balance"):
        chain.set_balance(chain.deployer, 1)
    with pytest.raises(AssertionError, match="none of 1 receipt"), chain.expect_revert("E1202"):
        pay(shop, b"no", check=True)


def test_failure_must_be_the_only_one(chain: LocalChain, shop: ActorHandle) -> None:
    """Unless the others are another actor's."""
    other = chain.deploy(SHOP, sender=chain.accounts[0])
    lines = message(chain.expect_revert("no money"), lambda: (pay(shop, b"no"), pay(other, b"no")))
    assert (lines[1], lines[-1]) == ("happened: 2 of 2 receipts", "give actor= to mean one of them")
    with chain.expect_revert("no money", actor=other):
        pay(shop, b"no")
        pay(other, b"no")


def test_fire_can_be_the_failure(chain: LocalChain, shop: ActorHandle) -> None:
    """Around `mine`, nested with others."""
    with chain.expect_revert("bad timer") as failure, chain.expect_fires(1, actor=shop, reverted=True):
        shop.call("later", b"bad", sender=chain.accounts[1])
        chain.mine(5)
    assert failure.receipt.origin == "timer"


def test_receipt_is_refused_while_the_expectation_is_open(chain: LocalChain, shop: ActorHandle) -> None:
    """It is not known yet."""
    with chain.expect_revert() as failure:
        with pytest.raises(TrailbossError, match="still open"):
            _ = failure.receipt
        pay(shop, b"no")


# Events


def test_event_is_met_by_some_of_its_fields(chain: LocalChain, shop: ActorHandle) -> None:
    """Accounts stand for addresses, also within lists and maps; tuples for lists."""
    buyer = chain.accounts[1]
    with chain.expect_event("sold", emitter=shop, data={"to": buyer, "tags": ("a",)}) as sale:
        shop.call("sell", sender=buyer)
    assert [event.data["price"] for event in sale.events] == [5]
    with chain.expect_event("paid", data=b"1", times=2), chain.expect_event("sold", times=0), chain.one_block():
        pay(shop)
        pay(shop)
        pay(shop, b"2")


def test_event_that_is_nearly_right_is_shown_field_by_field(chain: LocalChain, shop: ActorHandle) -> None:
    """With labels; the nearest one comes first."""
    buyers = chain.accounts[1:3]
    lines = message(
        chain.expect_event("sold", data={"to": buyers[1], "price": 6, "size": 1}),
        lambda: [shop.call("sell", sender=buyer) for buyer in buyers],
    )
    assert lines == [
        "expected: sold with {to: account 2 (0x69352469…), price: 6, size: 1}, 1 time",
        "happened: 0 times",
        "  sold in block 3, but",
        "    price: expected 6, was 5",
        "    size: there is none; the fields are to, tags, price",
        "  sold in block 2, but",
        "    to: expected account 2 (0x69352469…), was account 1 (0x801592C8…)",
        "    price: expected 6, was 5",
        "    size: there is none; the fields are to, tags, price",
    ]


@pytest.mark.parametrize(
    ("name", "options", "last"),
    [
        ("paid_out", {}, "other events: paid × 1"),
        ("paid", {"times": 2}, "  <Event paid of shop ("),
        ("paid", {"times": 0}, "  <Event paid of shop ("),
        ("paid", {"data": b"2"}, "    data: expected 2, was 1"),
        ("paid", {"data": {"n": 1}}, "    expected the fields n, was 1"),
        ("paid", {"emitter": NOBODY}, "    emitter: expected 0x0000000000000000000000000000000000000077, was shop ("),
    ],
)
def test_event_that_did_not_come_is_shown_beside_those_that_did(
    chain: LocalChain, shop: ActorHandle, name: str, options: dict[str, Any], last: str
) -> None:
    """Another name, number, content or emitter."""
    lines = message(chain.expect_event(name, **options), lambda: pay(shop))
    assert lines[-1].startswith(last)


def test_no_event_at_all_is_said(chain: LocalChain) -> None:
    """In an empty block."""
    assert message(chain.expect_event("paid"), chain.mine)[-1] == "there were no events at all"


# Fires


def test_fires_are_counted_by_actor_timer_and_outcome(chain: LocalChain, shop: ActorHandle) -> None:
    """In the blocks that count."""
    with (
        chain.expect_fires(2, reverted=None) as both,
        chain.expect_fires(1, actor=shop, reverted=True),
        chain.expect_fires(1, within=4),
        chain.expect_fires(0, within=3),
        chain.expect_fires(0, actor=NOBODY),
    ):
        good = shop.call("later", b"", sender=chain.accounts[1]).return_value
        with chain.expect_fires(1, timer_id=good):
            shop.call("later", b"bad", sender=chain.accounts[1])
            chain.mine(5)
    assert [receipt.block_height for receipt in both.receipts] == [5, 6]


def test_fire_that_did_not_come_is_explained(chain: LocalChain, shop: ActorHandle) -> None:
    """A timer that is still to come, one that could not be paid, one that reverted."""

    def schedule(payload: bytes) -> bytes:
        return shop.call("later", payload, sender=chain.accounts[1]).return_value

    lines = message(chain.expect_fires(actor=shop), lambda: chain.label(schedule(b""), "tick"))
    assert lines[:2] == [f"expected: 1 fire of shop ({str(shop.address)[:10]}…)", "happened: 0, in blocks 2 to 2"]
    assert lines[2].startswith("  timer tick (0x")
    assert "is live: next: fires at height 5" in lines[2]
    mark = chain.snapshot()
    chain.set_balance(shop, 0)
    lines = message(chain.expect_fires(actor=shop), lambda: chain.mine(4))
    assert "is unfunded: block 5: removed without running" in lines[2]
    chain.revert(mark)
    schedule(b"bad")
    lines = message(chain.expect_fires(2), lambda: chain.mine(5))
    assert lines[2].startswith("  reverted with E1210 pvm_error: ValueError: bad timer, line")
    assert "ok, block 5: timer tick (0x" in lines[3]
    assert message(chain.expect_fires(), chain.mine)[2:] == ["  no timer ended otherwise, and none is live"]


def test_fire_that_did_not_come_is_explained_among_those_of_others(chain: LocalChain, shop: ActorHandle) -> None:
    """However many of them ended within."""
    others = [chain.schedule(50) for _ in range(4)]

    def end_others() -> None:
        with chain.one_block():
            shop.call("later", b"", sender=chain.accounts[1])
            for timer in others:
                chain.drop(timer.timer_id)

    lines = message(chain.expect_fires(actor=shop), end_others)
    assert "is live: next: fires at height" in lines[2]
    assert len(lines) == 3


# Balances


def test_balances_are_compared_with_fees_and_without(chain: LocalChain) -> None:
    """They can be read within and afterwards; what is None is only reported."""
    alice, bob = chain.accounts[:2]
    with chain.balance_changes({alice: -CBY, bob: CBY, NOBODY: None}, with_fees=False) as changes:
        receipt = chain.transfer(bob, CBY, sender=alice)
        assert changes[bob] == CBY
    assert changes[alice] == -CBY - receipt.fee_paid
    assert (changes.fees[alice], changes.fees[bob], changes[NOBODY]) == (receipt.fee_paid, 0, 0)
    with chain.balance_changes({alice: -CBY - receipt.fee_paid}):
        chain.transfer(bob, CBY, sender=alice)
    chain.transfer(bob, CBY, sender=alice)
    assert changes[bob] == CBY
    assert repr(changes).startswith("account 0 (0x044D388b…) -1.105 CBY, account 1 (0x801592C8…) +1 CBY")


def test_wrong_balance_is_shown_with_its_fees(chain: LocalChain, shop: ActorHandle) -> None:
    """In CBY, beside those that are right."""
    alice, bob = chain.accounts[:2]
    expected = {alice: -CBY, bob: CBY, shop: None}
    assert message(chain.balance_changes(expected), lambda: chain.transfer(bob, CBY, sender=alice)) == [
        "balances changed otherwise than expected (fees included)",
        "  account 0 (0x044D388b…): expected -1 CBY, was -1.105 CBY, of it 0.105 CBY in fees; off by -0.105 CBY",
        "  account 1 (0x801592C8…): +1 CBY, as expected",
        f"  shop ({str(shop.address)[:10]}…): 0 CBY",
    ]


# What makes no sense


@pytest.mark.parametrize(
    ("expecting", "kind", "what"),
    [
        (lambda chain, _: chain.expect_revert(""), ValueError, "is a part of every message"),
        (lambda chain, _: chain.expect_revert("E9999"), ValueError, "there is no error E9999"),
        (lambda chain, _: chain.expect_revert(7), ValueError, "there is no error E7"),
        (lambda chain, _: chain.expect_revert(True), TypeError, "give a code, a slug"),
        (lambda chain, _: chain.expect_revert(actor="shop"), TypeError, "'shop' is no account, actor or address"),
        (lambda chain, _: chain.expect_event(""), TypeError, "the name of an event is text"),
        (lambda chain, _: chain.expect_event("paid", times=-1), ValueError, "times=-1): at least 0"),
        (lambda chain, _: chain.expect_event("paid", times=True), TypeError, "times=True): an integer"),
        (lambda chain, _: chain.expect_event("paid", data={}), ValueError, "compares nothing"),
        (lambda chain, _: chain.expect_event("paid", data={"n": {1}}), TypeError, "of type set, which no event"),
        (lambda chain, _: chain.expect_event("paid", emitter=b"x"), TypeError, "b'x' is no account"),
        (lambda chain, _: chain.expect_fires(-1), ValueError, "count=-1): at least 0"),
        (lambda chain, _: chain.expect_fires(within=0), ValueError, "within=0): at least 1"),
        (lambda chain, _: chain.expect_fires(timer_id="0x1"), TypeError, "timer_id='0x1'): give the 32 bytes"),
        (lambda chain, _: chain.expect_fires(reverted=1.5), TypeError, "reverted=1.5): True, False, or None"),
        (lambda chain, _: chain.balance_changes({}), TypeError, "give a dict"),
        (lambda chain, _: chain.balance_changes([1]), TypeError, "give a dict"),
        (lambda chain, _: chain.balance_changes({"shop": 1}), TypeError, "'shop' is no account"),
        (lambda chain, shop: chain.balance_changes({shop: 1.5}), TypeError, "1.5 is no integer of base units"),
        (lambda chain, shop: chain.balance_changes({shop: 1, shop.address: 1}), ValueError, "twice"),
    ],
)
def test_expectation_is_refused_when_it_makes_no_sense(
    chain: LocalChain, shop: ActorHandle, expecting: Expecting, kind: type[Exception], what: str
) -> None:
    """Before anything runs; the value is named."""
    with pytest.raises(kind, match=re.escape(what)):
        expecting(chain, shop)


EVERY: tuple[Expecting, ...] = (
    lambda chain, _: chain.expect_revert(),
    lambda chain, _: chain.expect_event("paid", times=0),
    lambda chain, _: chain.expect_fires(0),
    lambda chain, shop: chain.balance_changes({shop: 0}),
)


@pytest.mark.parametrize("expecting", EVERY)
def test_expectation_is_refused_when_nothing_happens_within(
    chain: LocalChain, shop: ActorHandle, expecting: Expecting
) -> None:
    """A view is nothing; and what is refused is named."""
    with pytest.raises(ValueError, match="no block was built; views have no receipt"), expecting(chain, shop):
        shop.view("pay")


@pytest.mark.parametrize("expecting", EVERY[1:])
def test_refusal_is_named_when_nothing_else_happens(chain: LocalChain, shop: ActorHandle, expecting: Expecting) -> None:
    """It is why there is no block."""
    with pytest.raises(ValueError, match="no block was built: refused with E1003 insuff"), expecting(chain, shop):
        chain.transfer(shop, 10**18, sender=chain.accounts[0])


@pytest.mark.parametrize("expecting", EVERY)
def test_expectation_begins_and_ends_between_blocks_of_one_branch(
    chain: LocalChain, shop: ActorHandle, expecting: Expecting
) -> None:
    """Not within an open block, and not in one that is dropped meanwhile."""
    with pytest.raises(TrailbossError, match="while a block is open"), chain.one_block():
        expecting(chain, shop)
    with pytest.raises(ValueError, match="after which this expectation began, was reverted"), expecting(chain, shop):
        _rebuild(chain)
    with chain.expect_fires(0):
        chain.mine(2)
        chain.reorg(1)


@pytest.mark.parametrize("expecting", EVERY)
def test_exception_from_within_is_what_the_test_ends_with(
    chain: LocalChain, shop: ActorHandle, expecting: Expecting
) -> None:
    """Nothing else is checked."""
    with pytest.raises(KeyError, match="mine"), expecting(chain, shop):
        raise KeyError("mine")


def test_reverted_error_passes_through_other_expectations(chain: LocalChain, shop: ActorHandle) -> None:
    """Only `expect_revert` takes it."""
    with pytest.raises(RevertedError, match="unauthorized"), chain.expect_event("paid"):
        chain.system(SetBalance(shop.address, 1), sender=chain.accounts[0], check=True)


def _rebuild(chain: LocalChain) -> None:
    chain.reorg(1)
    chain.mine(3)
