"""``trailboss mine``: let blocks pass."""

import signal
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from trailboss.chain import ChainReader
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import console, note, print_facts, print_json, print_pairs, progress
from trailboss.cli.receipts import printed_pairs
from trailboss.model.blocks import Block, Origin, Status
from trailboss.model.events import TIMER_DEFERRED, TIMER_ENDINGS, TIMER_FIRED
from trailboss.primitives.units import U64_MAX
from trailboss.views.json_values import plain
from trailboss.views.records import Printed, block_events, block_prints

INTERRUPTED = 130
"""Exit status of a program that Ctrl-C ends."""
PRINTED_MAX = 200
"""Lines that actors have printed, of the last ones, that are shown."""


def mine(
    blocks: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="How many. [dim]\\[default: 1][/dim]")
    ] = None,
    to: Annotated[
        int | None, typer.Option(metavar="HEIGHT", min=1, max=U64_MAX, help="Up to this height instead.")
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Build blocks without transactions; due timers run in them.

    Each timer runs in the block of its height. Stretches in which nothing is due pass at once. Ctrl-C stops between two
    blocks, and what is built stays.
    """
    if blocks is not None and to is not None:
        raise Mistake("both a number of blocks and --to are given", "give one of the two")
    with open_chain(place) as chain:
        end = chain.height + (blocks or 1) if to is None else to
        if end < chain.height:
            raise Mistake(
                f"height {end} lies behind: the chain is at {chain.height}",
                "give a height above it, or drop blocks with `trailboss reorg`",
            )
        start, tally, printed = chain.height, Counter[str](), deque[Printed](maxlen=PRINTED_MAX)
        with progress("blocks", end - start, quiet=as_json) as advance, _interruptible() as is_interrupted:
            for block in chain.advance_to(end):
                _count(tally, block)
                printed += block_prints(block)
                advance()
                if is_interrupted():
                    break
        _show(chain, start, tally, printed, as_json=as_json)
        stopped = chain.height < end
    if stopped:
        note(f"stopped before height {end}; what is built stays")
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C instead of raising in the middle of a block; a second one raises as ever."""
    pressed: list[int] = []

    def note_it(number: int, _frame: object) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note_it)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _count(tally: Counter[str], block: Block) -> None:
    if not (block.receipts or block.events):
        return
    for event in block_events(block):
        if event.name in TIMER_ENDINGS and event.name != TIMER_FIRED:
            tally[TIMER_ENDINGS[event.name]] += 1
    tally["deferred"] += sum(event.name == TIMER_DEFERRED for event in block.events)
    tally["messages"] += sum(receipt.origin is Origin.MESSAGE for receipt in block.receipts)
    fires = [receipt for receipt in block.receipts if receipt.origin is Origin.TIMER]
    # By their receipts: a state watch fires any number of times, and no fire ends it.
    tally["fired"] += len(fires)
    tally["reverted"] += sum(receipt.status is Status.REVERTED for receipt in fires)


def _show(chain: ChainReader, start: int, tally: Counter[str], printed: Collection[Printed], *, as_json: bool) -> None:
    names = ("fired", "reverted", "expired", "unfunded", "cancelled", "deferred", "messages")
    counts = {name: tally[name] for name in names}
    if as_json:
        print_json(
            {
                "from_height": start,
                "height": chain.height,
                "blocks": chain.height - start,
                "counts": counts,
                "live_timers": chain.timer_count(),
                "state_root": chain.state_root,
                "printed": [plain(line) for line in printed],
            }
        )
        return
    happened = [f"{count:,} {name}" for name, count in counts.items() if count]
    print_facts(
        {
            "height": f"{start} to {chain.height}",
            "timers": f"{', '.join(happened) or 'nothing fired'}; {chain.timer_count():,} live",
            "state root": str(chain.state_root),
        }
    )
    print_pairs(
        console(),
        [
            (label, f"block {line.block_height}, {words}")
            for line, (label, words) in zip(printed, printed_pairs(printed), strict=True)
        ],
    )
