"""Kill a chain at any instruction, over and over, and look at what is left.

A trunk of random blocks (transfers, deployments, calls, timers of every fate, fee and configuration changes) is built
once in memory, beside the slow model, and the hash of each of its blocks is noted. Then a child process builds the
same trunk on disk: a block at a time, idle stretches in one go, with other branches in between that a reorganization
drops, and with the store closed and opened again. What it has done it acknowledges in a file. The parent kills it with
SIGKILL after a random time, opens the chain and compares: the head must be what was acknowledged last, or what the
child was about to do; on the trunk its hash must be the trunk's, and the state root that the store recomputes from its
flat tables must be the header's.

    python -m tests.faults.chain_crash --kills 2000
"""

import argparse
import os
import random
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.model.histories import history, seeded
from tests.model.lane_histories import lane_history
from tests.model.session import Session
from trailboss.chain import Chain
from trailboss.execution.genesis import Genesis
from trailboss.model.transactions import Transaction
from trailboss.state.disk.store import StoreSettings
from trailboss.vm.engine import Engine

SETTINGS: Final = StoreSettings(flush_interval=8, kept_journal=40, unflushed_values=3, map_size=1 << 16)
"""Small numbers, so that every kill has flushes, prunings and a growing map near it."""
TRUNK_BLOCKS: Final = 90
"""Entries of the random history; with its idle stretches some hundred blocks."""
KILLS_EACH: Final = 25
"""Kills of one directory before another one, with another trunk, takes its place."""
LONGEST_SECONDS: Final = 0.25
REORG_MAX: Final = 12
BRANCH_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Trunk:
    """A chain that is known beforehand.

    Attributes:
        genesis: What it starts from.
        engine: What runs its actors.
        blocks: Transactions of each block; block 0 has none.
        hashes: Hash of each block.
    """

    genesis: Genesis
    engine: Engine
    blocks: list[tuple[Transaction, ...]]
    hashes: list[bytes]

    def is_idle(self, height: int) -> bool:
        """Return whether a block of the trunk has no transactions."""
        return not self.blocks[height]


def build_trunk(seed: int) -> Trunk:
    """Build a trunk in memory, under FIFO or across the activation of the lane, compared with the slow model."""
    made_by = lane_history if seed % 2 else history
    random_history = made_by(seeded(seed), blocks_max=TRUNK_BLOCKS)
    session = Session(random_history)
    session.play(random_history.blocks)
    made = list(session.chain.blocks)
    return Trunk(
        session.chain.genesis,
        session.chain.engine,
        [block.transactions for block in made],
        [bytes(block.hash) for block in made],
    )


# The child


class Writer:
    """Builds the trunk in a directory until it is killed; tells before and after every step what it does."""

    def __init__(self, trunk: Trunk, directory: Path, log: Path, seed: int) -> None:
        self.trunk = trunk
        self.directory = directory
        self.dice = random.Random(seed)
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.chain = open_or_create(trunk, directory)

    def run(self) -> None:
        """Go on for ever; at the trunk's end go back to somewhere."""
        while True:
            self.step()

    def step(self) -> None:
        """Do one thing, and acknowledge it."""
        chance = self.dice.random()
        if chance < 0.04:
            self.chain.close()
            self.chain = open_or_create(self.trunk, self.directory)
        elif chance < 0.12:
            self.branch()
        elif self.chain.height + 1 >= len(self.trunk.blocks):
            self.reorg(self.deepest())
        else:
            self.grow()

    def grow(self) -> None:
        """Build the next block of the trunk, or the idle stretch that begins there."""
        first = self.chain.height + 1
        last = first
        while last + 1 < len(self.trunk.blocks) and self.trunk.is_idle(first) and self.trunk.is_idle(last + 1):
            last += 1
        if self.trunk.is_idle(first):
            last = self.dice.randint(first, last)
            self.tell("try", last)
            for _ in self.chain.advance_to(last):
                pass
        else:
            self.tell("try", first)
            self.chain.build(self.trunk.blocks[first])
        self.tell("done", self.chain.height)

    def branch(self) -> None:
        """Take another branch for some blocks, and leave it again."""
        fork = self.chain.height
        deepest = self.deepest()
        if deepest == 0 or fork + 1 >= len(self.trunk.blocks):
            return
        self.reorg(self.dice.randint(1, deepest))
        for _ in range(self.dice.randint(0, BRANCH_MAX)):
            self.tell("branch", self.chain.height + 1)
            # Another time makes it another block, whatever it holds.
            self.chain.build(timestamp_ms=self.chain.head.header.timestamp_ms + 1)
            self.tell("branched", self.chain.height)
        off_trunk = self.chain.height - fork_height(self.trunk, self.chain)
        if off_trunk:
            self.reorg(off_trunk)

    def deepest(self) -> int:
        """Return the most blocks to drop: a reorganization after another may have come to the end of the journal."""
        floor = self.chain.store.floor
        return min(REORG_MAX, self.chain.height - max(floor, 0))

    def reorg(self, depth: int) -> None:
        """Drop blocks."""
        height = self.chain.height - depth
        self.tell("reorg", height, self.chain.blocks[height].hash)
        self.chain.reorg(depth)
        self.tell("done", self.chain.height)

    def tell(self, what: str, height: int, aim: bytes = b"\x00") -> None:
        """Write one line, and make it durable: what is done next or has been done, the head now, the head to be."""
        os.write(self.log, f"{what} {height} {self.chain.head.hash.hex()} {aim.hex()}\n".encode())
        os.fsync(self.log)


def open_or_create(trunk: Trunk, directory: Path) -> Chain:
    """Open the chain in a directory; if it holds none yet, start it."""
    if (directory / "chain.mdb").exists():
        return Chain.open(directory, trunk.engine, settings=SETTINGS)
    return Chain.create(directory, trunk.genesis, trunk.engine, settings=SETTINGS)


# The parent


@dataclass(slots=True)
class Outcomes:
    """What the kills met.

    Attributes:
        kills: How many.
        acknowledged: Chains that stood at what was acknowledged last.
        ahead: Chains in which the step that was interrupted had become durable.
        blocks: Blocks that were checked in all.
        steps: Kills by what was going on.
    """

    kills: int = 0
    acknowledged: int = 0
    ahead: int = 0
    blocks: int = 0
    steps: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        steps = ", ".join(f"{count} during {step}" for step, count in sorted(self.steps.items()))
        return (
            f"{self.kills} kills: {self.acknowledged} reopened at the last acknowledged block, {self.ahead} one step "
            f"beyond; {self.blocks} blocks acknowledged; {steps}"
        )


def crash(kills: int, seed: int, told: Callable[[Outcomes], None] = lambda _: None) -> Outcomes:
    """Kill so often; raise AssertionError at the first chain that is not what it should be."""
    outcomes = Outcomes()
    dice = random.Random(seed)
    while outcomes.kills < kills:
        trunk = build_trunk(dice.randrange(1 << 30))
        with tempfile.TemporaryDirectory() as folder:
            directory, log = Path(folder, "chain"), Path(folder, "log")
            head = trunk.hashes[0]
            for _ in range(min(KILLS_EACH, kills - outcomes.kills)):
                kill_once(trunk, directory, log, dice)
                head = check(trunk, directory, log, head, outcomes)
                outcomes.kills += 1
            with Chain.open(directory, trunk.engine, settings=SETTINGS) as chain:
                chain.check_invariants()
        told(outcomes)
    return outcomes


def kill_once(trunk: Trunk, directory: Path, log: Path, dice: random.Random) -> None:
    """Let a child write for a random time, and kill it."""
    seed, seconds = dice.randrange(1 << 30), dice.random() * LONGEST_SECONDS
    started, start = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(started)
            os.write(start, b"x")
            Writer(trunk, directory, log, seed).run()
        finally:
            # Only a fault gets here; the parent sees that the child did not wait to be killed.
            traceback.print_exc()
            os._exit(1)
    os.close(start)
    os.read(started, 1)
    os.close(started)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer stopped by itself"


def check(trunk: Trunk, directory: Path, log: Path, before: bytes, outcomes: Outcomes) -> bytes:
    """Open what the kill left, compare it with what the child told, and return the hash of the head.

    Args:
        trunk: What the child was to build.
        directory: Where.
        log: What it told.
        before: Hash of the head that it began with.
        outcomes: What to count in.
    """
    lines = read_log(log)
    log.unlink(missing_ok=True)
    doing, height, told, aim = lines[-1] if lines else ("opening", 0, before, b"")
    outcomes.steps[doing] = outcomes.steps.get(doing, 0) + 1
    outcomes.blocks += sum(1 for line in lines if line[0] in ("done", "branched"))
    chain = open_or_create(trunk, directory)
    try:
        found = bytes(chain.head.hash)
        assert chain.head.header.state_root == chain.state_root
        if found == told:
            outcomes.acknowledged += 1
        else:
            outcomes.ahead += 1
            match doing:
                case "try":
                    assert chain.height <= height, f"block {chain.height} was not even tried"
                    assert found == trunk.hashes[chain.height], f"block {chain.height} is not the trunk's"
                    assert told in (bytes(block.hash) for block in chain.blocks), "an acknowledged block is gone"
                case "branch":
                    assert bytes(chain.head.header.parent) == told, "the branch does not start at its fork"
                case "reorg":
                    assert (chain.height, found) == (height, aim), "the reorganization stopped half way"
                case _:
                    raise AssertionError(f"block {height} was acknowledged and is gone: {doing}, now {chain.height}")
        off_trunk = chain.height - fork_height(trunk, chain)
        if off_trunk:
            chain.reorg(off_trunk)
        assert chain.state_root == chain.head.header.state_root
        return bytes(chain.head.hash)
    finally:
        chain.close()


def fork_height(trunk: Trunk, chain: Chain) -> int:
    """Return the last height at which a chain is the trunk."""
    height = min(chain.height, len(trunk.hashes) - 1)
    while bytes(chain.blocks[height].hash) != trunk.hashes[height]:
        height -= 1
    return height


def read_log(log: Path) -> list[tuple[str, int, bytes, bytes]]:
    """Return the whole lines of the log."""
    text = log.read_text() if log.exists() else ""
    whole = text[: text.rfind("\n") + 1].splitlines()
    fields = (line.split() for line in whole)
    return [(what, int(height), bytes.fromhex(head), bytes.fromhex(aim)) for what, height, head, aim in fields]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(crash(options.kills, options.seed, print))


if __name__ == "__main__":
    main()
