"""``trailboss verify`` and ``trailboss replay``: build a chain again from its blocks, alone or beside another one."""

from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain import Chain
from trailboss.chain.export import load_chain
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.cli.failures import FAILED, Mistake
from trailboss.cli.opening import open_directory
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import console, print_facts, print_json, progress
from trailboss.views.json_values import plain


def verify(place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Replay the whole chain and compare every block, root and sum.

    Exits with 1 if anything is not what the chain's own blocks make of its genesis.
    """
    with open_directory(place) as chain, progress("replaying", chain.height, quiet=as_json) as advance:
        report = verify_chain(chain, advance)
    if as_json:
        print_json({"holds": report.ok} | plain(report))
    else:
        console().print(str(report), markup=False, soft_wrap=True)
    if not report.ok:
        raise typer.Exit(FAILED)


def replay(
    to: Annotated[
        int | None,
        typer.Option(min=0, metavar="H", help="Up to this height. [dim]\\[default: the last block][/dim]"),
    ] = None,
    diff: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Compare with this chain: a directory, or a file that export wrote."),
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Replay the chain up to a height, or find where two chains part.

    With --diff it names the first block in which they differ, and in it the first transaction and the first key of the
    state; it exits with 1 if there is one.
    """
    with open_directory(place) as chain:
        if to is not None and to > chain.height:
            raise Mistake(f"height {to} lies ahead: the chain is at {chain.height}", "give a height that it has")
        if diff is not None:
            if diff.exists() and diff.samefile(place):
                raise Mistake(f"--diff names {diff}, the chain itself", "name another chain, or an export")
            _compare(chain, place, diff, to, as_json=as_json)
            return
        end = chain.height if to is None else to
        with progress("replaying", end, quiet=as_json) as advance:
            replica = replay_to(chain, end, advance)
        if as_json:
            print_json({"height": end, "block_hash": replica.head.hash, "state_root": replica.state_root})
        else:
            print_facts({"height": end, "block": str(replica.head.hash), "state root": str(replica.state_root)})


def _compare(chain: Chain, place: str, path: Path, to: int | None, *, as_json: bool) -> None:
    other = load_chain(path)
    try:
        with progress("replaying", chain.height if to is None else to, quiet=as_json) as advance:
            parting = compare_chains(chain, other, to, advance, names=(place, str(path)))
    finally:
        other.close()
    if as_json:
        print_json({"same": parting is None, "parting": parting})
    else:
        same = "the two chains are the same" + ("" if to is None else f" up to block {to}")
        console().print(same if parting is None else str(parting), markup=False, soft_wrap=True)
    if parting is not None:
        raise typer.Exit(FAILED)
