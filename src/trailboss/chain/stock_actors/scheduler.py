"""Schedules timers for its owner, who then needs no actor to have one.

When a timer fires, the event ``timer.payload`` tells its payload. Only the owner may give orders, and whoever an order
comes from may also pay for the fire.
"""

import pvm_host

EVENT_BYTES_MAX = 4_096


def schedule(payload):
    """Schedule a timer and return its id: a CBOR map of what ``trailboss.sdk.schedule_timer`` takes."""
    _check_owner()
    # Here, so that a fire does not pay for it.
    from cowboy_sdk import codec

    from trailboss.sdk import PriorityTier, schedule_timer

    order = codec.decode(payload)
    if len(order["payload"]) > EVENT_BYTES_MAX:
        raise ValueError("the payload has %d bytes, and an event takes %d" % (len(order["payload"]), EVENT_BYTES_MAX))
    if order.get("priority_tier_hint") is not None:
        order["priority_tier_hint"] = PriorityTier(order["priority_tier_hint"])
    return schedule_timer(**order)


def extend(payload):
    """Move the last height of a timer: a CBOR map of ``timer_id`` and ``expires_at``."""
    _check_owner()
    from cowboy_sdk import codec

    order = codec.decode(payload)
    pvm_host.extend_timer(order["timer_id"], order["expires_at"])


def cancel(payload):
    """Cancel a timer: its id."""
    _check_owner()
    pvm_host.cancel_timer(payload)


def set_agent(payload):
    """Have another actor price the timers from now on: its address, or nothing for the default."""
    _check_owner()
    pvm_host.set_gas_bidding_agent(payload or None)


def withdraw(payload):
    """Give the owner an amount back: base units, as digits."""
    _check_owner()
    pvm_host.transfer_balance(pvm_host.actor_owner(), int(payload))


def handle_timer(payload):
    """Tell what the timer was for."""
    pvm_host.emit_event("timer.payload", payload)


def _check_owner():
    if pvm_host.context()["sender"] != pvm_host.actor_owner():
        raise PermissionError("only the owner may give orders")
