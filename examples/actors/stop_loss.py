"""Stop loss: sells as soon as the price falls, without ever asking for it.

The actor watches the price slot of another actor, on a chain whose timers are those of Globalbox. No fire is spent on
looking whether something has happened: a block that changes the slot fires the watch. Far above the stop being a few
blocks late costs nothing, and the watch bids nothing. Once the price comes near, the actor raises the bid of the fires
to come. When it has sold it cancels the watch.

Deploy with ``init`` and JSON: {"feed": the address of a price feed, "stop": price at which to sell}. The actor pays for
its own fires.
"""

import json

import pvm_host

from trailboss.sdk import bid, cancel_timer, set_state_watch, update_timer, watch_key

GAS_LIMIT = 100_000  # cycles
FEED_CYCLES = 30_000
NEAR_PERCENT = 110  # of the stop: from here on down it is urgent
URGENT = bid(2_000)  # base units a cycle


def init(payload):
    pvm_host.set_state(b"terms", payload)
    arm(b"")


def arm(payload):
    """Watch the feed. The client nonce makes a second call find the watch that is there."""
    me, feed = pvm_host.self_address(), _feed()
    watch = set_state_watch(me, [watch_key(feed, b"price")], b"", GAS_LIMIT, client_nonce=b"stop")
    pvm_host.set_state(b"watch", watch)


# trailboss: ignore[TB005] what it does follows from the price alone, whoever calls
def handle_timer(payload):
    stop = _terms()["stop"]
    price = int(pvm_host.call_actor(_feed(), "price", b"", FEED_CYCLES))
    me, watch = pvm_host.self_address(), pvm_host.get_state(b"watch")
    if price <= stop:
        cancel_timer(me, watch)
        pvm_host.emit_event("sold", b"%d" % price)
    elif price * 100 <= stop * NEAR_PERCENT:
        update_timer(me, watch, bid_fp=URGENT)


def _terms():
    return json.loads(pvm_host.get_state(b"terms"))


def _feed():
    return bytes.fromhex(_terms()["feed"][2:])
