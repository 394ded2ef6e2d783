"""Where a chain and that of a node part: by asking the node, without a replay."""

from bisect import bisect_left
from contextlib import closing

from trailboss.chain import Chain
from trailboss.chain.differences import Difference, Parting
from trailboss.chain.outcomes import compare_outcomes, outcome_from_json, outcome_of
from trailboss.cli.remote.client import Client


def compare_with_node(chain: Chain, url: str, to: int | None, names: tuple[str, str]) -> Parting | None:
    """Return where a chain and that of a node part, up to a height; by default as far as both go.

    Raises:
        NotFound: If no node answers.
        Refused: If the node, or the chain, can no longer say all of the block in which they part.
        Rejection: Likewise, or if they part below the first block that the chain has.
    """
    with closing(Client(url)) as client:
        last = min(chain.height, client.get("/height")["height"], chain.height if to is None else to)

        def differs(height: int) -> bool:
            return bool(client.get(f"/block/{height}")["hash"] != str(chain.blocks[height].hash))

        if not differs(last):
            return None
        # A hash commits to all blocks before, so the hashes are equal up to a height and differ from there on.
        base = chain.blocks.base
        height = bisect_left(range(last), True, base, key=differs)
        if height == base > 0:
            # They may part below the first block that the chain has.
            chain.blocks.check_there(base - 1)
        if height == 0:
            sides = (str(chain.blocks[0].hash), client.get("/block/0")["hash"])
            return Parting(0, (Difference("genesis", "hash of block 0", *sides),), names)
        theirs = outcome_from_json(client.get(f"/block/{height}/outcome"))
        return compare_outcomes(outcome_of(chain, height), theirs, names)
