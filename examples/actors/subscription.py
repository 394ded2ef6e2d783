"""Subscription: a wallet that pays a merchant every period, for as long as its owner's mandate lasts.

The mandate is the time to live of the next charge's timer. When it ends before that height, the chain removes the
timer unfired and the subscription is over, with no code that could forget to check. Renewing is ``extend_timer``: the
charge that already waits may live longer.

Deploy with ``init`` and CBOR: {"merchant": 20 bytes, "price": base units, "every": blocks, "mandate": blocks}.
"""

from cowboy_sdk import OWNER, actor, callable_by, codec, deferred, public, runtime, timer

GAS_LIMIT = 100_000


@actor
class Subscription:
    @public
    def init(self, payload):
        terms = codec.decode(payload)
        self.storage["terms"] = terms
        self.storage["mandate_end"] = runtime.get_block_height() + terms["mandate"]
        self._schedule_charge()

    @timer
    def charge(self, payload):
        # Neither @public nor @callable_by: only the actor's own timer gets here.
        terms = self.storage["terms"]
        runtime.transfer_balance(terms["merchant"], terms["price"])
        runtime.emit_event("charged", {"price": terms["price"]})
        self._schedule_charge()

    @callable_by(OWNER)
    def renew(self, blocks):
        """Let the mandate last so many blocks from now on; a subscription that has lapsed starts again."""
        self.storage["mandate_end"] = runtime.get_block_height() + blocks
        if runtime.get_block_height() <= self.storage["due"]:
            # The charge still waits, even if its mandate has run out: what counts is its TTL when its height comes.
            runtime.extend_timer(self.storage["next"], self.storage["mandate_end"])
        else:
            runtime.cancel_timer(self.storage["next"])
            self._schedule_charge()

    @callable_by(OWNER)
    @deferred
    def close(self, amount):
        """End it now, and take so much of what the wallet holds back."""
        runtime.cancel_timer(self.storage["next"])
        runtime.transfer_balance(runtime.get_owner(), amount)

    def _schedule_charge(self):
        now = runtime.get_block_height()
        self.storage["due"] = now + self.storage["terms"]["every"]
        # A TTL must lie ahead. One that ends before the charge is due is accepted: the owner may still renew.
        self.storage["next"] = timer.schedule(
            self.storage["due"],
            handler="charge",
            gas_limit=GAS_LIMIT,
            expires_at=max(self.storage["mandate_end"], now + 1),
        )
