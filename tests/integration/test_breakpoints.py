"""A breakpoint in an actor: where it stops, and that nothing depends on it."""

import json
import linecache
import os
import subprocess
import sys
from textwrap import dedent

import pytest
from msgspec.structs import replace

from tests.terminals import converse
from trailboss.chain.development import development_genesis
from trailboss.chain.replay import verify_chain
from trailboss.primitives.errors import Rejection
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox.cache import is_built
from trailboss.sandbox.engines import new_engine
from trailboss.testing import CBY, LocalChain, RevertedError

COUNTER = """
import pvm_host

class Counter:
    def doubled(self, value):
        return [each * 2 for each in sorted([value, value])][0]

    def bump(self, payload):
        count = (pvm_host.get_state(b"n") or bytes(1))[0] + 1
        breakpoint()
        count = self.doubled(count)
        pvm_host.set_state(b"n", bytes([count]))
        return count

    def forever(self, payload):
        try:
            breakpoint()
            return self.doubled(1)
        except Exception:
            return 0
"""
OUTER = """
import pvm_host

def relay(payload):
    target, depth = payload[:20], payload[20]
    breakpoint()
    if depth:
        return pvm_host.call_actor(pvm_host.self_address(), "relay", target + bytes([depth - 1]), 10_000_000)
    return pvm_host.call_actor(target, "bump", b"", 1_000_000)
"""
CONTINUATION = """
from cowboy_sdk import actor, capture, public, runner

@actor
class Oracle:
    @public
    @runner.continuation(timeout_blocks=20)
    async def ask(self, payload):
        ctx = capture()
        breakpoint()
        ctx.page = await runner.http("https://weather.example")
        breakpoint()
        return ctx.page.text
"""
SCRIPT = """
import json
from pathlib import Path
from trailboss.testing import LocalChain

with LocalChain() as chain:
    actor = chain.deploy("counter.py", sender=chain.accounts[0])
    receipt = actor.call("bump", sender=chain.accounts[0])
    Path("outcome.json").write_text(json.dumps([repr(receipt), str(chain.state_root), str(chain.chain.head.hash)]))
"""
TEST = """
def test_counter(chain):
    actor = chain.deploy("counter.py", sender=chain.accounts[0])
    assert actor.call("bump", sender=chain.accounts[0], check=True).return_value == bytes([2])
"""


def outcome(source, call, payload=b"", hook=None, others=()):
    """Return what a call leaves of a chain: its receipt, its state root, its hash."""
    with LocalChain(vm="native") as chain:
        alice = chain.accounts[0]
        targets = [chain.deploy(each, sender=alice).address for each in others]
        actor = chain.deploy(source, sender=alice)
        before, sys.breakpointhook = sys.breakpointhook, hook or sys.breakpointhook
        try:
            receipt = actor.call(call, b"".join(map(bytes, targets)) + payload, sender=alice)
        finally:
            sys.breakpointhook = before
        verify_chain(chain.chain)  # which runs every block again, and stops nowhere
        return receipt, chain.state_root, chain.chain.head.hash


@pytest.fixture(autouse=True)
def _nobody_is_there(monkeypatch):
    # Who runs these tests in a terminal is not asked.
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")


@pytest.fixture
def folder(tmp_path):
    """A folder with an actor, a script and a test."""
    (tmp_path / "counter.py").write_text(COUNTER)
    (tmp_path / "script.py").write_text(dedent(SCRIPT))
    (tmp_path / "test_counter.py").write_text(dedent(TEST))
    return tmp_path


def in_terminal(folder, arguments, lines, **environment):
    """Run Python in a terminal, and type."""
    command = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder), sys.executable, *arguments]
    settings = {"PYTHONBREAKPOINT": "", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return converse(command, lines, "(Pdb) ", **settings)


@pytest.mark.slow
def test_debugger_shows_the_actors_own_line_and_the_receipt_is_the_same(folder):
    """A person stops, looks, calls the actor's functions, steps, and goes on."""
    lines = ["w", "p count", "p self.doubled(21)", "p pvm_host.get_state(b'n')", "unt 12", "p count", "c"]
    shown = in_terminal(folder, ["script.py"], lines)
    stopped = json.loads((folder / "outcome.json").read_text())
    in_terminal(folder, ["script.py"], [], PYTHONBREAKPOINT="0")

    # In the statement's own line from Python 3.13 on, before that in the next.
    places = {(10, "breakpoint()"), (11, "count = self.doubled(count)")}
    assert any(f"{folder / 'counter.py'}({line})bump()\n-> {text}" in shown for line, text in places)
    assert "p count\n1\n" in shown
    assert "p self.doubled(21)\n42\n" in shown
    assert "b'n')\nNone\n" in shown
    assert "(12)bump()\n-> pvm_host.set_state" in shown
    assert "p count\n2\n" in shown
    assert stopped == json.loads((folder / "outcome.json").read_text())


@pytest.mark.slow
def test_debugger_of_pytest_stops_in_an_actor_in_a_terminal_alone(folder):
    """Without ``-s``, as pytest does for tests; where no terminal is, as in CI, the test runs through."""
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_counter.py"]
    shown = in_terminal(folder, options, ["p count", "c"])
    assert "p count\n1\n" in shown
    assert "1 passed" in shown
    shown = in_terminal(folder, options, ["q"])
    assert "Quitting debugger" in shown
    assert "failed" not in shown

    environment = {**os.environ, "PYTHONBREAKPOINT": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    piped = subprocess.run(
        [sys.executable, *options],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "(Pdb)" not in piped.stdout
    assert "1 passed" in piped.stdout


@pytest.mark.parametrize("module", [None, "bdb", "_pydevd_bundle.pydevd_vars", "pydevd", "code"])
def test_nothing_that_a_person_evaluates_changes_the_receipt(module):
    """Functions of the actor, priced built-ins, reads of the chain, prints, errors: all are free in each debugger."""
    seen = []

    def evaluate():
        frame = sys._getframe().f_back if module is None else sys._getframe().f_back.f_back
        names = frame.f_locals | frame.f_globals | frame.f_globals["__builtins__"]
        text = (
            "self.doubled(21), sorted(range(9)), str(10**300), pvm_host.get_state(b'n'), pvm_host.gas_left(), print(1)"
        )
        seen.append(eval(text, names))
        for change in ("pvm_host.set_state(b'n', b'x')", "pvm_host.emit_event('x', b'')", "self.doubled(None)"):
            with pytest.raises((RuntimeError, TypeError)):
                eval(change, names)

    hook = evaluate
    if module is not None:
        # A function of the debugger evaluates, whoever's the hook is.
        space = {"__name__": module, "evaluate": evaluate}
        exec("def hook():\n    evaluate()\n", space)
        hook = space["hook"]
        hook.__module__ = "elsewhere"
    assert outcome(COUNTER, "bump", hook=hook) == outcome(COUNTER, "bump")
    assert [each[0] for each in seen] == [42]


@pytest.mark.parametrize("depth", [0, 1, 10])
def test_breakpoints_stop_in_nested_frames_too(depth):
    """Each frame at its own breakpoint, also on a stack of its own, and the receipt stays the same."""
    stops = []

    def look():
        frame = sys._getframe().f_back
        stops.append(frame.f_code.co_name)
        eval("sorted([3, 1])", frame.f_globals)

    plain = outcome(OUTER, "relay", bytes([depth]), others=[COUNTER])
    assert plain[0].ok, plain[0].error
    assert outcome(OUTER, "relay", bytes([depth]), hook=look, others=[COUNTER]) == plain
    assert stops == ["relay"] * (depth + 1) + ["bump"]


def test_breakpoint_stops_in_the_code_that_the_sdk_makes_of_a_continuation():
    """Before and after the await, with lines to show, and the receipts stay the same."""
    stops = []

    def look():
        frame = sys._getframe().f_back
        stops.append(linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip())

    def run(hook):
        with LocalChain(vm="native") as chain:
            chain.start_runner()
            actor = chain.deploy(CONTINUATION, sender=chain.accounts[0], value=100 * CBY)
            before, sys.breakpointhook = sys.breakpointhook, hook
            try:
                asked = actor.call("ask", sender=chain.accounts[0], check=True)
                return asked, chain.reply(chain.jobs()[0], {"text": "dry"}), chain.state_root
            finally:
                sys.breakpointhook = before

    assert run(look) == run(sys.__breakpointhook__)
    assert stops == ["breakpoint()", "breakpoint()"]


def test_debugger_shows_lines_after_a_trace_of_the_same_source():
    """The engine of a trace forgets its sources when it ends, and the chain's goes on."""
    stops = []

    def look():
        frame = sys._getframe().f_back
        stops.append(linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip())

    source = "def stop(payload):\n    breakpoint()\n"
    with LocalChain(vm="native") as chain:
        actor = chain.deploy(source, sender=chain.accounts[0])
        hook, sys.breakpointhook = sys.breakpointhook, look
        try:
            assert str(actor.call("stop", sender=chain.accounts[0], check=True).trace)
            actor.call("stop", sender=chain.accounts[0], check=True)
        finally:
            sys.breakpointhook = hook
    assert stops == ["breakpoint()", "breakpoint()"]


def test_quitting_the_debugger_builds_no_block():
    """Whatever the actor catches; the chain is as before."""
    import bdb  # noqa: PLC0415

    def leave():
        raise bdb.BdbQuit

    with LocalChain(vm="native") as chain:
        actor = chain.deploy(COUNTER, sender=chain.accounts[0])
        before = chain.height, chain.state_root
        hook, sys.breakpointhook = sys.breakpointhook, leave
        try:
            with pytest.raises(bdb.BdbQuit):
                actor.call("forever", sender=chain.accounts[0])
        finally:
            sys.breakpointhook = hook
        assert (chain.height, chain.state_root) == before
        assert actor.call("bump", sender=chain.accounts[0]).ok


@pytest.mark.parametrize("statement", ["x = breakpoint()", "breakpoint(1)", "stop = breakpoint", "[breakpoint()]"])
def test_breakpoint_is_a_statement_alone(statement):
    """Nothing else can be seen of it, so nothing depends on what it is."""
    with LocalChain(vm="native") as chain, pytest.raises(RevertedError, match="breakpoint is not available to actors"):
        chain.deploy(f"def f(p):\n    {statement}\n", sender=chain.accounts[0])


def test_sandbox_refuses_a_breakpoint():
    """Its genesis says so: the image has another verdict on every machine."""
    if not is_built():
        pytest.skip("the sandbox is not built")
    with LocalChain(vm="sandbox") as chain, pytest.raises(RevertedError, match="breakpoint is not available"):
        chain.deploy(COUNTER, sender=chain.accounts[0])


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [({}, True), ({"development": False}, False), ({"image": bytes(32)}, False)],
)
def test_verdict_follows_from_the_genesis_alone(settings, accepted):
    """A chain that is not for development, and one of the sandbox, refuse it, and say where it is allowed."""
    genesis = replace(development_genesis(), **settings)
    assert genesis.allows_breakpoints is accepted
    engine = new_engine(genesis.params(), b"", breakpoints=genesis.allows_breakpoints)
    if accepted:
        engine.check_source(COUNTER, keccak256(COUNTER.encode()))
    else:
        with pytest.raises(Rejection, match="only a development chain with the native engine stops there"):
            engine.check_source(COUNTER, keccak256(COUNTER.encode()))


def test_choice_that_is_not_there_is_named(monkeypatch):
    """In the test's own traceback, before anything has run."""
    monkeypatch.setenv("PYTHONBREAKPOINT", "no_such_debugger.stop")
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    with LocalChain(vm="native") as chain:
        actor = chain.deploy(COUNTER, sender=chain.accounts[0])
        with pytest.raises(ImportError, match="no_such_debugger"):
            actor.call("bump", sender=chain.accounts[0])
