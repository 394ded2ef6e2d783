"""Print the cycles of every pinned program as JSON: ``python -m tests.golden.measure``, by any interpreter.

The file ``cycles.json`` beside this one is what it printed when a person last looked at the differences.
"""

import json
import sys
from pathlib import Path

from tests.golden.programs import EXAMPLES, PROGRAMS
from tests.golden.world import World
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.envelopes import route_payload

ROOT = Path(__file__).resolve().parents[2]


def measure():
    """Return, by program, the handler, cycles and outcome of each of its calls."""
    world = World()
    measured = {}
    for name, (source, calls) in PROGRAMS.items():
        measured[name] = _run(World(engine=world.engine), source, calls)
    for name, calls in EXAMPLES.items():
        source = (ROOT / "examples" / "actors" / f"{name}.py").read_text(encoding="utf-8")
        measured[f"examples/{name}"] = _run(World(engine=world.engine), source, calls)
    return measured


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
    json.dump(measure(), sys.stdout, indent=1)
    sys.stdout.write("\n")
