"""Sets timers of the auction for its owner, who then needs no actor to have one.

When a timer fires, the event ``timer.payload`` tells its payload. Only the owner may give orders; this actor pays for
the fires, and the agent that an order names bids for them.
"""

import pvm_host

EVENT_BYTES_MAX = 4_096


def schedule(payload):
    """Set a timer and return its id: a CBOR map of what ``trailboss.sdk.set_timeout`` takes in the auction."""
    _check_owner()
    # Here, so that a fire does not pay for it.
    from cowboy_sdk import codec

    order = codec.decode(payload)
    if len(order["payload"]) > EVENT_BYTES_MAX:
        raise ValueError("the payload has %d bytes, and an event takes %d" % (len(order["payload"]), EVENT_BYTES_MAX))
    return pvm_host.set_timeout(**order)


def cancel(payload):
    """Cancel a timer: its id."""
    _check_owner()
    pvm_host.cancel_timer(payload)


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
