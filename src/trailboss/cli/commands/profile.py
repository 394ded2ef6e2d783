"""``profile``: what each line of an actor costs, in a run of its own or in blocks that a chain has built."""

import re
import sys
import warnings
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.opening import MECHANISM, PRESET
from trailboss.chain.replay import replay_to
from trailboss.chain.trace import BlockTrace, TraceCollector
from trailboss.cli import options, output
from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.accounts import Cbor
from trailboss.cli.commands.proofs import write_document
from trailboss.cli.errors import FAILED, Mistake, NotFound, report_failed
from trailboss.cli.options import PAYLOAD, Number, Text, argument, money, number, option
from trailboss.cli.targets import open_directory, resolve_timer
from trailboss.cli.values import parse_payload
from trailboss.model.blocks import Block
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing import ChainWarning, LocalChain
from trailboss.testing.costs.recorder import NATIVE, CostRecorder
from trailboss.testing.costs.report import table_document, table_text
from trailboss.views import Receipt

SUFFIX: Final = ".py"
BLOCKS_MAX: Final = 100_000
FUNDS: Final = 1_000 * BASE_UNITS_PER_CBY
SUBJECT: Final = (
    "A source, which runs on a chain in memory; or what a chain in a directory has built: a height, heights as 10..20, "
    "or the first digits of a timer's id."
)
_HEIGHTS: Final = re.compile(r"([0-9]{1,20})(?:\.\.([0-9]{1,20}))?")


@command()
def profile(
    run: Invocation,
    subject: Annotated[str, argument("ACTOR.py|HEIGHT|HEIGHT..HEIGHT|TIMER", SUBJECT)],
    handler: Annotated[Text, argument("HANDLER", "Handler to call.", "the creation call alone")] = None,
    payload: Annotated[str, option("PAYLOAD", f"Argument of the handler: {PAYLOAD}.")] = "",
    init_payload: Annotated[str, option("PAYLOAD", f"Argument of the creation call: {PAYLOAD}.")] = "",
    cbor: Cbor = False,
    value: Annotated[Number, money("Money for the actor: base units, or CBY as 1.5cby.", "1000cby")] = None,
    blocks: Annotated[int, number("Blocks to build after the call; due timers run in them.", most=BLOCKS_MAX)] = 0,
    mechanism: options.Mechanism = None,
    preset: options.Preset = None,
    speedscope: Annotated[Path | None, option("FILE", "File for a flame graph, for speedscope.", "none")] = None,
) -> None:
    """Show what each handler and each line of an actor costs, in cycles.

    A source is deployed on a chain in memory, and its handler is called. A chain in a directory is built again. The
    sums are those of the receipts.

    Example: trailboss profile clock.py --blocks 20 --speedscope clock.json
    """
    recorder = CostRecorder(Path.cwd(), with_flames=speedscope is not None)
    failed: Receipt | None = None
    if subject.endswith(SUFFIX):
        if payload and handler is None:
            fix = "name the handler after the source; the creation call takes --init-payload"
            raise Mistake(f"--payload {payload}: no handler is named that takes it", fix)
        payloads = [parse_payload(each, as_cbor=cbor and bool(each)) for each in (init_payload, payload)]
        funds = FUNDS if value is None else value
        with _chain(recorder, mechanism or MECHANISM, preset or PRESET) as chain:
            failed = _run_actor(chain, subject, handler, payloads, funds, blocks)
    elif any((handler, payload, init_payload, cbor, value is not None, blocks, mechanism, preset)):
        what = f"{subject} is no source, and only a source is called"
        raise Mistake(what, f"give a file that ends in {SUFFIX}, or leave out what the call takes")
    else:
        _replay(run, subject, recorder)
    table, flames = recorder.table, recorder.flames
    if not table.executions:
        raise NotFound(f"nothing ran in {subject}", "see which blocks have content with `trailboss events`")
    table.check()
    if speedscope is not None and flames is not None:
        write_document(speedscope, flames.document(subject))
        output.note(f"flame graph in {speedscope}: open it at https://www.speedscope.app")
    if run.as_json:
        output.print_json(table_document(table))
    else:
        typer.echo("\n".join(table_text(table, output.console().width, with_lines=True)))
    if failed is not None and failed.error is not None:
        report_failed(failed.error, failed.status)
        raise typer.Exit(FAILED)


def _chain(recorder: CostRecorder, mechanism: str, preset: str) -> LocalChain:
    class ProfiledChain(LocalChain):
        chain_class = recorder.chain_class()

    return ProfiledChain(mechanism=mechanism, preset=preset)


def _run_actor(
    chain: LocalChain, file: str, handler: str | None, payloads: list[bytes], funds: int, blocks: int
) -> Receipt | None:
    """Deploy an actor, call a handler and build blocks; return the receipt of the call if it reverted.

    Raises:
        RevertedError: If the deployment reverts.
    """
    receipt: Receipt | None = None
    owner = chain.accounts[0]
    # What actors print is no data of this command, and the chain in memory is no public one.
    with redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainWarning)
        actor = chain.deploy(file, sender=owner, value=funds, init_payload=payloads[0])
        if handler is not None:
            receipt = actor.call(handler, payloads[1], sender=owner)
        if blocks:
            chain.mine(blocks)
    return None if receipt is None or receipt.ok else receipt


def _replay(run: Invocation, subject: str, recorder: CostRecorder) -> None:
    """Build the chain of a directory again, and record the executions that are meant."""
    with open_directory(run.place) as chain:
        match = _HEIGHTS.fullmatch(subject)
        timer_id = b"" if match else resolve_timer(chain, subject)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, chain.height)
        if not 1 <= first <= last <= chain.height:
            what = f"there are no blocks {subject} to profile: the chain has blocks 1 to {chain.height} above genesis"
            raise NotFound(what, "name some of these, the lower height first")
        with output.progress("replaying", last, quiet=run.as_json) as advance:
            traces = _traces(chain, first, last, advance)
        for trace in traces:
            ours = tuple(each for each in trace.executions if timer_id in (b"", each.receipt.timer_id))
            recorder.add(replace(trace, executions=ours), {})


def _traces(chain: Chain, first: int, last: int, advance: Callable[[], None]) -> list[BlockTrace]:
    """Build blocks again up to the last one that is meant; return what each did, from the first of them on."""

    def replay(image: bytes) -> list[BlockTrace]:
        collector = TraceCollector(chain.params, image, breakpoints=chain.genesis.allows_breakpoints)
        traces: list[BlockTrace] = []

        def take(block: Block) -> None:
            advance()
            trace = collector.take(block)
            if block.height >= first:
                traces.append(trace)

        with closing(collector.engine):
            replay_to(chain, last, take, engine=collector.engine)
        return traces

    try:
        return replay(NATIVE)
    except InvariantError:
        if chain.genesis.image == NATIVE:
            raise
    output.note("the sandbox charged fuel, or ended a frame: there are no cycles by line")
    return replay(chain.genesis.image)
