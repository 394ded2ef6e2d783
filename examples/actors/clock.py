"""A clock on the public SDK: ticks every five blocks as long as it can pay, and counts its ticks.

Deploy it with money of its own: a fire is reserved at its limits before it runs, and refunded what it did not use. When
the purse no longer covers that reservation, the timer is removed without running, and an event says so.
"""

from cowboy_sdk import actor, public, runtime, timer

PERIOD = 5
GAS_LIMIT = 100_000


@actor
class Clock:
    """Counts its ticks in storage."""

    @public
    def init(self, payload):
        self.storage["ticks"] = 0
        self._schedule_next()

    @timer
    def on_tick(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1
        self._schedule_next()

    @public
    def ticks(self, payload):
        return self.storage.get("ticks", 0)

    def _schedule_next(self):
        timer.schedule(runtime.get_block_height() + PERIOD, b"", handler="on_tick", gas_limit=GAS_LIMIT)
