"""An SDK actor: ticks every five blocks, for ever."""

from cowboy_sdk import actor, public, runtime, timer


@actor
class Clock:
    """Counts its ticks in storage."""

    @public
    def init(self, payload):
        self.storage["ticks"] = 0
        timer.schedule(runtime.get_block_height() + 5, b"", handler="on_tick", gas_limit=200_000)

    @timer
    def on_tick(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1
        timer.schedule(runtime.get_block_height() + 5, b"", handler="on_tick", gas_limit=200_000)


def init(payload):
    return Clock().init(payload)


def on_tick(payload):
    return Clock().on_tick(payload)
