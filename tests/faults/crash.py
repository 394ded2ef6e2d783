"""Kill a writing process at random instants, and look at what it leaves.

``python -m tests.faults.crash --kills 2000 --seed 1`` runs as long as it takes and prints one line.

Half of the processes are killed after a random time, so inside system calls too; the other half at a random line of
the store's own modules, which reaches the short moments between two system calls.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.store_writer import GENESIS, SETTINGS, Line, Writer, die_at_line, log_lines, open_or_create, record_of
from trailboss.state.disk.store import DiskStore

RENEWAL = 25
"""Kills after which a directory is thrown away, so that creation is killed as well."""

LONGEST_LIFE = 0.15
LINES = 60_000


def run(kills: int, seed: int, base: Path) -> tuple[int, int]:
    """Kill so many writers; return how many died while working, and how many chains ended with blocks.

    Raises:
        AssertionError: If a directory cannot be opened, or holds something else than was acknowledged.
    """
    dice = random.Random(seed)
    killed = grown = 0
    for number in range(kills):
        directory, log = base / "chain", base / "log"
        if number % RENEWAL == 0:
            shutil.rmtree(directory, ignore_errors=True)
            log.write_bytes(b"")
        killed += _kill_one(directory, log, dice)
        grown += check(directory, log)
    return killed, grown


def _kill_one(directory: Path, log: Path, dice: random.Random) -> bool:
    """Let a process write and kill it; tell whether it was killed before it came to its end."""
    by_line, seed = dice.random() < 0.5, dice.randrange(2**32)
    line, life = int(LINES * dice.random() ** 3), LONGEST_LIFE * dice.random() ** 2
    child = os.fork()
    if child == 0:
        _write_and_exit(directory, log, seed, line if by_line else None)
    if not by_line:
        time.sleep(life)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the writer failed: status {status}, seed {seed}"
    return os.WIFSIGNALED(status)


def _write_and_exit(directory: Path, log: Path, seed: int, line: int | None) -> None:
    """Be the writer. A forked process must not come back, whatever happens."""
    status = 1
    try:
        if line is not None:
            die_at_line(line)
        Writer(directory, log, seed).run()
        status = 0
    except BaseException as error:
        print(f"writer: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        raise
    finally:
        os._exit(status)


def check(directory: Path, log: Path) -> bool:
    """Check that a directory opens with what its log says, and return whether it holds a block.

    Raises:
        AssertionError: If it does not.
    """
    lines = list(log_lines(log))
    if not lines:
        # Killed before it was created, or right after.
        open_or_create(directory).close()
        return False
    # A ``try`` that somebody opened the chain after has happened if the ``done`` of that opening says so.
    done = [line for line in lines if line.word == "done"]
    allowed = [_holdings(done)]
    if lines[-1].word == "try":
        allowed.append(_holdings([*done, lines[-1]]))
    with DiskStore.open(directory, settings=SETTINGS) as store:
        assert store.genesis == GENESIS
        store.check_invariants()
        records = list(store.records(0))
        found = store.height, [height for height, _ in records]
        fitting = [roots for height, roots, recorded in allowed if (height, recorded) == found]
        assert fitting, f"{found} is none of {[(height, recorded) for height, _, recorded in allowed]}"
        roots = fitting[-1]
        assert roots.get(store.height, "-") in ("-", store.state_root.hex()), f"block {store.height} has another root"
        assert all(record == record_of(height, bytes.fromhex(roots[height])) for height, record in records)
        return store.height >= 0


def _holdings(lines: list[Line]) -> tuple[int, dict[int, str], list[int]]:
    """Return what a log ends with: the height, the roots that are known, and the heights that have a record."""
    roots: dict[int, str] = {}
    recorded: list[int] = []
    for line in lines:
        known = roots.get(line.height, "-") if line.root == "-" else line.root
        roots = {height: root for height, root in roots.items() if height < line.height} | {line.height: known}
        again = line.recorded or line.height in recorded
        recorded = [height for height in recorded if height < line.height] + [line.height] * again
    return lines[-1].height, roots, recorded


def main() -> None:
    """Read the command line and kill."""
    parser = argparse.ArgumentParser(
        description="Kill a writing process at random instants, and look at what it leaves."
    )
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        killed, grown = run(options.kills, options.seed, Path(base))
    print(f"{options.kills} writers, {killed} killed at work: every reopen was right, {grown} of them with blocks")


if __name__ == "__main__":
    main()
