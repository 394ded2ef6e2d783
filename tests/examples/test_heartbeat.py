"""Heartbeat: testing a loop, its cost, and the day on which its purse is empty."""

CBY = 10**9  # base units


def fires(chain):
    """Return the receipts of all fires so far."""
    return [receipt for receipt in chain.receipts() if receipt.origin == "timer"]


def test_heartbeat_beats_every_ten_blocks_when_its_purse_is_full(chain):
    """Each beat schedules the next one, and costs what it used, not what it reserved."""
    heart = chain.deploy("examples/actors/heartbeat.py", sender=chain.accounts[0], value=100 * CBY)

    chain.advance_to(101)

    assert heart.storage[b"beats"] == b"10"
    assert [timer.height for timer in heart.timers()] == [111]
    assert [receipt.block_height for receipt in fires(chain)] == list(range(11, 102, 10))
    assert heart.balance == 100 * CBY - sum(receipt.fee_paid for receipt in fires(chain))
    assert all(receipt.fee_paid < receipt.refund for receipt in fires(chain))
    chain.check_invariants()


def test_heartbeat_stops_when_its_purse_cannot_cover_the_next_beat(chain):
    """A purse is empty when it holds less than a beat *could* cost: 50,000 cycles and 550,000 cells, here 6 CBY."""
    heart = chain.deploy("examples/actors/heartbeat.py", sender=chain.accounts[0], value=6 * CBY + CBY // 4)

    chain.advance_to(1_000)

    (end,) = chain.events("TimerCancelledInsufficientFunds")
    assert end.data["required"] == 6 * CBY
    assert end.data["available"] == heart.balance < 6 * CBY
    assert heart.storage[b"beats"] == b"%d" % len(fires(chain))
    assert heart.timers() == []

    life = chain.explain(end.timer_id)
    assert life.state == "unfunded"
    assert life.steps[-1].story.startswith("removed without running: a fire costs up to 6 CBY")


def test_heartbeat_does_not_beat_when_a_stranger_calls_its_handler(chain):
    """A second loop, at the actor's expense, is not for anybody to start."""
    heart = chain.deploy("examples/actors/heartbeat.py", sender=chain.accounts[0], value=100 * CBY)

    receipt = heart.call("handle_timer", b"", sender=chain.accounts[1])

    assert receipt.status == "reverted"
    assert receipt.error.context["exception_message"] == "only the actor's own timer may beat"
    assert len(heart.timers()) == 1
