"""Oracle: feeders report prices, and a timer closes each round with their median.

A round exists only while somebody reports. The first report of a round schedules the timer that closes it, and names
its own sender as the payer of that fire: whoever signs the scheduling transaction may be billed, nobody else. An
oracle that nobody feeds costs nobody anything, and the actor itself needs no money.

Deploy with ``init`` and CBOR: a list of feeder addresses. Prices are integers in whatever unit the feeders agree on.
"""

from cowboy_sdk import PermissionDeniedError, actor, codec, public, runtime, timer

ROUND = 10  # blocks from the first report of a round to its end
QUORUM = 2
GAS_LIMIT = 100_000


@actor
class Oracle:
    @public
    def init(self, payload):
        self.storage["feeders"] = codec.decode(payload)
        self.storage["closes"] = 0

    @public
    def report(self, price):
        feeder = runtime.get_sender()
        if feeder not in self.storage["feeders"]:
            raise PermissionDeniedError("not a feeder")
        if type(price) is not int or price <= 0:
            raise ValueError("a price is a positive integer")
        runtime.set_state(b"report/" + feeder, codec.encode(price))
        # No round is open, or the one that was never closed: its payer could not pay for the fire.
        if runtime.get_block_height() > self.storage["closes"]:
            self.storage["closes"] = runtime.get_block_height() + ROUND
            timer.schedule(self.storage["closes"], handler="close_round", fee_payer=feeder, gas_limit=GAS_LIMIT)

    @timer
    def close_round(self, payload):
        # Timers run after the block's transactions: a report in this very block still counts.
        reports = runtime.scan_state_prefix(b"report/", len(self.storage["feeders"]))
        prices = sorted(codec.decode(value) for _, value in reports)
        for slot, _ in reports:
            runtime.delete_state(slot)
        if len(prices) < QUORUM:
            runtime.emit_event("round.void", {"reports": len(prices)})
            return
        # The lower of the two middle values when the number is even.
        median = prices[(len(prices) - 1) // 2]
        self.storage["price"] = {"price": median, "height": runtime.get_block_height()}
        runtime.emit_event("round.closed", {"price": median, "reports": len(prices)})

    @public
    def price(self, payload):
        """For other actors: the last price and the height at which its round closed."""
        if "price" not in self.storage:
            raise LookupError("no round has closed yet")
        return self.storage["price"]
