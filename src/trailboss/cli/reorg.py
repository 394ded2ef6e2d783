"""``trailboss reorg``: drop blocks."""

from typing import Annotated

import typer

from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import print_facts, print_json


def reorg(
    depth: Annotated[int, typer.Option(min=1, metavar="N", help="Blocks to drop.", show_default=False)],
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Drop the last blocks: clock, timers, money, everything goes back.

    New blocks take their place; the old ones are gone.
    """
    with open_chain(place) as chain:
        before = chain.height
        if depth > before:
            raise Mistake(f"the chain has {before} blocks after genesis, fewer than {depth}", "drop fewer")
        chain.reorg(depth)
        if as_json:
            print_json({"from_height": before, "height": chain.height, "state_root": chain.state_root})
        else:
            print_facts({"height": f"{before} back to {chain.height}", "state root": str(chain.state_root)})
