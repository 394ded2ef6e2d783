"""What a validator has voted on last, as its engine keeps it: without that, or with an old copy, it could vote twice.

The chain knows a block that a validator must have voted on: the last one that it proposed itself.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from trailboss.chain import ChainReader
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.home import Home

STEP: Final = 100  # of them that are read together
LOOKED_AT: Final = 10_000
"""Blocks, the last ones, in which a validator's proposals are looked for: a hundred rounds of a hundred validators."""


def check_votes(home: Home, chain: ChainReader | None) -> None:
    """Refuse to start a validator that could vote twice. A node that is no validator votes on nothing.

    Args:
        home: The node's home.
        chain: Its chain; None if it has none yet.

    Raises:
        NetworkHaltError: If the file of its last vote is missing or damaged, or older than a block that it proposed.
    """
    if home.key is None:
        return
    voted = _last_vote(home.vote_file)
    proposed = 0 if chain is None else last_proposed(home, chain)
    if voted < proposed:
        what = (
            f"{home.vote_file} says that the last vote was at height {voted}, and block {proposed} is this validator's"
        )
        raise NetworkHaltError(Halt.VALIDATOR_STATE_LOST, what)


def last_proposed(home: Home, chain: ChainReader) -> int:
    """Return the height of the last block that a home's validator has proposed; 0 if none of the last ones is known.

    None is known either if another validator has the same account for its fees.
    """
    validators = home.genesis.validators
    own = [each.fee_account for each in validators if each.public_key == home.key]
    if not own or [each.fee_account for each in validators].count(own[0]) > 1:
        return 0
    least = max(1, chain.blocks.base, chain.height - LOOKED_AT + 1)
    for last in range(chain.height, least - 1, -STEP):
        for block in reversed(chain.blocks[max(least, last - STEP + 1) : last + 1]):
            if block.header.proposer == own[0]:
                return block.height
    return 0


def _last_vote(path: Path) -> int:
    what = f"{path} is missing"
    with suppress(FileNotFoundError):
        try:
            table: Any = json.loads(path.read_bytes())
            return int(table["height"])
        except (ValueError, KeyError, TypeError):
            what = f"{path} is damaged"
    raise NetworkHaltError(Halt.VALIDATOR_STATE_LOST, what)
