"""What executions did, frame by frame: ``trace``."""

from typing import Annotated

from trailboss.chain import Chain
from trailboss.cli import options, output
from trailboss.cli.command import Invocation, command
from trailboss.cli.targets import resolve_execution
from trailboss.primitives.octets import Hash32
from trailboss.views.trace.executions import find_execution, one_of, trace_height
from trailboss.views.trace.records import BlockTraces
from trailboss.views.trace.tree import TreeNode, plain_text, rich_tree

SUBJECT = "A block's height, or the first digits of a transaction's hash or of a timer's id."


@command()
def trace(
    run: Invocation,
    subject: Annotated[str, options.argument("HEIGHT|TX|TIMER", SUBJECT)],
    calls: Annotated[bool, options.flag("--calls/--no-calls", "Show host calls and prints, or frames alone.")] = True,
    lines: Annotated[
        bool, options.flag("--lines", "Show the cycles of each source line, on the native engine.")
    ] = False,
) -> None:
    """Show what a transaction, a timer's latest fire or a block did: frames, host calls, cycles, effects.

    The chain is built again up to that block, beside itself; a node does so for chains of a bounded length.

    Example: trailboss trace 0x6e3d2443 --lines
    """
    chain = run.chain
    found = resolve_execution(chain, subject)
    if run.as_json:
        output.print_json(_traces(chain, found, quiet=True) if isinstance(chain, Chain) else chain.trace(found))
        return
    if isinstance(chain, Chain):
        _draw(_traces(chain, found, quiet=False).tree(calls=calls, lines=lines))
    else:
        _draw(chain.trace_tree(found, calls=calls, lines=lines))
    if lines and chain.genesis.image:
        output.note("the sandbox counts no cycles by line")


def _traces(chain: Chain, subject: int | Hash32, *, quiet: bool) -> BlockTraces:
    if isinstance(subject, int):
        return _block_traces(chain, subject, quiet=quiet)
    place = find_execution(chain, subject)
    return one_of(_block_traces(chain, place.height, quiet=quiet), place)


def _block_traces(chain: Chain, height: int, *, quiet: bool) -> BlockTraces:
    with output.progress("replaying", height, quiet=quiet) as advance:
        return trace_height(chain, height, advance)


def _draw(tree: TreeNode) -> None:
    printer = output.console()
    if printer.is_terminal:
        printer.print(rich_tree(tree))
    else:
        printer.print(plain_text(tree), markup=False, soft_wrap=True)
