"""Kill a process while it restores a chain from a snapshot: there is no chain afterwards, or the whole one.

``python -m tests.faults.restoration_kills --kills 200 --seed 1`` restores in one directory again and again, over what
each kill has left, and says how often there was a chain.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Final

import pytest

from tests.unit.chain.joining import Offer, filled_chain, offer_of, small_parts
from trailboss.chain import Chain
from trailboss.primitives.errors import StorageError

MARGIN: Final = 1.1  # times the longest restoration: some kills come too late
NO_CHAIN: Final = ("no such directory", "interrupted here", "no chain here")


def _forked(offer: Offer, directory: Path) -> int:
    """Start a process that restores the chain."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        restoration = offer.begin(directory)
        for index, chunk in enumerate(offer.chunks):
            restoration.accept(index, chunk)
        restoration.finish()
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)


def _killed(child: int, seconds: float) -> bool:
    """Kill a process after some time; return whether it was still at work."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed: status {status}"
    return os.WIFSIGNALED(status)


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
        start = time.perf_counter()
        os.waitpid(_forked(offer, directory), 0)
        longest = time.perf_counter() - start
        whole = amid = 0
        for _ in range(kills):
            if _is_chain(offer, directory):
                shutil.rmtree(directory)
            amid += _killed(_forked(offer, directory), dice.uniform(0, MARGIN * longest))
            whole += _is_chain(offer, directory)
        os.waitpid(_forked(offer, directory), 0)
        assert _is_chain(offer, directory)
    print(f"{kills} restorations, {amid} killed at work: {whole} left the whole chain, {kills - whole} none")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    run(chosen.kills, chosen.seed)
