"""A process killed at any moment loses nothing that was acknowledged, and brings back nothing that had ended."""

import os
import random
import signal
import time
from pathlib import Path

from tests.unit.mempool.world import BASEFEE, World, name_of, person, transfer
from trailboss.mempool import AdmissionStatus, Journal, Mempool, journal

KILLS = 15
LONGEST_SECONDS = 0.2
SENDERS, NONCES = 8, 30
OFFER_MAX = 8


class Worker:
    """Brings and settles transactions for ever; says before each step what it does, and then that it is done."""

    def __init__(self, world: World, path: Path, log: Path, seed: int) -> None:
        """Go on with a journal, and a log of its own."""
        journal.WASTE_MIN = 3_000
        self.dice = random.Random(seed)
        self.notes = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.world = World(Mempool(journal=Journal.open(path, world.chain.genesis.instance_id())), world.chain)
        self.world.mempool.recover(self.world.view)

    def run(self, begun: int) -> None:
        """Go on until killed; say when the first steps are done."""
        for _ in range(NONCES):
            self.bring_one()
        os.write(begun, b".")
        while True:
            if self.dice.random() < 0.15:
                self.end_some()
            else:
                self.bring_one()

    def bring_one(self) -> None:
        """Bring a transaction to a free nonce, or for the place of one that offers less."""
        sender, nonce = self.dice.randrange(SENDERS), self.dice.randrange(NONCES)
        present = [
            pooled for pooled in self.world.mempool.of_sender(person(sender)) if pooled.transaction.nonce == nonce
        ]
        factor = present[0].transaction.max_priority_fee_per_cycle * 2 if present else 1
        if factor > OFFER_MAX:
            return
        transaction = transfer(
            sender,
            nonce,
            max_priority_fee_per_cycle=factor,
            max_fee_per_cycle=factor * BASEFEE,
            max_fee_per_cell=factor * BASEFEE,
        )
        self.note("step", "+" + name_of(transaction).hex(), *("-" + pooled.hash.hex() for pooled in present))
        assert self.world.add(transaction).status is (AdmissionStatus.REPLACED if present else AdmissionStatus.ACCEPTED)
        self.note("done")

    def end_some(self) -> None:
        """Say that some are in a block."""
        waiting = self.world.waiting()
        ended = self.dice.sample(waiting, min(len(waiting), self.dice.randrange(1, 30)))
        self.note("step", *("-" + name.hex() for name in ended))
        self.world.mempool.settle(self.world.view, ended, {})
        self.note("done")

    def note(self, *words: str) -> None:
        """Write a line."""
        os.write(self.notes, " ".join(words).encode() + b"\n")


def live_and_die(world: World, path: Path, log: Path, dice: random.Random) -> None:
    """Let a process work, and kill it after a while."""
    seed, life = dice.randrange(2**32), LONGEST_SECONDS * dice.random()
    heard, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Worker(world, path, log, seed).run(begun)
        finally:
            os._exit(1)
    os.close(begun)
    assert os.read(heard, 1), f"the worker failed to begin, seed {seed}"
    os.close(heard)
    time.sleep(life)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the worker failed: status {status}, seed {seed}"


def possible(log: Path, before: frozenset[bytes]) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Return what waits by the log, without and with the step that was not done."""
    sure = after = before
    for line in log.read_text().splitlines():
        if line == "done":
            sure = after
        elif line.startswith("step"):
            words = line.split()[1:]
            came = {bytes.fromhex(word[1:]) for word in words if word[0] == "+"}
            went = {bytes.fromhex(word[1:]) for word in words if word[0] == "-"}
            after = (sure | came) - went
    return sure, after


def test_journal_has_what_was_acknowledged_when_the_process_is_killed(tmp_path: Path) -> None:
    """At any moment, over and over, while transactions come, go, and the file is written anew."""
    dice, world = random.Random(7), World()
    path, log = tmp_path / "mempool.journal", tmp_path / "log"
    waiting: frozenset[bytes] = frozenset()
    most = 0
    for _ in range(KILLS):
        log.unlink(missing_ok=True)
        live_and_die(world, path, log, dice)
        store = Journal.open(path, world.chain.genesis.instance_id())
        store.close()
        found, _, damage = store.take_found()
        waiting, expected = frozenset(found), possible(log, waiting)
        assert waiting in expected
        assert damage is None or expected[0] != expected[1]
        most = max(most, len(waiting))
    assert most
