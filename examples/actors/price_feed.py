"""Price feed: one price in one slot, for whoever asks for it or watches the slot.

The owner reports; `price` tells the last report, both as decimal digits. Other actors watch the slot ``price`` under
Globalbox, as the stop loss does, and hear of a new price in its block. The same price again is no change, and wakes
nobody.
"""

import pvm_host


def report(payload):
    if pvm_host.context()["sender"] != pvm_host.actor_owner():
        raise PermissionError("only the owner reports")
    pvm_host.set_state(b"price", b"%d" % int(payload))


def price(payload):
    reported = pvm_host.get_state(b"price")
    if reported is None:
        raise LookupError("no price has been reported yet")
    return reported
