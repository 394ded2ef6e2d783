"""Kill parts of a network under load, over and over, and look at what all of it has in the end.

Four validators with the real engine get signed transfers and timer schedules over HTTP, through whichever node answers.
Meanwhile one part after the other is killed with SIGKILL: the application of a node, its engine, both, or its engine at
one of the engine's own fail points, between any two of the steps in which it saves a block. In the end every chain must
be the same, hold every accepted transaction once and every fire once, and all money, and replay from genesis.

Then, each once: the disk of one node is full; the clock of one validator is a minute ahead; a validator's file of its
last vote is an old copy.

    python -m tests.faults.network_faults --kills 100 --seed 1
"""

import argparse
import errno
import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.faults.node_crash import BEACON, Sender
from tests.faults.node_process import NodeProcess
from tests.network.testnets import Testnet, Verdict
from trailboss.chain.development import account_name, development_account
from trailboss.crypto.digest import keccak256
from trailboss.model.transactions import (
    DeployActor,
    ExecuteActor,
    FundActor,
    Transaction,
    Transfer,
    derive_actor_address,
)
from trailboss.network.binary import VARIABLE, find_engine
from trailboss.network.halts import HALTED_STATUS, Halt
from trailboss.primitives.units import BASE_UNITS_PER_CBY

KILLS_EACH: Final = 25
"""Kills of one network before another takes its place."""
BLOCK_TIME_MS: Final = 200
SENDERS: Final = 8
AHEAD_MAX: Final = 32
"""Transactions of a sender that may wait: of more than 64 a mempool drops the last for one that comes before it."""
IDLE_SECONDS: Final = 0.02
FAIL_POINTS: Final = 11
"""Places in the engine's work on one block, the first ones, at which it ends itself."""
LOAD_SECONDS: Final = 0.6
"""Longest time between two kills."""
DOWN_SECONDS: Final = 1.0
"""Longest time for which an application stays dead."""
CALM_KILLS: Final = 5
"""Kills after which the network is let alone until all nodes are at one height."""
MEMORY: Final = Path("/dev/shm")
SMALL_DISK: Final = "48m"
CLOCK_SECONDS: Final = 60
APPLICATION, ENGINE, BOTH, FAIL_POINT = "application", "engine", "both", "fail point"
WRAPPER: Final = """#!/bin/sh
# The engine, which ends itself at the fail point that stands in a file beside its home, once.
if [ "$1" = start ] && [ -f "$3/../fail" ]; then
    FAIL_TEST_INDEX=$(cat "$3/../fail")
    export FAIL_TEST_INDEX
    rm "$3/../fail"
fi
exec {engine} "$@"
"""


@dataclass(slots=True)
class Outcomes:
    """What the kills met.

    Attributes:
        kills: By what was killed.
        verdicts: What each network had in the end.
        notes: What the other faults came to.
    """

    kills: Counter[str] = field(default_factory=Counter)
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kills.items()))
        lines = [f"{self.kills.total()} kills ({kinds})", *map(str, self.verdicts), *self.notes]
        return "\n".join(lines)


class Load:
    """Accounts that send through whichever node answers, until each transaction is accepted, once an actor is there."""

    def __init__(self, net: Testnet, dice: random.Random) -> None:
        self.net, self.dice = net, dice
        self.accounts = [development_account(account_name(index)) for index in range(SENDERS)]
        self.senders = [Sender(account.private_key) for account in self.accounts]
        self.used = [0] * SENDERS  # nonces that blocks have taken, at least
        self.beacon = derive_actor_address(self.accounts[0].address, b"", keccak256(BEACON))
        first = self.senders[0]
        deploy = first.next(DeployActor(BEACON, b""), 1_000_000, 10_000)
        fund = first.next(FundActor(self.beacon, 50_000 * BASE_UNITS_PER_CBY))
        assert net.submit(min(net.nodes), [deploy, fund]) == [True, True]
        # An actor that is called before it has money would lose its timers.
        net.wait_included()

    def send(self) -> None:
        """Send a transaction of each sender to a node; one that it does not accept is sent again, byte for byte.

        A sender waits while `AHEAD_MAX` of its transactions are in no block yet.
        """
        number = self.dice.choice(sorted(self.net.nodes))
        if any(sender.nonce >= self.used[at] + AHEAD_MAX for at, sender in enumerate(self.senders)):
            for at, account in enumerate(self.accounts):
                found = self.net.ask(number, f"/account/{account.address}")
                self.used[at] = max(self.used[at], 0 if found is None else int(found["nonce"]))
        ready = [sender for at, sender in enumerate(self.senders) if sender.nonce < self.used[at] + AHEAD_MAX]
        if not ready:
            time.sleep(IDLE_SECONDS)
            return
        batch = [self._transaction_of(sender) for sender in ready]
        for sender, is_taken in zip(ready, self.net.submit(number, batch), strict=True):
            if is_taken:
                sender.unanswered.pop(0)

    def send_for(self, seconds: float) -> None:
        """Send for a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send()

    def _transaction_of(self, sender: Sender) -> Transaction:
        if not sender.unanswered:
            to = self.dice.choice(self.accounts).address
            if self.dice.random() < 0.2:
                payload = self.dice.randbytes(8)
                sender.unanswered.append(sender.next(ExecuteActor(self.beacon, "light", payload), 100_000, 10_000))
            else:
                sender.unanswered.append(sender.next(Transfer(to, self.dice.randrange(1, 1_000))))
        return sender.unanswered[0]


def kill_parts(kills: int, dice: random.Random, outcomes: Outcomes) -> None:
    """Kill parts of one network so often, and look at what it has in the end."""
    with network(engine=WRAPPER) as net:
        net.start()
        load, points = Load(net, dice), list(range(FAIL_POINTS))
        for done in range(kills):
            load.send_for(dice.uniform(0, LOAD_SECONDS))
            number = dice.choice(sorted(net.nodes))
            kind = dice.choice((APPLICATION, ENGINE, BOTH, FAIL_POINT))
            outcomes.kills[kind] += 1
            if kind == FAIL_POINT:
                point = points.pop(dice.randrange(len(points)))
                points = points or list(range(FAIL_POINTS))
                reach_fail_point(net, load, number, point)
            else:
                if kind in (ENGINE, BOTH):
                    net.kill_engine(number)
                if kind in (APPLICATION, BOTH):
                    net.kill(number)
                    load.send_for(dice.uniform(0, DOWN_SECONDS))
                    net.start(number)
            if (done + 1) % CALM_KILLS == 0:
                calm(net, load)
        calm(net, load)
        net.wait_included()
        outcomes.verdicts.append(net.verify())


def reach_fail_point(net: Testnet, load: Load, number: int, point: int) -> None:
    """Have the engine of a node end itself at a point of its work; its application lives on."""
    home = net.homes[number]
    # An engine that is only just starting may have read the file already when it is killed.
    net.wait(f"answer of the engine of node{number}", lambda: net.ask_engine(number, "/status"))
    before = home.engine_log.read_text(errors="replace").count(fail_words(point))
    (home.directory / "fail").write_text(str(point))
    net.kill_engine(number)

    def is_reached() -> bool:
        load.send()
        return home.engine_log.read_text(errors="replace").count(fail_words(point)) > before

    net.wait(f"end of the engine of node{number} at fail point {point}", is_reached)


def fail_words(point: int) -> str:
    """Return what an engine writes before it ends itself."""
    return f"*** fail-test {point} ***"


def calm(net: Testnet, load: Load) -> None:
    """Wait until all nodes agree on a block that is yet to come."""
    load.send()
    height = max(net.heights()) + 2
    net.wait_height(height)
    hashes = {number: net.block_at(number, height) for number in sorted(net.nodes)}
    assert len(set(hashes.values())) == 1, f"different blocks at height {height}: {hashes}"


def fill_disk(dice: random.Random, outcomes: Outcomes) -> None:
    """Fill the disk of one node: it stops and says why, the others go on, and with room it comes back whole."""
    if os.geteuid() != 0:
        outcomes.notes.append("full disk: not done, for a small disk needs root")
        return
    with network() as net:
        home = net.homes[3]
        kept = net.directory / "kept"
        shutil.move(home.directory, kept)
        home.directory.mkdir(0o700)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK},mode=700", "tmpfs", home.directory], check=True
        )
        try:
            shutil.copytree(kept, home.directory, dirs_exist_ok=True)
            net.start()
            net.wait_height(3)
            load = Load(net, dice)
            filler = home.directory / "filler"
            with filler.open("wb", buffering=0) as file, suppress_full():
                while True:
                    file.write(bytes(4_096))
            status = wait_end(net, 3, load)
            said = last_error(home.node_log.read_text(errors="replace"))
            # If there was no room even for its last words, they are not there.
            assert status == HALTED_STATUS, net.words(3)
            assert not said or said.startswith(Halt.STORAGE.slug), said
            calm(net, load)
            filler.unlink()
            net.start(3)
            calm(net, load)
            net.wait_included()
            outcomes.verdicts.append(net.verify())
            outcomes.notes.append(f"full disk: the node ended with {status} ({said[:200]}), and came back")
        finally:
            net.close()
            subprocess.run(["umount", "--lazy", home.directory], check=True)


def restore_old_vote(dice: random.Random, outcomes: Outcomes) -> None:
    """Put an old copy of a validator's last vote back, then none: it does not start, and starts with its own."""
    with network() as net:
        net.start()
        home, load = net.homes[2], Load(net, dice)
        net.wait_height(2)
        old = home.vote_file.read_bytes()
        net.wait_height(12)
        calm(net, load)
        net.kill(2)
        own = home.vote_file.read_bytes()
        for stated in (old, b"", None):
            home.vote_file.unlink()
            if stated is not None:
                home.vote_file.write_bytes(stated)
            node = NodeProcess("node", "--network", str(home.directory), "--log", "json", log=home.node_log)
            status = node.wait()
            assert (node.is_ready, status) == (False, HALTED_STATUS), net.words(2)
            assert Halt.VALIDATOR_STATE_LOST.slug in last_error(home.node_log.read_text()), net.words(2)
            if stated is None:
                home.vote_file.touch()
        home.vote_file.write_bytes(own)
        net.start(2)
        calm(net, load)
        net.wait_included()
        outcomes.verdicts.append(net.verify())
        outcomes.notes.append(
            "old, empty and missing file of the last vote: refused by name; with its own it came back"
        )


def shift_clock(dice: random.Random, outcomes: Outcomes) -> None:
    """Run one validator on a clock that is a minute ahead: the network goes on, on the time of the others."""
    with TemporaryDirectory(prefix="tb") as folder:
        program = engine_with_clock(Path(folder), CLOCK_SECONDS)
        if program is None:
            outcomes.notes.append("clock a minute ahead: not done, for that engine is built with Go")
            return
        with network() as net:
            net.start(0, 1, 2)
            with engine_named(program):
                net.start(3)
            load = Load(net, dice)
            net.wait_height(3)
            load.send_for(2)
            calm(net, load)
            calm(net, load)
            net.wait_included()
            header = net.ask(0, "/block/latest?limit=1")["header"]
            ahead = header["timestamp_ms"] / 1_000 - time.time()
            assert ahead < CLOCK_SECONDS / 2, f"the network's time is {ahead:.1f} s ahead"
            proposers = {net.ask(0, f"/block/{height}?limit=1")["header"]["proposer"] for height in range(3, 12)}
            outcomes.verdicts.append(net.verify())
            outcomes.notes.append(
                f"clock a minute ahead: {len(proposers)} validators have proposed, time is {ahead:+.1f} s off ours"
            )


def engine_with_clock(folder: Path, seconds: int) -> Path | None:
    """Build the engine with a clock that is so far ahead; None where that cannot be done."""
    go = shutil.which("go")
    if go is None:
        return None
    release = subprocess.run([find_engine(), "version"], capture_output=True, text=True, check=True).stdout.strip()
    module = f"github.com/cometbft/cometbft@v{release}"
    found = subprocess.run([go, "mod", "download", "-json", module], capture_output=True, text=True, check=True)
    source = folder / "source"
    shutil.copytree(json.loads(found.stdout)["Dir"], source, copy_function=shutil.copy)
    for each in (source, *source.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    clock = source / "types/time/time.go"
    text = clock.read_text()
    assert text.count("Canonical(time.Now())") == 1, "the engine reads its clock in another way"
    clock.write_text(text.replace("time.Now()", f"time.Now().Add({seconds} * time.Second)"))
    program = folder / "cometbft"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-trimpath -mod=mod"}
    subprocess.run([go, "build", "-o", program, "./cmd/cometbft"], cwd=source, env=environment, check=True)
    shutil.rmtree(source)
    return program


@contextmanager
def network(engine: str = "") -> Iterator[Testnet]:
    """Make the homes of a network in memory; its engine is the real one, or a script around it."""
    with TemporaryDirectory(prefix="tb", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        net = Testnet.create(Path(folder, "net"), block_time_ms=BLOCK_TIME_MS)
        script = Path(folder, "engine")
        if engine:
            script.write_text(engine.format(engine=find_engine()))
            script.chmod(0o700)
        try:
            with engine_named(script if engine else find_engine()):
                yield net
        finally:
            net.close()


@contextmanager
def engine_named(program: Path) -> Iterator[None]:
    """Have nodes that are started meanwhile run another engine."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(program)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


@contextmanager
def suppress_full() -> Iterator[None]:
    """Go on when a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def wait_end(net: Testnet, number: int, load: Load) -> int:
    """Wait until a node ends by itself, under load, and return its status."""
    node = net.nodes.pop(number)

    def ended() -> bool:
        load.send()
        return os.waitid(os.P_PID, node.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    net.wait(f"end of node{number}", ended)
    return node.wait()


def last_error(log: str) -> str:
    """Return what the last error of a node's log says."""
    errors = [json.loads(line) for line in log.splitlines() if '"level":"error"' in line]
    return str(errors[-1].get("what", errors[-1]["event"])) if errors else ""


def fail_network(kills: int, seed: int, told: Callable[[str], None] = lambda _: None) -> Outcomes:
    """Kill so often, then do the other faults; raise AssertionError at the first network that has lost something."""
    outcomes, dice = Outcomes(), random.Random(seed)
    while outcomes.kills.total() < kills:
        kill_parts(min(KILLS_EACH, kills - outcomes.kills.total()), dice, outcomes)
        told(str(outcomes))
    for fault in (restore_old_vote, fill_disk, shift_clock):
        fault(dice, outcomes)
        told(outcomes.notes[-1])
    return outcomes


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(fail_network(options.kills, options.seed, lambda text: print(text, flush=True)))


if __name__ == "__main__":
    main()
