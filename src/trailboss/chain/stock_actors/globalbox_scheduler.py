"""Sets timers and state watches of Globalbox for its owner, who then needs no actor to have one.

Unless an order names another target, the event ``timer.payload`` tells the payload of a timer that fires. Only the
owner may give orders; this actor pays for the fires.
"""

import pvm_host

EVENT_BYTES_MAX = 4_096


def schedule(payload):
    """Set a timer and return its id: a CBOR map of what ``trailboss.sdk.set_timeout`` takes in Globalbox."""
    return pvm_host.set_timeout(**_order(payload))


def watch(payload):
    """Set a state watch and return its id: a CBOR map of what ``trailboss.sdk.set_state_watch`` takes."""
    return pvm_host.set_state_watch(**_order(payload))


def update(payload):
    """Change a timer for its later fires: a CBOR map of what ``trailboss.sdk.update_timer`` takes."""
    return pvm_host.update_timer(**_order(payload))


def cancel(payload):
    """Cancel a timer: a CBOR map of ``target`` and ``timer_id``."""
    return pvm_host.cancel_timer(**_order(payload))


def withdraw(payload):
    """Give the owner an amount back: base units, as digits."""
    _check_owner()
    pvm_host.transfer_balance(pvm_host.actor_owner(), int(payload))


def handle_timer(payload):
    """Tell what the timer was for."""
    pvm_host.emit_event("timer.payload", payload)


def _order(payload):
    _check_owner()
    # Here, so that a fire does not pay for it.
    from cowboy_sdk import codec

    order = codec.decode(payload)
    size = len(order.get("payload", b""))
    if size > EVENT_BYTES_MAX and order["target"] == pvm_host.self_address():
        raise ValueError("the payload has %d bytes, and an event takes %d" % (size, EVENT_BYTES_MAX))
    return order


def _check_owner():
    if pvm_host.context()["sender"] != pvm_host.actor_owner():
        raise PermissionError("only the owner may give orders")
