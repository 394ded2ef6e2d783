"""The log lines of a running node, on stderr: for people in a terminal, as JSON for everything else.

Blocks in which nothing happens are not worth a line.
"""

import logging
import sys
from collections import Counter
from datetime import UTC, datetime
from traceback import format_exception
from typing import Final

import msgspec

from trailboss.chain.history import is_eventful
from trailboss.model.blocks import Origin
from trailboss.node.block_builder import Published
from trailboss.node.options import LogForm
from trailboss.primitives.errors import InvariantError, TrailbossError
from trailboss.views.records import block_prints

MILLISECONDS: Final = 1_000
COUNTED: Final = ("transactions", "fires", "messages")
LISTED_MAX: Final = 10  # refusals of one step that get a line each; more are counted
SILENCED: Final = ("uvicorn.access", "httpx", "asyncio")
"""Loggers whose messages repeat lines of the node, or help no operator."""
EVENT_WIDTH: Final = 30
LEVEL_WIDTH: Final = 8
RESET, BOLD, DIM, CYAN, MAGENTA = (f"\x1b[{code}m" for code in (0, 1, 2, 36, 35))
COLOURS: Final = {"info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}


class Log:
    """Writes lines to stderr in one form."""

    is_human = False  # whether they are for people

    def info(self, event: str, **facts: object) -> None:
        """Write what happens in normal work."""
        self.write("info", event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Write what an operator should look at."""
        self.write("warning", event, facts)

    def error(self, event: str, error: BaseException | None = None, **facts: object) -> None:
        """Write why work ends, with the traceback of an error."""
        self.write("error", event, facts, error)

    def write(self, level: str, event: str, facts: dict[str, object], error: BaseException | None = None) -> None:
        """Write one line, and the traceback of an error."""
        trace = "" if error is None else "".join(format_exception(error)).rstrip()
        if self.is_human:
            line = _human_line(level, event, facts) + (f"\n{trace}" if trace else "")
        else:
            now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            fields = {**facts, "event": event, "level": level, "timestamp": now}
            line = msgspec.json.encode(fields | {"exception": trace} if trace else fields).decode()
        sys.stderr.write(line + "\n")


class _Handler(logging.Handler):
    """Writes what other packages log, in the node's form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        _LOG.write(record.levelname.lower(), record.getMessage(), {}, error)


_LOG: Final = Log()


def configure_logs(form: LogForm | None = None) -> None:
    """Write everything that is logged, by any package, to stderr; None is for people at a terminal, else JSON."""
    _LOG.is_human = sys.stderr.isatty() if form is None else form is LogForm.HUMAN
    root = logging.getLogger()
    root.handlers = [_Handler()]
    root.setLevel(logging.INFO)
    for name in SILENCED:
        logging.getLogger(name).setLevel(logging.WARNING)
    # A malformed request has its answer; a line for each would fill the operator's disk.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def log() -> Log:
    """Return the node's log."""
    return _LOG


def log_step(published: Published) -> None:
    """Log what a step of the chain brought, if it brought anything."""
    if published.reorg_from is not None:
        _LOG.info("went back", height=published.reorg_from)
    for block in published.blocks:
        if is_eventful(block):
            origins = [receipt.origin for receipt in block.receipts]
            counts = (len(block.transactions), origins.count(Origin.TIMER), origins.count(Origin.MESSAGE))
            facts: dict[str, object] = {"height": block.height}
            facts |= ((name, count) for name, count in zip(COUNTED, counts, strict=True) if count)
            facts["ms"] = round(published.seconds * MILLISECONDS)
            if published.left:
                facts["left"] = published.left
            _LOG.write("info", "block", facts)
        for line in block_prints(block):
            write = _LOG.warning if line.is_warning else _LOG.info
            write("printed", height=block.height, actor=str(line.actor), handler=line.handler, text=line.text)
    if len(published.refused) <= LISTED_MAX:
        for tx_hash, rejection in published.refused.items():
            _LOG.info("refused", transaction=str(tx_hash), reason=rejection.reason.slug, what=rejection.what)
    else:
        reasons = Counter(rejection.reason.slug for rejection in published.refused.values())
        _LOG.info("refused", transactions=len(published.refused), **reasons)


def log_failure(error: BaseException) -> None:
    """Log why the chain has stopped."""
    if isinstance(error, InvariantError):
        _LOG.error("the chain contradicts itself, and stops; this is a bug of the program", what=str(error))
    elif isinstance(error, TrailbossError):
        _LOG.error("the chain cannot go on, and stops", what=str(error))
    else:
        _LOG.error("the chain thread has failed, and stops; this is a bug of the program", error)


def _human_line(level: str, event: str, facts: dict[str, object]) -> str:
    time = datetime.now().astimezone().strftime("%H:%M:%S")
    if not sys.stderr.isatty():
        words = " ".join(f"{name}={_shown(value)}" for name, value in facts.items())
        return f"{time} [{level:<{LEVEL_WIDTH}}] {event:<{EVENT_WIDTH}} {words}".rstrip()
    words = " ".join(f"{CYAN}{name}{RESET}={MAGENTA}{_shown(value)}{RESET}" for name, value in facts.items())
    coloured = f"{COLOURS.get(level, '')}{level:<{LEVEL_WIDTH}}{RESET}"
    return f"{DIM}{time}{RESET} [{coloured}] {BOLD}{event:<{EVENT_WIDTH}}{RESET} {words}".rstrip()


def _shown(value: object) -> str:
    """Return a value in text, quoted where it would be read as several."""
    text = str(value)
    return text if text.isprintable() and text and not set(" =\"'") & set(text) else repr(text)
