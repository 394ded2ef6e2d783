"""A chain as a whole, kept and checked: ``export``, ``import``, ``verify``, ``replay``."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain import Chain, ChainReader
from trailboss.chain.export import check_export, export_chain, import_chain, load_chain
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import FAILED, Mistake
from trailboss.cli.options import AsJson, Number, argument, number, option
from trailboss.cli.output import console, print_json, progress, show
from trailboss.cli.targets import open_directory
from trailboss.views.json_values import to_json_value


@command()
def export(run: Invocation, file: Annotated[Path, argument("FILE", "File to write.")]) -> None:
    """Write the whole chain to one file.

    It holds the genesis, the blocks and the root after each. A file of that name is replaced once the new one is
    complete.

    Example: trailboss export play.trail
    """
    chain = run.chain
    with progress("exporting", chain.height, quiet=run.as_json) as advance:
        export_chain(chain, file, advance)
    _show(chain, "exported", file, as_json=run.as_json)


def import_(
    file: Annotated[Path, argument("FILE", "File that export wrote.")],
    directory: Annotated[Path, argument("DIR", "Directory of the new chain.")],
    as_json: AsJson = False,
) -> None:
    """Build a chain from an export, in a new directory.

    Every block is built again and must give the root that the file names. The result is a complete chain, or none.

    Example: trailboss import play.trail copy
    """
    height = check_export(file).height
    with progress("importing", height, quiet=as_json) as advance:
        imported = import_chain(file, directory, advance)
    with closing(imported) as chain:
        _show(chain, "imported", directory, as_json=as_json)


def _show(chain: ChainReader, verb: str, place: Path, *, as_json: bool) -> None:
    size = f", {place.stat().st_size:,} bytes" if place.is_file() else ""
    show(
        {verb: str(place), "height": chain.height, "state_root": chain.state_root},
        {verb: f"{place}{size}", "height": chain.height, "state root": str(chain.state_root)},
        as_json=as_json,
    )


@command()
def verify(run: Invocation) -> None:
    """Replay the whole chain and compare every block, root and sum.

    Exits with 1 at any difference from what the blocks make of the genesis.

    Example: trailboss verify --chain play
    """
    with open_directory(run.place) as chain, progress("replaying", chain.height, quiet=run.as_json) as advance:
        report = verify_chain(chain, advance)
    if run.as_json:
        print_json({"holds": report.ok} | to_json_value(report))
    else:
        console().print(str(report), markup=False, soft_wrap=True)
    if not report.ok:
        raise typer.Exit(FAILED)


@command()
def replay(
    run: Invocation,
    to: Annotated[Number, number("Replay up to this height.", "the last block", metavar="H")] = None,
    diff: Annotated[
        Path | None, option("OTHER", "Compare with this chain: a directory, or a file that export wrote.")
    ] = None,
) -> None:
    """Replay the chain up to a height, or find where two chains diverge.

    With --diff it names the first block in which they differ, and in it the first transaction and the first key of the
    state; it exits with 1 if there is one.

    Example: trailboss replay --diff copy
    """
    with open_directory(run.place) as chain:
        if to is not None and to > chain.height:
            raise Mistake(f"height {to} lies ahead: the chain is at {chain.height}", "give a height that it has")
        if diff is not None:
            if diff.exists() and diff.samefile(run.place):
                raise Mistake(f"--diff names {diff}, the chain itself", "name another chain, or an export")
            _compare(run, chain, diff, to)
            return
        end = chain.height if to is None else to
        with progress("replaying", end, quiet=run.as_json) as advance:
            replica = replay_to(chain, end, advance)
    found, root = replica.head.hash, replica.state_root
    run.show(
        {"height": end, "block_hash": found, "state_root": root},
        {"height": end, "block": str(found), "state root": str(root)},
    )


def _compare(run: Invocation, chain: Chain, path: Path, to: int | None) -> None:
    steps = chain.height if to is None else to
    with closing(load_chain(path)) as other, progress("replaying", steps, quiet=run.as_json) as advance:
        parting = compare_chains(chain, other, to, advance, names=(run.place, str(path)))
    if run.as_json:
        print_json({"same": parting is None, "parting": parting})
    else:
        same = "the two chains are the same" + ("" if to is None else f" up to block {to}")
        console().print(same if parting is None else str(parting), markup=False, soft_wrap=True)
    if parting is not None:
        raise typer.Exit(FAILED)
