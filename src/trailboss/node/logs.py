"""What a running node says: to people in a terminal, as lines of JSON to everything else. All of it on stderr.

Blocks in which nothing happens are not worth a line.
"""

import logging
import sys
from collections import Counter
from typing import Any, Final

import structlog
from structlog.typing import Processor

from trailboss.chain.history import is_eventful
from trailboss.model.blocks import Block, Origin
from trailboss.node.options import LogForm
from trailboss.node.step import Published
from trailboss.primitives.errors import InvariantError, TrailbossError
from trailboss.views.records import block_prints

MILLISECONDS: Final = 1_000
TOLD_SINGLY_MAX: Final = 10
"""Refusals of one step that get a line each; more are counted."""
QUIET: Final = ("uvicorn.access", "httpx", "asyncio")
"""Loggers that say what is said here already, or what nobody needs."""


def configure_logs(form: LogForm | None = None) -> None:
    """Have everything that is logged, by whatever package, written to stderr in one form.

    Args:
        form: The form; None for what suits: people read terminals, programs read the rest.
    """
    is_human = sys.stderr.isatty() if form is None else form is LogForm.HUMAN
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if is_human else "iso", utc=not is_human),
    ]
    if is_human:
        last: list[Processor] = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    else:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # A malformed request has its answer, and a line for each would fill the disk of whoever keeps the log.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def log() -> Any:
    """Return the node's logger."""
    return structlog.get_logger("trailboss")


def log_step(published: Published) -> None:
    """Say what a step of the chain brought, if it brought anything."""
    logger = log()
    if published.reorg_from is not None:
        logger.info("went back", height=published.reorg_from)
    for block in published.blocks:
        if is_eventful(block):
            logger.info("block", **_facts(block), ms=round(published.seconds * MILLISECONDS))
        for line in block_prints(block):
            say = logger.warning if line.is_warning else logger.info
            say("printed", height=block.height, actor=str(line.actor), handler=line.handler, text=line.text)
    if len(published.refused) <= TOLD_SINGLY_MAX:
        for tx_hash, rejection in published.refused.items():
            logger.info("refused", transaction=str(tx_hash), reason=rejection.reason.slug, what=rejection.what)
    else:
        reasons = Counter(rejection.reason.slug for rejection in published.refused.values())
        logger.info("refused", transactions=len(published.refused), **reasons)


def log_failure(error: BaseException) -> None:
    """Say why the chain has stopped."""
    logger = log()
    if isinstance(error, InvariantError):
        logger.error("the chain contradicts itself, and stops; this is a bug of the program", what=str(error))
    elif isinstance(error, TrailbossError):
        logger.error("the chain cannot go on, and stops", what=str(error))
    else:
        logger.error("the chain thread has failed, and stops; this is a bug of the program", exc_info=error)


def _facts(block: Block) -> dict[str, int]:
    origins = [receipt.origin for receipt in block.receipts]
    counts = {
        "transactions": len(block.transactions),
        "fires": origins.count(Origin.TIMER),
        "messages": origins.count(Origin.MESSAGE),
    }
    return {"height": block.height, **{name: count for name, count in counts.items() if count}}
