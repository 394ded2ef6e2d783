"""Labels of a local chain, and how its objects show themselves."""

import warnings

import pytest

from trailboss.testing import ActorHandle, LocalChain, RevertedError
from trailboss.testing.differences import compared_records

NOBODY = bytes(19) + b"\x77"
TICKER = """
def init(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 3, b"", gas_limit=50_000)

def handle_timer(payload):
    print("tick for", pvm_host.self_address())

def fail(payload):
    raise ValueError("no")
"""


@pytest.fixture
def ticker(chain: LocalChain) -> ActorHandle:
    """Return an actor with a timer."""
    return chain.deploy(TICKER, sender=chain.accounts[0], value=10**11, entitlements=["timer.schedule"])


def test_label_is_shown_everywhere_with_the_first_digits(
    chain: LocalChain, ticker: ActorHandle, capsys: pytest.CaptureFixture[str]
) -> None:
    """In ``repr``, printed lines, explanations, errors."""
    assert chain.label(ticker, "ticker") is ticker
    [timer] = ticker.timers()
    assert chain.label(timer, "beat") is timer
    shown, beat = f"ticker ({str(ticker.address)[:10]}…)", f"beat ({str(timer.timer_id)[:10]}…)"
    assert repr(ticker) == f"<Actor {shown}>"
    assert repr(timer) == f"<Timer {beat} of {shown}: calls handle_timer at 4, ring, paid by {shown}>"
    chain.mine(3)
    fire = chain.receipts()[-1]
    assert repr(fire).startswith(f"<Receipt ok, block 4: timer {beat} to {shown}, ")
    assert capsys.readouterr().out.startswith(f"block 4, {shown} handle_timer: tick for ")
    life = chain.explain(timer.timer_id)
    assert repr(life) == f"<TimerLife {beat}: fired, 2 steps>"
    assert str(life).startswith(
        f"timer {beat}: fired\n  block 1: scheduled by a transaction of account 0 (0x044D388b…)"
    )
    assert f"paid by {shown}, expires" in str(life)
    chain.label(NOBODY, "nobody")
    with pytest.raises(RevertedError, match=r"there is no actor at nobody \(0x00000000…\)"):
        chain.set_storage(NOBODY, b"k", b"v")


def test_accounts_have_their_names(chain: LocalChain) -> None:
    """And get others."""
    assert repr(chain.accounts[0]) == "<TestAccount account 0 (0x044D388b…)>"
    assert repr(chain.deployer).startswith("<TestAccount deployer (0x")
    chain.label(chain.accounts[0], "alice")
    assert repr(chain.accounts[0]) == "<TestAccount alice (0x044D388b…)>"
    receipt = chain.transfer(NOBODY, 1, sender=chain.accounts[0])
    assert repr(receipt) == "<Receipt ok, block 1: transaction, 10,000 cycles, 0.105 CBY from alice (0x044D388b…)>"


def test_failed_receipt_says_why_first(chain: LocalChain, ticker: ActorHandle) -> None:
    """Pytest cuts off the end of a long ``repr``."""
    receipt = ticker.call("fail", sender=chain.accounts[0])
    assert repr(receipt).startswith(
        "<Receipt reverted with E1210 pvm_error: ValueError: no, line 9, in fail, block 2: "
    )
    with chain.one_block():
        pending = chain.transfer(NOBODY, 1, sender=chain.accounts[0])
        assert repr(pending) == "<PendingReceipt: the block is still open>"
    assert repr(pending).startswith("<Receipt ok, block 3: transaction, ")
    assert repr(chain) == "<LocalChain fifo, height 3>"


def test_event_is_shown_with_its_fields(chain: LocalChain, ticker: ActorHandle) -> None:
    """Cut off where they are many."""
    shown = repr(chain.events("timer.scheduled")[0])
    assert shown.startswith(f"<Event timer.scheduled of {str(ticker.address)[:10]}…, block 1, timer 0x")
    assert len(shown) < 250


@pytest.mark.parametrize(
    ("what", "name", "kind", "words"),
    [
        ("shop", "shop", TypeError, "give an account, an actor, a timer"),
        (NOBODY, 5, TypeError, "a label is text"),
        (b"short", "shop", ValueError, "not for 5 bytes"),
        (NOBODY, "", ValueError, "must have 1 to 40 printable characters"),
        (NOBODY, "a\x1bb", ValueError, "must have 1 to 40 printable characters"),
        (NOBODY, "0xabc", ValueError, "do not begin with 0x"),
        (NOBODY, "x" * 41, ValueError, "must have 1 to 40"),
        (NOBODY, "deployer", ValueError, "is the label of 0x"),
    ],
)
def test_label_is_refused_when_it_would_mislead(
    chain: LocalChain, what: object, name: object, kind: type[Exception], words: str
) -> None:
    """The value and the rule are named, and nothing has changed."""
    before = list(chain.labels)
    with pytest.raises(kind, match=words):
        chain.label(what, name)  # type: ignore[type-var, arg-type]
    assert list(chain.labels) == before


def test_labels_are_of_one_chain_and_change_no_root(chain: LocalChain) -> None:
    """The next chain begins without them."""
    chain.label(NOBODY, "nobody")
    chain.mine()
    with LocalChain() as other:
        other.mine()
        assert (other.labels.get(NOBODY), other.state_root) == (None, chain.state_root)


def test_actors_are_keys(chain: LocalChain, ticker: ActorHandle) -> None:
    """Of a dict, as accounts are."""
    assert {ticker: 1, chain.accounts[0]: 2}[chain.actor(ticker.address)] == 1


def test_records_differ_field_by_field(chain: LocalChain, ticker: ActorHandle) -> None:
    """In units that people read; what is equal is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = chain.deploy(TICKER, sender=chain.accounts[0], value=10**11)
    lines = compared_records(ticker.receipt, other.receipt)
    assert lines[0] == f"{ticker.receipt!r} == {other.receipt!r}"
    assert any(line.startswith("  fee_paid: ") and line.count(" CBY") == 2 for line in lines)
    assert any(line.startswith("  events[0] ") for line in lines)
    assert not any("status" in line for line in lines)
    mine, theirs = ticker.receipt.events[0], other.receipt.events[0]
    assert f"  block_height: {mine.block_height} != {theirs.block_height}" in compared_records(mine, theirs)
    assert any(line.startswith("  data.") for line in compared_records(mine, theirs))
