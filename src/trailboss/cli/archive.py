"""``trailboss export`` and ``trailboss import``: a whole chain as one file."""

from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain import ChainReader
from trailboss.chain.export import check_export, export_chain, import_chain
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import print_facts, print_json, progress


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.", show_default=False)],
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Write the whole chain to one file.

    It holds the genesis, the blocks and the root after each. A file of that name is replaced once the new one is
    complete.
    """
    with open_chain(place) as chain:
        with progress("exporting", chain.height, quiet=as_json) as advance:
            export_chain(chain, file, advance)
        _show(chain, "exported", file, as_json=as_json)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that export wrote.", show_default=False)],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the chain is to live.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Build a chain from an export, in a new directory.

    Every block is built again and must give the root that the file names. There is a complete chain, or none.
    """
    height = check_export(file).height
    with progress("importing", height, quiet=as_json) as advance:
        chain = import_chain(file, directory, advance)
    try:
        _show(chain, "imported", directory, as_json=as_json)
    finally:
        chain.close()


def _show(chain: ChainReader, verb: str, place: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({verb: str(place), "height": chain.height, "state_root": chain.state_root})
        return
    print_facts(
        {
            verb: f"{place}, {place.stat().st_size:,} bytes" if place.is_file() else str(place),
            "height": chain.height,
            "state root": str(chain.state_root),
        }
    )
