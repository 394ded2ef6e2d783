"""What a node says on stderr, to people and to programs."""

import json
import logging
from collections.abc import Iterator

import pytest

from tests.unit.node.service.world import World, gift, make_world
from trailboss.node.block_builder import Published
from trailboss.node.logs import configure_logs, log, log_failure, log_step
from trailboss.node.options import LogForm
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason, StorageError
from trailboss.primitives.octets import Hash32


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return the lines of JSON that were written to stderr."""
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_lines_are_json_when_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """One document a line, with level and time, whatever package says it; no line for what nobody needs."""
    configure_logs()
    log().info("something", height=7)
    logging.getLogger("another.package").warning("it says %s", "this")
    logging.getLogger("uvicorn.error").info("started")
    first, second = said(capsys)
    assert (first["event"], first["height"], first["level"]) == ("something", 7, "info")
    assert (second["event"], second["level"]) == ("it says this", "warning")
    assert str(first["timestamp"]).endswith("Z")


def test_lines_are_for_people_when_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Without colours where no terminal is."""
    configure_logs(LogForm.HUMAN)
    log().info("something", height=7)
    captured = capsys.readouterr()
    assert "something" in captured.err
    assert "height=7" in captured.err
    assert "\x1b" not in captured.err


def logged_world() -> World:
    """Return a world whose steps are logged as JSON; to be called in the test, when stderr is the test's."""
    configure_logs(LogForm.JSON)
    return make_world(announce=log_step)


def test_block_is_told_when_something_happens_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Empty ones are not worth a line, however many come."""
    world = logged_world()
    world.builder.build()
    world.send(gift())
    world.builder.build()
    world.builder.advance(500)
    [line] = said(capsys)
    assert (line["event"], line["height"], line["transactions"]) == ("block", 2, 1)
    assert "fires" not in line


def test_line_of_a_block_says_how_many_transactions_it_left_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that it had no time for."""
    world = logged_world()
    world.send(gift())
    world.send(gift(), sender=3)
    world.builder.build(within=0)
    [line] = said(capsys)
    assert (line["transactions"], line["left"]) == (1, 1)


def test_way_back_and_refusals_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With where the chain stands, and with the reason."""
    world = logged_world()
    mark = world.builder.mark()
    world.builder.advance(3)
    tx_hash = world.send(gift())
    world.builder.revert(mark)
    back, refused = said(capsys)
    assert (back["event"], back["height"]) == ("went back", 0)
    assert (refused["event"], refused["transaction"], refused["reason"]) == ("refused", str(tx_hash), "withdrawn")


def test_refusals_are_counted_when_there_are_many(capsys: pytest.CaptureFixture[str]) -> None:
    """A flood of them must not become a flood of lines."""
    world = logged_world()
    rejection = Rejection(RejectionReason.OUT_OF_CYCLES, "too few")
    refused = {Hash32(number.to_bytes(32, "big")): rejection for number in range(1_000)}
    log_step(Published(view=world.builder.view, refused=refused))
    lines = said(capsys)
    assert len(lines) == 1
    assert (lines[0]["event"], lines[0]["transactions"], lines[0]["out_of_cycles"]) == ("refused", 1_000, 1_000)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvariantError("sums differ"), "the chain contradicts itself"),
        (StorageError("here", "the disk is full", "make room"), "the chain cannot go on"),
        (ZeroDivisionError("a bug"), "the chain thread has failed"),
    ],
)
def test_end_is_told_with_its_reason(error: Exception, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A bug with its traceback."""
    configure_logs(LogForm.JSON)
    log_failure(error)
    [line] = said(capsys)
    assert words in str(line["event"])
    assert str(error) in str(line)
    assert line["level"] == "error"
