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

LOOKED_AT: Final = 10_000
"""Blocks, the last ones, in which a validator's proposals are looked for: a hundred rounds of a hundred validators."""


def check_votes(home: Home, chain: ChainReader) -> None:
    """Refuse to start a validator that could vote twice. A node that is no validator votes on nothing.

    Raises:
        NetworkHaltError: If the file of its last vote is missing or damaged, or older than a block that it proposed.
    """
    if home.key is None:
        return
    voted = _last_vote(home.vote_file)
    proposed = last_proposed(home, chain)
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
    first = max(1, chain.height - LOOKED_AT + 1)
    heights = range(chain.height, first - 1, -1)
    return next((height for height in heights if chain.blocks[height].header.proposer == own[0]), 0)


def _last_vote(path: Path) -> int:
    what = f"{path} is missing"
    with suppress(FileNotFoundError):
        try:
            table: Any = json.loads(path.read_bytes())
            return int(table["height"])
        except (ValueError, KeyError, TypeError):
            what = f"{path} is damaged"
    raise NetworkHaltError(Halt.VALIDATOR_STATE_LOST, what)
