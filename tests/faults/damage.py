"""Damage the files of a chain directory at random, and see whether the store notices.

``python -m tests.faults.damage --cases 1000 --seed 1`` prints how many were opened correctly and how many refused.

Every directory is opened by a process of its own, so that one that crashes is seen. Opened correctly means: the right
height, root and genesis, all invariants, every block record as it was, and another block can be written and read back.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.faults.store_writer import GENESIS, SETTINGS, random_changes, record_of
from trailboss.primitives.errors import StorageError
from trailboss.state import keys
from trailboss.state.disk.store import DiskStore

BLOCKS = 57
"""Blocks of the sample: some flushed, some only in the journal, some pruned."""

OPENED, REFUSED, WRONG = 0, 3, 4
WORDS = {OPENED: "opened", REFUSED: "refused"}
SECOND_FILE = 0.1
"""How often two files are damaged at once."""


class Sample(NamedTuple):
    """A chain directory and what it holds.

    Attributes:
        directory: The directory.
        height: Its last sealed block.
        root: State root after it.
        records: Its block records.
    """

    directory: Path
    height: int
    root: bytes
    records: list[tuple[int, bytes]]


def make_samples(base: Path, seed: int) -> list[Sample]:
    """Make two directories: one closed in order, one left by a process that was killed."""
    dice = random.Random(seed)
    live: list[bytes] = []
    working = base / "working"
    store = DiskStore.create(working, GENESIS, durable=False, settings=SETTINGS)
    for height in range(BLOCKS):
        root = store.commit(height, random_changes(dice, live))
        store.seal((height, record_of(height, root)))
    records, height, root = list(store.records(0)), store.height, bytes(store.state_root)
    shutil.copytree(working, base / "killed")
    store.close()
    shutil.copytree(working, base / "closed")
    return [Sample(base / name, height, root, records) for name in ("killed", "closed")]


def damage(path: Path, dice: random.Random) -> str:
    """Damage one file and say how."""
    octets = bytearray(path.read_bytes())
    kind = dice.random()
    if kind < 0.2 or not octets:
        octets = octets[: dice.randrange(len(octets) + 1)]
        how = f"truncated to {len(octets)}"
    elif kind < 0.25:
        start = dice.randrange(len(octets))
        octets[start : start + 4096] = bytes(len(octets[start : start + 4096]))
        how = f"zeros at {start}"
    elif kind < 0.3:
        octets += dice.randbytes(dice.randrange(1, 5_000))
        how = "something appended"
    else:
        # The beginning of the tables is where a single bit matters most.
        span = dice.choice([len(octets), len(octets), min(len(octets), 8_192)])
        bits = [dice.randrange(8 * span) for _ in range(dice.choice([1, 1, 1, 2, 8]))]
        for bit in bits:
            octets[bit >> 3] ^= 1 << (bit & 7)
        how = f"bits {bits} flipped"
    path.write_bytes(octets)
    return f"{path.name}: {how}"


def try_sample(sample: Sample, directory: Path) -> int:
    """Open a damaged copy of a sample, and return ``OPENED``, ``REFUSED`` or ``WRONG``; anything else is a crash."""
    try:
        with DiskStore.open(directory, durable=False, settings=SETTINGS) as store:
            if (store.height, bytes(store.state_root)) != (sample.height, sample.root) or store.genesis != GENESIS:
                return WRONG
            store.check_invariants()
            if list(store.records(0)) != sample.records:
                return WRONG
            root = store.commit(store.height + 1, {keys.config_key(b"after"): bytes(20_000)})
            store.seal((store.height, b"after"))
        with DiskStore.open(directory, durable=False, settings=SETTINGS) as store:
            store.check_invariants()
            return OPENED if (store.height, store.state_root) == (sample.height + 1, root) else WRONG
    except StorageError:
        return REFUSED


def run(cases: int, seed: int, base: Path) -> Counter[str]:
    """Try so many damages; return how many were opened and refused.

    Raises:
        AssertionError: If one gives a wrong state or crashes the process; the message says which.
    """
    dice = random.Random(seed)
    samples = make_samples(base, seed)
    seen: Counter[str] = Counter()
    for number in range(cases):
        sample, copy = dice.choice(samples), base / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sample.directory, copy)
        files = sorted(path for path in copy.iterdir())
        chosen = dice.sample(files, 2 if dice.random() < SECOND_FILE else 1)
        # Most of a chain is its tables.
        chosen = [copy / "chain.mdb"] if len(chosen) == 1 and dice.random() < 0.5 else chosen
        how = "; ".join(damage(path, dice) for path in chosen)
        status = _in_a_process_of_its_own(sample, copy)
        assert status in WORDS, f"case {number} of seed {seed}, {sample.directory.name}, {how}: status {status}"
        seen[WORDS[status]] += 1
    return seen


def _in_a_process_of_its_own(sample: Sample, directory: Path) -> int:
    """Return the exit status of `try_sample`; minus the signal if one ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = try_sample(sample, directory)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            raise
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Read the command line and damage."""
    parser = argparse.ArgumentParser(description="Damage the files of a chain directory at random, and try to open it.")
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        seen = run(options.cases, options.seed, Path(base))
    print(f"{options.cases} damages: {seen['opened']} opened correctly, {seen['refused']} refused, none wrong")


if __name__ == "__main__":
    main()
