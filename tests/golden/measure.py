"""Print the cycles of every pinned program as JSON: ``python -m tests.golden.measure``, by any interpreter.

The file ``cycles.json`` beside this one is what it printed when a person last looked at the differences.
"""

import json
import sys

from tests.golden.lives import measure_lives
from tests.golden.programs import PROGRAMS
from tests.golden.world import World
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.envelopes import route_payload


def measure():
    """Return, by program, the handler, cycles and outcome of each of its calls."""
    world = World()
    measured = {}
    for name, (source, calls) in PROGRAMS.items():
        measured[name] = _run(World(engine=world.engine), source, calls)
    return measured


def measure_all():
    """Return what `measure` returns, and the lives of the examples."""
    return measure() | {f"examples/{name}": life for name, life in measure_lives().items()}


def _run(world, source, calls):
    lines = []
    for handler, payload in calls:
        outcome, meter = world.call(source, handler, _brought(world, handler) if payload is None else payload)
        ended = outcome.error.slug if outcome.error else outcome.return_value.hex()
        lines.append([handler, meter.cycles_used, ended])
    return lines


def _brought(world, handler):
    """Return the payload that the chain would bring: of the last timer, or of the reply to the last message."""
    if handler.endswith("__resume"):
        job = decode_canonical(world.messages[-1][1])
        return encode_canonical({"cid": job["cid"].hex(), "result": {"text": "hello"}})
    return route_payload(world.timers[-1].payload, 256)[1]


if __name__ == "__main__":
    lines = [f" {json.dumps(name)}: {json.dumps(cycles)}" for name, cycles in measure_all().items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
