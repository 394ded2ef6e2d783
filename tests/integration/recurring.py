"""An actor with recurring timers whose terms a test chooses, and a crowd that keeps its fires waiting."""

import json
from typing import Any

from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
PLANNER = """
import json
import pvm_host
from trailboss.sdk import (
    ScheduledRun, dispatch, every, pause, reschedule, resume, retry, schedule_timer, stop
)


def handle_timer(payload):
    if not dispatch(payload):
        pvm_host.emit_event("other", payload)


def work(payload):
    run = ScheduledRun.decode(payload)
    if (pvm_host.get_state(b"broken") or b"") == b"1":
        raise ValueError(f"slot {run.slot} is broken")
    pvm_host.emit_event("worked", b"%d" % run.slot)


def once(payload):
    if (pvm_host.get_state(b"broken") or b"") == b"1":
        raise ValueError("broken")
    pvm_host.emit_event("done", payload)


def hoard(payload):
    if (pvm_host.get_state(b"broken") or b"") == b"1":
        raise ValueError("broken")
    for number in range(1_000):
        pvm_host.set_state(b"%d" % number, bytes(1_000))


def ends_itself(payload):
    stop("job")


def breaks(payload):
    pvm_host.set_state(b"broken", payload)


def plan(payload):
    terms = json.loads(payload)
    return every(terms.pop("name", "job"), terms.pop("blocks"), handler=terms.pop("handler", "work"), **terms)


def retries(payload):
    return retry(**json.loads(payload), payload=b"parcel")


def moves(payload):
    first = schedule_timer(pvm_host.block_height() + 5, b"plain")
    return reschedule(first, pvm_host.block_height() + 9, b"plain", gas_limit=50_000)


def halts(payload):
    pause("job")


def goes_on(payload):
    return resume("job")


def ends(payload):
    ended = stop("job")
    return None if ended is None else ended.ok
"""
CROWD = """
import pvm_host


def handle_timer(payload):
    pvm_host.charge_gas(80_000)


def come(payload):
    for number in range(int(payload)):
        pvm_host.schedule_timer(pvm_host.block_height() + 1, b"%d" % number, gas_limit=120_000)
"""
NARROW = {
    "timers.max_cycles_per_fire": 120_000,
    "timers.lane_cycles_per_block": 120_000,
    "lane.max_cycles_per_fire": 120_000,
}
"""Room for one fire a block."""


def deploy_planner(chain: LocalChain) -> ActorHandle:
    """Return the actor; it has no recurring timer yet."""
    return chain.deploy(PLANNER, sender=chain.accounts[0], value=100_000 * CBY)


def call(chain: LocalChain, actor: ActorHandle, name: str, /, **fields: Any) -> bytes:
    """Call a handler of the actor with a JSON payload, in a block of its own, and return what it returns."""
    payload = json.dumps(fields).encode() if fields else b""
    return actor.call(name, payload, sender=chain.accounts[0], check=True).return_value


def runs(chain: LocalChain) -> list[tuple[int, int, str]]:
    """Return block, slot and outcome of each run so far."""
    return [(event.block_height, event.data["slot"], event.data["outcome"]) for event in chain.events("schedule.run")]


def record(actor: ActorHandle, name: bytes = b"job") -> dict[str, Any]:
    """Return what the slot of a recurring timer holds."""
    found: dict[str, Any] = json.loads(actor.storage[b"__schedule:" + name])
    return found
