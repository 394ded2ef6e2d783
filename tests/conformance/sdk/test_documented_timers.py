"""The timer examples of the public SDK's own documentation run on the chain as they are printed there.

They are read from the installed distribution, not copied. Their `start` is not public, so nobody but the actor itself
may call it: a bootstrap beside the example schedules that first call, as a fire, whose sender the actor is.
"""

import ast
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from trailboss.testing import CBY, ActorHandle, LocalChain

SDK = Path(find_spec("cowboy_sdk").origin).parent

BOOTSTRAP = """

def init(payload):
    import pvm_host
    envelope = b'{"_handler": "start", "_payload": "oA=="}'
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, envelope, gas_limit=200_000)
"""
"""The inner payload is the empty map in CBOR, which is what a named handler of the SDK decodes by default."""

EXTENDED = """
import cowboy_sdk
from cowboy_sdk.runtime import schedule_timer_ex


def init(payload):
{example}
    return timer_id
"""


def _literal_block(docstring: str, after: str) -> str:
    """Return the indented block of a docstring that follows a line."""
    _, _, rest = docstring.partition(after)
    lines = rest.splitlines()
    start = next(index for index, line in enumerate(lines) if line.strip())
    block = []
    for line in lines[start:]:
        if line.strip() and not line.startswith("    "):
            break
        block.append(line)
    return textwrap.dedent("\n".join(block)).strip() + "\n"


def _module_docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((SDK / name).read_text(encoding="utf-8")))


def _recipe(name: str) -> str:
    tree = ast.parse((SDK / "recipes.py").read_text(encoding="utf-8"))
    (table,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "RECIPES"]
    return ast.literal_eval(table)[name]


def _example_of(function: str) -> str:
    tree = ast.parse((SDK / "runtime.py").read_text(encoding="utf-8"))
    (node,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    return _literal_block(ast.get_docstring(node), "budget::")


def _deployed(chain: LocalChain, source: str) -> ActorHandle:
    return chain.deploy(source, sender=chain.accounts[0], value=100 * CBY)


CLOCKS = pytest.mark.parametrize(
    "example",
    [_literal_block(_module_docstring("timer.py"), "Usage\n-----\n::"), _recipe("timer")],
    ids=["docstring of timer", "recipe timer"],
)


@pytest.mark.spec("F-10", "F-16", "F-45")
@CLOCKS
def test_documented_clock_ticks_every_ten_blocks_when_run_unmodified(chain: LocalChain, example: str) -> None:
    """It starts, ticks, schedules itself again, and pays for every fire."""
    _assert_ticks(chain, example)


@pytest.mark.spec("L-14", "L-31", "L-32")
@pytest.mark.trailboss(mechanism="lane")
@CLOCKS
def test_documented_clock_ticks_as_before_when_the_lane_is_active(chain: LocalChain, example: str) -> None:
    """An actor that knows nothing of the lane's fees goes on; it pays the lane basefee besides, and no tip."""
    _assert_ticks(chain, example)
    assert sum(fire.tip for fire in chain.receipts(origin="timer")) == 0


def _assert_ticks(chain: LocalChain, example: str) -> None:
    assert "class Clock:" in example
    clock = _deployed(chain, example + BOOTSTRAP)
    chain.advance_to(35)
    fires = chain.receipts(origin="timer", actor=clock)
    assert [(fire.block_height, fire.status) for fire in fires] == [(2, "ok"), (12, "ok"), (22, "ok"), (32, "ok")]
    assert fires[0].return_value == b'{"ok": true}'
    (following,) = clock.timers()
    assert (following.height, following.handler) == (42, "on_tick")
    assert 100 * CBY - clock.balance == sum(fire.fee_paid for fire in fires)


@pytest.mark.spec("F-11")
def test_documented_overrides_are_kept_when_the_example_schedules(chain: LocalChain) -> None:
    """The six positionals of the SDK arrive as the example names them."""
    example = _example_of("schedule_timer_ex")
    actor = _deployed(chain, EXTENDED.format(example=textwrap.indent(example, "    ")))
    (timer,) = actor.timers()
    assert timer.timer_id == actor.receipt.return_value
    assert (timer.height, timer.gas_limit, timer.access_limit) == (11, 200_000, 32)
    assert (timer.fee_payer, timer.expires_at) == (actor.address, 2_592_001)
