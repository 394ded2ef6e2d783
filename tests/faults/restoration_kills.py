"""Kill a process while it restores a chain from a snapshot: there is no chain afterwards, or the whole one.

``python -m tests.faults.restoration_kills --kills 200 --seed 1`` restores in one directory again and again, over what
each kill has left, and says how often there was a chain.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.faults.children import forked, killed
from tests.unit.chain.joining import Offer, filled_chain, offer_of, small_parts
from trailboss.chain import Chain
from trailboss.primitives.errors import StorageError

MARGIN: Final = 1.1  # times the longest restoration: some kills come too late
NO_CHAIN: Final = ("no such directory", "interrupted here", "no chain here")


def _restore(offer: Offer, directory: Path) -> None:
    restoration = offer.begin(directory)
    for index, chunk in enumerate(offer.chunks):
        restoration.accept(index, chunk)
    restoration.finish()


def _is_chain(offer: Offer, directory: Path) -> bool:
    """Return whether a directory holds the chain, and not something else that opens, or is refused as damaged."""
    try:
        chain = Chain.open(directory)
    except StorageError as error:
        if not any(words in str(error) for words in NO_CHAIN):
            raise
        return False
    with chain:
        assert (chain.height, chain.state_root, chain.head.hash) == (
            offer.view.height,
            offer.view.state_root,
            offer.view.head.hash,
        )
        chain.check_invariants()
    return True


def run(kills: int, seed: int) -> None:
    """Restore and kill, and check what is there after each kill."""
    dice = random.Random(seed)
    local, _ = filled_chain()
    with local, tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        small_parts(patch)
        offer, directory = offer_of(local.chain), Path(folder, "chain")
        restore = partial(_restore, offer, directory)
        start = time.perf_counter()
        os.waitpid(forked(restore), 0)
        longest = time.perf_counter() - start
        whole = amid = 0
        for _ in range(kills):
            if _is_chain(offer, directory):
                shutil.rmtree(directory)
            amid += killed(forked(restore), dice.uniform(0, MARGIN * longest))
            whole += _is_chain(offer, directory)
        os.waitpid(forked(restore), 0)
        assert _is_chain(offer, directory)
    print(f"{kills} restorations, {amid} killed at work: {whole} left the whole chain, {kills - whole} none")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    run(chosen.kills, chosen.seed)
