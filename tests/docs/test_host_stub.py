"""The types of ``pvm_host``: they say what the calls take, and mypy finds what is wrong in an actor."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.host_stub import RETURNS, STUB, host_stub
from trailboss.testing import LocalChain
from trailboss.vm.call_parameters import parameters
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED

ROOT = Path(__file__).resolve().parents[2]
TREE = ast.parse((ROOT / STUB).read_text(encoding="utf-8"))
FUNCTIONS = [node for node in TREE.body if isinstance(node, ast.FunctionDef)]
INJECTED = ('has no attribute "address"', 'has no attribute "deployer"')
"""What the chain gives to every class, and no type says."""
ASKING = """
import json

def ask(payload):
    context, lane = pvm_host.context(), pvm_host.timer_lane()
    found = {"Context": sorted(context), "TimerLane": sorted(lane)}
    for name in READINGS:
        found[name] = type({"context": context, "timer_lane": lane}.get(name) or read(name)).__name__
    return json.dumps(found).encode()

def read(name):
    pvm_host.set_state(b"n", b"1")
    if name in ("schedule_timer", "schedule_timer_ex"):
        return CALLS[name](pvm_host.block_height() + 9, b"")
    return CALLS[name](*ARGUMENTS.get(name, ()))

ARGUMENTS = {
    "randomness": (b"",), "keccak256": (b"",), "get_state": (b"n",), "scan_state_prefix": (b"n", 1),
    "emit_event": ("e", b""), "verify_signature": (2, bytes(32), b"", bytes(64)), "set_state": (b"n", b"1"),
}
"""


def test_stub_is_what_the_calls_say():
    """``python -m tools.reference`` writes it."""
    assert (ROOT / STUB).read_text(encoding="utf-8") == host_stub()


def test_stub_has_every_call_with_its_parameters():
    """And no others; a call with two forms stands there twice."""
    assert {node.name for node in FUNCTIONS} == set(HOST_CALLS)
    for node in FUNCTIONS:
        if node.name not in UNSUPPORTED and not node.decorator_list:
            names = [each.arg for each in node.args.args]
            named = [each.arg for each in node.args.kwonlyargs]
            assert (*names, *(("*", *named) if named else ())) == parameters(node.name)
    twice = [node.name for node in FUNCTIONS if node.decorator_list]
    assert sorted(twice) == ["cancel_timer"] * 2 + ["set_timeout"] * 2


def test_calls_return_what_the_stub_says():
    """Readings, timers and events, on a chain; the facts of the two dicts by name."""
    typed = [name for name in RETURNS if name not in ("set_timeout", "set_state_watch", "update_timer", "call_actor")]
    source = ASKING + f"READINGS = {typed!r}\nCALLS = {{{', '.join(f'{name!r}: pvm_host.{name}' for name in typed)}}}\n"
    with LocalChain() as chain:
        actor = chain.deploy(source, sender=chain.accounts[0], entitlements=["timer.schedule"])
        found = json.loads(actor.call("ask", b"", sender=chain.accounts[0], check=True).return_value)
    for name in ("Context", "TimerLane"):
        [record] = [node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == name]
        required = [node for node in record.body if isinstance(node, ast.AnnAssign)]
        names = [node.target.id for node in required if "NotRequired" not in ast.unparse(node.annotation)]
        assert found[name] == sorted(names)
    for name in typed:
        expected = RETURNS[name].split(" | ")[0].split("[")[0]
        assert found[name] == {"Context": "dict", "TimerLane": "dict"}.get(expected, expected), name


def mypy(folder, *paths):
    """Return what mypy says of sources, with the stub where an installation has it."""
    (folder / "types").mkdir()
    (folder / "types/pvm_host").symlink_to((ROOT / STUB).parent)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--check-untyped-defs", "--ignore-missing-imports"]
    finished = subprocess.run(
        [*command, "--no-error-summary", f"--cache-dir={folder / 'cache'}", *map(str, paths)],
        cwd=folder, env=os.environ | {"MYPYPATH": str(folder / "types")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode in (0, 1), finished.stderr
    return finished.stdout.splitlines()


@pytest.mark.slow
def test_mypy_accepts_the_examples_and_finds_wrong_arguments(tmp_path):
    """Every example that imports the host, and an actor with a mistake in each line."""
    wrong = tmp_path / "wrong.py"
    calls = ["schedule_timer('9', b'')", "get_state('n')", "set_state(b'n')", "blok_height()", "context()['snder']"]
    wrong.write_text(
        "import pvm_host\ndef f(p):\n" + "".join(f"    pvm_host.{call}\n" for call in calls), encoding="utf-8"
    )
    examples = [path for path in (ROOT / "examples/actors").glob("*.py") if "import pvm_host" in path.read_text()]
    assert len(examples) == 10
    found = [
        line
        for line in mypy(tmp_path, wrong, *examples)
        if not line.endswith(tuple(f"{w}  [attr-defined]" for w in INJECTED))
    ]
    assert [line.split(":")[:2] for line in found if "error" in line] == [
        ["wrong.py", str(line)] for line in range(3, 8)
    ]
