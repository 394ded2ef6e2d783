"""What actors print, on pages of transactions, timers and blocks, and in the node's log. Decision: D-89."""

import json
from collections.abc import Iterator

import pytest

from tests.unit.explorer.standin import StandIn, ask, look, section, words
from tests.unit.node.service.test_logs import restore_logging
from tools.explorer_scene import Scene
from trailboss.explorer.documents import Document
from trailboss.explorer.pages.blocks import block, transaction
from trailboss.explorer.pages.timers import timer
from trailboss.model.transactions import transaction_hash
from trailboss.node.block_builder import Published
from trailboss.node.logs import configure_logs, log_step
from trailboss.node.options import LogForm
from trailboss.testing import LocalChain

__all__ = ["restore_logging"]

TALKER = """
def go(payload):
    print("hello\\x1b[31m <b>", payload)
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")


def handle_timer(payload):
    print("it fires")
"""


@pytest.fixture
def node() -> Iterator[StandIn]:
    """Return a stand-in whose chain has an actor that prints in a call in block 2 and in a fire in block 4."""
    with LocalChain() as chain:
        actor = chain.deploy(TALKER, sender=chain.accounts[0], value=10**12)
        actor.call("go", b"x", sender=chain.accounts[0], check=True)
        chain.mine(2)
        standing = StandIn(Scene(chain, "fifo"))
        yield standing
        standing.index.close()


def shown(document: object) -> list[list[str]]:
    assert isinstance(document, Document)
    return [[words(cell) for cell in row.cells] for row in section(document, "printed").rows]


def test_pages_show_what_actors_print(node: StandIn) -> None:
    """The transaction's page, the timer's and the block's; a page without lines has no such section."""
    [sent] = node.chain.blocks[2].transactions
    call, warning = shown(transaction(look(node), ask(), str(transaction_hash(sent))))
    assert warning[3].startswith("warningit schedules a timer without the entitlement timer.schedule")
    assert (call[0], call[2], call[3]) == ("2", "go", "hello\\x1b[31m <b> b'x'")
    [fire] = node.chain.blocks[4].receipts
    [line] = shown(timer(look(node), ask(), f"0x{fire.timer_id.hex()}"))
    assert (line[0], line[2], line[3]) == ("4", "handle_timer", "it fires")
    assert shown(block(look(node), ask(), "4")) == [line]
    empty = block(look(node), ask(), "1")
    assert isinstance(empty, Document)
    assert "printed" not in [each.key for each in empty.sections]


def test_log_says_what_actors_print(node: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    """With height, actor and handler."""
    configure_logs(LogForm.JSON)
    log_step(Published(view=node.view, blocks=tuple(node.chain.blocks[3:])))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    [line] = [each for each in lines if each["event"] == "printed"]
    assert (line["height"], line["handler"], line["text"]) == (4, "handle_timer", "it fires")
    assert line["actor"].startswith("0x")
