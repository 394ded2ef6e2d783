"""The SDK clock: ticking, asking it for its ticks, and the day on which its purse is empty."""

CBY = 10**9  # base units
NULL = b"\xf6"  # CBOR, which public handlers of SDK actors take


def test_clock_ticks_every_five_blocks_when_it_can_pay(chain):
    """Anybody may ask for the ticks; only its own timer ticks."""
    clock = chain.deploy("examples/actors/clock.py", sender=chain.accounts[0], value=20 * CBY)

    chain.mine(30)

    assert clock.view("ticks", NULL).return_value == b"\x06"
    assert [timer.height for timer in clock.timers()] == [36]
    refused = clock.call("on_tick", b"", sender=chain.accounts[1])
    assert not refused.ok
    assert clock.view("ticks", NULL).return_value == b"\x06"


def test_clock_stops_when_its_purse_cannot_cover_the_next_tick(chain):
    """It asks for 100,000 cycles a tick: 6.5 CBY that it must hold, of which it gets most back."""
    clock = chain.deploy("examples/actors/clock.py", sender=chain.accounts[0], value=7 * CBY)

    chain.advance_to(100)

    (end,) = chain.events("TimerCancelledInsufficientFunds")
    assert end.data["available"] == clock.balance < end.data["required"] == 6 * CBY + CBY // 2
    assert chain.explain(end.timer_id).state == "unfunded"
    assert clock.timers() == []


def test_clock_stops_at_once_when_its_purse_is_drained(chain):
    """What a test does on purpose: take the money away and see what the actor leaves behind."""
    clock = chain.deploy("examples/actors/clock.py", sender=chain.accounts[0], value=20 * CBY)
    chain.mine(7)
    chain.set_balance(clock, CBY)

    chain.mine(10)

    (end,) = chain.events("TimerCancelledInsufficientFunds")
    assert end.data["available"] == CBY
    assert clock.view("ticks", NULL).return_value == b"\x01"
