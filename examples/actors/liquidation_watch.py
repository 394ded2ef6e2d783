"""Liquidation watch: looks over leveraged positions with the oracle's price, a few of them in every fire.

Two things keep such a loop alive. Its work is bounded: a fire looks at ``BATCH`` positions and remembers where it
stopped, so the gas limit holds however many positions there are. And it does not depend on its neighbours: when the
oracle fails or its price is old, the fire reports that it is blind and schedules the next one all the same.

Deploy with ``init`` and the 20 bytes of the oracle's address; the actor pays for its own fires.
"""

from cowboy_sdk import actor, call, public, runtime, timer
from cowboy_sdk.errors import ActorCallError

EVERY = 5  # blocks
BATCH = 3  # positions a fire
PRICE_AGE_MAX = 30  # blocks
COLLATERAL_PERCENT_MIN = 150
GAS_LIMIT = 200_000
ORACLE_CYCLES = 100_000


@actor
class LiquidationWatch:
    @public
    def init(self, payload):
        self.storage["oracle"] = payload
        self.storage["count"] = 0
        self.storage["cursor"] = 0
        self._schedule_next()

    @public
    def open_position(self, position):
        """Take a position: {"units": collateral in the oracle's asset, "debt": owed, in the unit of its price}."""
        number = self.storage["count"]
        self._write(number, {"owner": runtime.get_sender(), "units": position["units"], "debt": position["debt"]})
        self.storage["count"] = number + 1

    @timer
    def watch(self, payload):
        try:
            quote = call(self.storage["oracle"], "price", cycles_limit=ORACLE_CYCLES)
        except ActorCallError as error:
            runtime.emit_event("watch.blind", {"why": str(error)[:200]})
        else:
            age = runtime.get_block_height() - quote["height"]
            if age > PRICE_AGE_MAX:
                runtime.emit_event("watch.blind", {"why": "the price is %d blocks old" % age})
            else:
                self._look_at_batch(quote["price"])
        self._schedule_next()

    def _look_at_batch(self, price):
        cursor, count = self.storage["cursor"], self.storage["count"]
        for _ in range(min(BATCH, count)):
            cursor = cursor if cursor < count else 0
            position = self.storage["position/%d" % cursor]
            if position["units"] * price * 100 >= position["debt"] * COLLATERAL_PERCENT_MIN:
                cursor += 1
                continue
            # The last position moves into the gap, and is looked at next.
            count -= 1
            self._write(cursor, self.storage["position/%d" % count])
            del self.storage["position/%d" % count]
            runtime.emit_event("liquidated", {"owner": position["owner"], "price": price})
        self.storage["cursor"], self.storage["count"] = cursor, count

    def _write(self, number, position):
        self.storage["position/%d" % number] = position

    def _schedule_next(self):
        timer.schedule(runtime.get_block_height() + EVERY, handler="watch", gas_limit=GAS_LIMIT)
