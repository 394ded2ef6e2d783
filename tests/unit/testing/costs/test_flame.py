"""Flame graphs: the document has the form that speedscope's schema asks for."""

import json
from typing import Any

from tests.golden.lives import ACTORS, run_life
from trailboss.testing.costs.flame import SCHEMA, FlameGraph
from trailboss.testing.costs.recorder import CostRecorder

UNITS = ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")


def check_document(document: Any) -> None:
    """Check what the published schema of speedscope's files requires.

    Source: https://www.speedscope.app/file-format-schema.json
    """
    assert document["$schema"] == SCHEMA
    assert {"shared", "profiles"} <= document.keys() <= {
        "$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter",
    }  # fmt: skip
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert frame.keys() <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("file", ""), str)
        assert isinstance(frame.get("line", 1), int)
    for profile in document["profiles"]:
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
        assert all(weight >= 0 for weight in profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])


def test_document_has_the_form_of_the_schema() -> None:
    """It goes through JSON; a nested frame stands below the host call and the line that called it."""
    recorder = CostRecorder(ACTORS, with_flames=True)
    run_life("stop_loss", recorder)
    assert recorder.flames is not None
    document = json.loads(json.dumps(recorder.flames.document("tests")))
    check_document(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    stacks = [[names[place] for place in stack] for stack in document["profiles"][0]["samples"]]
    nested = [stack for stack in stacks if "price_feed.py price" in stack and "stop_loss.py handle_timer" in stack]
    assert nested
    assert all(stack[0] == "stop_loss.py handle_timer" and stack[2] == "call_actor" for stack in nested)


def test_graphs_of_workers_add_up() -> None:
    """Equal stacks become one."""
    recorder = CostRecorder(ACTORS, with_flames=True)
    run_life("price_feed", recorder)
    assert recorder.flames is not None
    merged = FlameGraph()
    for _ in range(2):
        merged.merge(recorder.flames.stacks.items())
    assert merged.stacks == {stack: 2 * cycles for stack, cycles in recorder.flames.stacks.items()}
