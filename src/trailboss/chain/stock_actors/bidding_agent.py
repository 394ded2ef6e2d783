"""Bids in the auction: one tip for every timer, within a cap that is fixed or leaves the basefee room to double.

Deploy with ``init`` and a CBOR map: ``tip_per_cycle``, and ``max_fee_per_cycle`` for a cap that is fixed, base units.
"""

import pvm_host


def init(payload):
    pvm_host.set_state(b"offer", payload)


def get_gas_bid(payload):
    from cowboy_sdk import codec

    from trailboss.sdk import AuctionBidContext, auction_bid

    offer = codec.decode(pvm_host.get_state(b"offer"))
    tip = offer["tip_per_cycle"]
    cap = 2 * AuctionBidContext.decode(payload).basefee_cycle + tip
    return auction_bid(offer.get("max_fee_per_cycle", cap), tip)
