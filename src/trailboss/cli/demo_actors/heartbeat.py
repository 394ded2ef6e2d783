"""The specification's own sample: a plain class that schedules itself again in each fire."""


class HeartbeatActor:
    """Beats every ten blocks."""

    INTERVAL = 10

    def deploy(self):
        pvm_host.schedule_timer(pvm_host.block_height() + self.INTERVAL, b"")

    def handle_timer(self, payload):
        beats = int(pvm_host.get_state(b"beats") or b"0")
        pvm_host.set_state(b"beats", str(beats + 1).encode())
        pvm_host.schedule_timer(pvm_host.block_height() + self.INTERVAL, b"")
