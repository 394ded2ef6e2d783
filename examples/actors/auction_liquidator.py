"""Auction liquidator: an agent of its own that bids the more the longer it has been kept waiting.

The actor looks after one loan, on a chain whose timers are sold by the GBA auction. It is its own gas bidding agent:
the chain asks it, read-only, before a block's timers run. While the loan is safe it offers no tip. Once the loan can be
liquidated every block of delay may cost the reward, so its tip grows with each one, up to half of the reward after
``PATIENCE`` blocks.

`watch` opens a loan, `report` brings a price. The actor pays for its own fires.
"""

import json

import pvm_host

from trailboss.sdk import AuctionBidContext, auction_bid, set_timeout

EVERY = 2  # blocks
GAS_LIMIT = 100_000  # cycles
COLLATERAL_PERCENT_MIN = 150
REWARD_SHARE = 2  # the agent offers up to one part in so many of the reward
PATIENCE = 8  # blocks


def watch(payload):
    """Take a loan to watch: {"units": collateral, "debt": owed, "reward": base units for its liquidation}."""
    pvm_host.set_state(b"loan", payload)
    _set_next()


def report(payload):
    """Take a price of one unit of collateral, as decimal digits."""
    pvm_host.set_state(b"price", payload)


def get_gas_bid(payload):
    """Return what this block's fire is worth. Read-only: nothing it does would stay."""
    context = AuctionBidContext.decode(payload)
    loan = _loan()
    if loan is None or _is_safe(loan):
        # Room for the basefee to double, and no tip: it can wait for a quiet block.
        return auction_bid(2 * context.basefee_cycle, 0)
    most = max(context.basefee_cycle, loan["reward"] // REWARD_SHARE // GAS_LIMIT)
    waited = context.current_block_height - context.trigger_block_height
    tip = (most - context.basefee_cycle) * min(1 + waited, PATIENCE) // PATIENCE
    return auction_bid(most, tip)


def handle_timer(payload):
    # Anybody could start another loop otherwise, at the expense of this one.
    if pvm_host.context()["sender"] != pvm_host.self_address():
        raise ValueError("only the actor's own timer may look")
    loan = _loan()
    if loan is None:
        return
    if _is_safe(loan):
        _set_next()
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


def _set_next():
    set_timeout(pvm_host.block_height() + EVERY, b"", gba=pvm_host.self_address(), gas_limit=GAS_LIMIT)
