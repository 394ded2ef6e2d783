"""Liquidation bot: a loop that prices its own timers, by how much it stands to earn in this block.

The bot watches one loan. While the loan is safe, being a few blocks late costs nothing, and its gas bidding agent,
which is the bot itself, offers no tip. Once the loan can be liquidated the next one to run takes the reward, and the
agent offers up to half of it. It is asked when the timer is due, with the numbers of that block: no guess about the
market is made when the timer is scheduled.

Deploy with ``init``; `watch` opens a loan, `report` brings a price. The actor pays for its own fires.
"""

import json

import pvm_host

from trailboss.sdk import GasBidContext, gas_bid, set_gas_bidding_agent

EVERY = 2  # blocks
GAS_LIMIT = 100_000  # cycles
COLLATERAL_PERCENT_MIN = 150
REWARD_SHARE = 2  # the agent offers up to one part in so many of the reward


def init(payload):
    set_gas_bidding_agent(pvm_host.self_address())


def watch(payload):
    """Take a loan to watch: {"units": collateral, "debt": owed, "reward": base units for its liquidation}."""
    pvm_host.set_state(b"loan", payload)
    _schedule_next()


def report(payload):
    """Take a price of one unit of collateral, as decimal digits."""
    pvm_host.set_state(b"price", payload)


def get_gas_bid(payload):
    """Return what this block's fire is worth. Read-only: nothing it does would stay."""
    context = GasBidContext.decode(payload)
    loan = _loan()
    if loan is None or _is_safe(loan):
        # Room for the lane basefee to double, and no tip: it can wait for a quiet block.
        return gas_bid(2 * context.basefee_lane_timer, 0)
    most = loan["reward"] // REWARD_SHARE // GAS_LIMIT
    tip = max(0, most - context.basefee_cycle - context.basefee_lane_timer)
    return gas_bid(context.basefee_lane_timer + tip, tip)


def handle_timer(payload):
    # Anybody could start another loop otherwise, at the expense of this one.
    if pvm_host.context()["sender"] != pvm_host.self_address():
        raise ValueError("only the actor's own timer may look")
    loan = _loan()
    if loan is None:
        return
    if _is_safe(loan):
        _schedule_next()
        return
    pvm_host.delete_state(b"loan")
    pvm_host.emit_event("liquidated", json.dumps({"price": _price(), "reward": loan["reward"]}).encode())


def _loan():
    stored = pvm_host.get_state(b"loan")
    return None if stored is None else json.loads(stored)


def _price():
    return int(pvm_host.get_state(b"price") or b"0")


def _is_safe(loan):
    return loan["units"] * _price() * 100 >= loan["debt"] * COLLATERAL_PERCENT_MIN


def _schedule_next():
    pvm_host.schedule_timer(pvm_host.block_height() + EVERY, b"", gas_limit=GAS_LIMIT)
