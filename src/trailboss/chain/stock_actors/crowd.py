"""A crowd: its timers use the cycles that their orders say, to see what becomes of others beside it.

The payload of a fire says its gas limit, the cycles and cells that it uses, and whether it fails at its end.
"""

import pvm_host

WIDTH = 8


def book(payload):
    """Set timers at several heights and return their ids, one after the other: a CBOR map.

    ``height_name`` is what the call names a height; ``fields`` are its other arguments; ``offer`` is what this actor
    bids when it is asked.
    """
    order = _order(payload)
    if order["offer"]:
        pvm_host.set_state(b"offer", order["offer"])
    if order["height_name"] == "height" and "gba" not in order["fields"]:
        from trailboss.sdk import schedule_timer as set_timer
    else:
        set_timer = pvm_host.set_timeout
    identities = [set_timer(**{order["height_name"]: height}, **order["fields"]) for height in order["heights"]]
    return b"".join(identities)


def watch(payload):
    """Set a state watch and return its id: a CBOR map of what ``set_state_watch`` takes."""
    return pvm_host.set_state_watch(**_order(payload))


def cancel(payload):
    """Cancel a timer: a CBOR map of what ``cancel_timer`` takes."""
    pvm_host.cancel_timer(**_order(payload))


def touch(payload):
    """Change the slot that state watches of a crowd wait for."""
    pvm_host.set_state(b"touched", pvm_host.block_height().to_bytes(WIDTH, "big"))


def handle_timer(payload):
    """Use what the order says."""
    limit, cycles, cells, fails = (int.from_bytes(payload[at : at + WIDTH], "big") for at in range(0, 4 * WIDTH, WIDTH))
    if cells:
        pvm_host.emit_event("crowd.cells", bytes(cells))
    used = limit - pvm_host.gas_left()
    if cycles > used:
        pvm_host.charge_gas(cycles - used)
    if fails:
        raise ValueError("this fire is to fail")


def get_gas_bid(payload):
    return pvm_host.get_state(b"offer")


def _order(payload):
    if pvm_host.context()["sender"] != pvm_host.actor_owner():
        raise PermissionError("only the owner may give orders")
    # Here, so that a fire does not pay for it.
    from cowboy_sdk import codec

    return codec.decode(payload)
