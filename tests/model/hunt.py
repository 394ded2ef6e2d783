"""Thousands of random histories by seed, for as long as it takes: straight on, with branches that are dropped, on disk.

```sh
python -m tests.model.hunt auction --first 0 --histories 5000
```

prints each seed on which a chain and its slow model part, and one line at the end.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType

from tests.model.auction_histories import auction_history
from tests.model.globalbox_histories import globalbox_history
from tests.model.histories import Dice, History, history, seeded
from tests.model.lane_histories import lane_history
from tests.model.session import Session

MADE: Mapping[str, Callable[[Dice], History]] = MappingProxyType(
    {"fifo": history, "lane": lane_history, "auction": auction_history, "globalbox": globalbox_history}
)
WAYS = ("straight", "straight", "branches", "disk")
SHOWN = 600


def played(random_history: History) -> Session:
    """Return a session in which a history has been played; it raises at the first difference."""
    session = Session(random_history)
    session.play(random_history.blocks)
    return session


def differs(random_history: History, bend: Callable[[Session], None] = lambda _: None) -> bool:
    """Tell whether chain and model part in a history, the model bent or not."""
    session = Session(random_history)
    bend(session)
    try:
        session.play(random_history.blocks)
    except AssertionError as difference:
        return "differ" in str(difference)
    return False


def wandered(trunk: History, branch: History, dice: Random, directory: Path | None = None) -> Session:
    """Play a history that goes astray twice, and through restarts if it is on disk; it must end where it would have.

    Args:
        trunk: What is played.
        branch: What is played twice in between, from some block on, and dropped.
        dice: Says where.
        directory: Where the chain lives; None for memory.
    """
    straight, session = played(trunk), Session(trunk, directory)
    forks = sorted(dice.sample(range(1, len(trunk.blocks)), k=min(2, len(trunk.blocks) - 1)))
    played_so_far = 0
    for fork in forks:
        session.play(trunk.blocks[played_so_far:fork])
        if directory is not None:
            session.reopen()
        session.branch(branch.blocks[1:], reopened=directory is not None and dice.random() < 1 / 2)
        played_so_far = fork
    session.play(trunk.blocks[played_so_far:])
    if session.hashes != straight.hashes:
        raise AssertionError("the blocks differ from those of a chain that went straight")
    return session


def pursue(mechanism: str, seed: int) -> None:
    """Play the history of a seed in the way that the seed says; raise at the first difference."""
    trunk, way = MADE[mechanism](seeded(seed)), WAYS[seed % len(WAYS)]
    if way == "straight":
        played(trunk)
        return
    branch, dice = MADE[mechanism](seeded(seed + 1)), Random(seed)
    if way == "branches":
        wandered(trunk, branch, dice)
        return
    with tempfile.TemporaryDirectory() as folder:
        session = wandered(trunk, branch, dice, Path(folder, "chain"))
        session.reopen()
        session.chain.check_invariants()
        session.chain.close()


def main() -> None:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mechanism", choices=sorted(MADE))
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--histories", type=int, default=1_000, help="seeds to try")
    chosen = parser.parse_args()
    parted = 0
    for seed in range(chosen.first, chosen.first + chosen.histories):
        try:
            pursue(chosen.mechanism, seed)
        except AssertionError as difference:
            parted += 1
            print(f"seed {seed}: {str(difference)[:SHOWN]}", flush=True)
    print(f"{chosen.mechanism}: {chosen.histories} histories from seed {chosen.first} on, {parted} differ")


if __name__ == "__main__":
    main()
