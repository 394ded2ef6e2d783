"""An SDK actor on `set_interval`: the SDK re-arms the timer, the actor only does the work."""

from cowboy_sdk import runtime


def init(payload):
    runtime.set_interval(12, "collect", b"rent")


def handle_timer(payload):
    runtime.dispatch_interval(payload, {"collect": collect})


def collect(data):
    runtime.set_state(b"collected", str(int(runtime.get_state(b"collected") or b"0") + 1).encode())
    runtime.emit_event("collected", {"what": data})
