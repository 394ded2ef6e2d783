"""Liquidation bot: its agent wins the lane when a liquidation is at stake, and pays no tip while nothing is."""

import json

import pytest

CBY = 10**9
GAS_LIMIT = 100_000
REWARD = 200 * CBY
SAFE, UNSAFE = b"200", b"100"
CROWD_TIP = 5_000
"""What each timer of the crowd offers a cycle."""

CROWD = f"""
def start(payload):
    for number in range(20):
        again(payload)


def again(payload):
    height = pvm_host.block_height() + 1
    pvm_host.schedule_timer(height, payload, gas_limit=60_000, max_fee_per_cycle=10**9,
                            max_priority_fee_per_cycle={CROWD_TIP})


def handle_timer(payload):
    again(payload)
    while pvm_host.gas_left() > 10_000:
        pass
"""


@pytest.fixture
def bot(chain):
    """A bot with a safe loan, on a lane of three or four fires a block."""
    actor = chain.deploy("examples/actors/liquidation_bot.py", sender=chain.accounts[0], value=10_000 * CBY)
    actor.call("report", SAFE, sender=chain.accounts[0], check=True)
    loan = {"units": 10, "debt": 1_000, "reward": REWARD}
    actor.call("watch", json.dumps(loan).encode(), sender=chain.accounts[0], check=True)
    return actor


def crowd(chain, actors=3):
    """Let several actors fill the lane, twenty timers each that go on for ever."""
    for number in range(actors):
        actor = chain.deploy(CROWD, sender=chain.accounts[number], value=200_000 * CBY)
        actor.call("start", b"%d" % number, sender=chain.accounts[number], check=True)
    chain.mine(5)


def fires(chain, actor, since):
    """Return the bot's fires from a height on."""
    return [receipt for receipt in chain.receipts(since, origin="timer") if receipt.actor == actor.address]


LANE = pytest.mark.trailboss(
    mechanism="lane", params={"timers.lane_cycles_per_block": 250_000, "timers.max_cycles_per_fire": 250_000}
)


@LANE
def test_bot_pays_no_tip_when_nothing_is_at_stake(chain, bot):
    """In a quiet lane it fires every other block, in its own block, for the basefees alone."""
    start = chain.height
    chain.mine(20)
    quiet = fires(chain, bot, start)
    assert len(quiet) == 10
    assert [receipt.tip for receipt in quiet] == [0] * 10
    assert {event.data["blocks_deferred"] for event in chain.events("timer.fired", start)} == {0}


@LANE
def test_bot_wins_the_lane_under_congestion_when_a_liquidation_is_at_stake(chain, bot):
    """Sixty timers with tips keep it waiting while the loan is safe; once it is not, it is the first of its block."""
    crowd(chain)
    chain.mine(20)
    (waiting,) = bot.timers()
    assert waiting.deferrals > 5

    bot.call("report", UNSAFE, sender=chain.accounts[0], check=True)

    (event,) = chain.events("liquidated")
    record = chain.chain.decisions(event.block_height)
    first = record.examined[0]
    assert (first.actor, first.rank, first.fee_source) == (bot.address, 1, "agent")
    assert record.outranked > 0
    (fire,) = fires(chain, bot, event.block_height)
    # Half of the reward is worth 1,000,000 a cycle to it; both basefees come off before the tip.
    assert first.tip == REWARD // 2 // GAS_LIMIT - record.cycle_basefee - record.lane_basefee
    assert first.tip > 10 * CROWD_TIP
    assert fire.tip == fire.cycles_used * first.tip
    assert fire.fee_paid < REWARD


@LANE
def test_bot_pays_less_when_quiet_than_under_congestion(chain, bot):
    """The same program, the same gas limit: what it pays a cycle follows what is at stake."""
    chain.mine(20)
    quiet = fires(chain, bot, 0)[-1]
    crowd(chain)
    bot.call("report", UNSAFE, sender=chain.accounts[0], check=True)
    chain.mine(3)
    urgent = fires(chain, bot, 0)[-1]
    assert chain.events("liquidated")
    assert quiet.fee_paid // quiet.cycles_used < urgent.fee_paid // urgent.cycles_used // 3


def test_stranger_cannot_start_a_second_loop(chain, bot):
    """It would be at the bot's expense."""
    receipt = bot.call("handle_timer", b"", sender=chain.accounts[1])
    assert receipt.error.context["exception_message"] == "only the actor's own timer may look"
    assert len(bot.timers()) == 1
