"""Kill a node under load, over and over, and look at what it has kept.

A node runs as `trailboss dev --chain` on a free port, and gets signed transfers and timer schedules over HTTP as fast
as it takes them. What it acknowledges is noted: transactions that it has accepted, and receipts that it has shown. At a
random time, the start of the node included, it is killed with SIGKILL; sometimes it is asked to end instead, and must
do so with status 0. Then it is started again on the same directory, and every transaction that it has ever accepted
must be in a block or wait in the mempool, and every receipt must be what it was. What had not been acknowledged is
sent again, byte for byte. In the end the chain is opened, replayed from genesis and compared, block by block.

The node is forked from this process, which has imported all of it: so a kill takes half a second, and most of that is
load.

    python -m tests.faults.node_crash --kills 100 --seed 1
"""

import argparse
import gc
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from tests.faults.node_process import OCTETS, NodeProcess
from trailboss.chain import Chain
from trailboss.chain.development import CHAIN_ID, account_name, development_account
from trailboss.chain.replay import verify_chain
from trailboss.codec.wire import encode_submission
from trailboss.crypto.digest import keccak256
from trailboss.model.blocks import Origin
from trailboss.model.transactions import (
    DeployActor,
    ExecuteActor,
    FundActor,
    Instruction,
    Transaction,
    Transfer,
    derive_actor_address,
    sign_transaction,
    transaction_hash,
)
from trailboss.primitives.units import BASE_UNITS_PER_CBY

KILLS_EACH: Final = 10
"""Kills of one directory before another takes its place."""
SENDERS: Final = 8
CHECK_SECONDS: Final = 0.05
LOAD_SECONDS: Final = 0.3
"""Longest life under load."""
START_SECONDS: Final = 0.2
"""How long a start may take before one has been measured."""
EARLY: Final = 0.15
"""Share of the kills that come while the node starts, and of those that come while it is asked for what it has."""
DURING_START: Final = "as it starts"
DURING_CHECK: Final = "as it is asked for what it has"
UNDER_LOAD: Final = "under load"
ASKED: Final = 0.1
"""Share of the ends that the node is asked for."""
LOOKED_AT: Final = 25
"""Receipts of earlier lives that are looked at again in each."""
NONCE_MISMATCH: Final = 1002
BEACON: Final = b"""
import pvm_host


def light(payload):
    for ahead in range(1, 4):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + ahead, payload, gas_limit=50_000)


def handle_timer(payload):
    pvm_host.set_state(payload, b"fired")
"""


@dataclass(slots=True)
class Outcomes:
    """What the kills met.

    Attributes:
        kills: How many.
        moments: Of them, by what was going on.
        transactions: Transactions that were accepted.
        receipts: Receipts that were shown.
        waiting: Accepted transactions that a restart found in the mempool.
        blocks: Blocks of all chains in the end.
        fires: Timers that fired in them.
    """

    kills: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    receipts: int = 0
    waiting: int = 0
    blocks: int = 0
    fires: int = 0

    def __str__(self) -> str:
        moments = ", ".join(f"{count} {moment}" for moment, count in sorted(self.moments.items()))
        return (
            f"{self.kills} kills ({moments}): {self.transactions} accepted transactions are all there, {self.waiting} "
            f"of them from the journal; {self.receipts} receipts are what they were; {self.blocks} blocks with "
            f"{self.fires} fires verify"
        )


@dataclass(slots=True)
class Sender:
    """An account that sends.

    Attributes:
        private_key: Its key.
        nonce: Of its next transaction.
        unanswered: Transactions of which nobody knows whether the node has them, by nonce.
    """

    private_key: bytes
    nonce: int = 0
    unanswered: list[Transaction] = field(default_factory=list)

    def next(self, instruction: Instruction, cycles: int = 10_000, cells: int = 500) -> Transaction:
        """Return the next transaction."""
        transaction = Transaction(
            chain_id=CHAIN_ID,
            nonce=self.nonce,
            instruction=instruction,
            cycles_limit=cycles,
            cells_limit=cells,
            max_fee_per_cycle=100_000,
            max_fee_per_cell=100_000,
        )
        self.nonce += 1
        return sign_transaction(transaction, self.private_key)


class Life:
    """One directory: what its nodes have acknowledged, and what is still to be sent."""

    def __init__(self, directory: Path, dice: random.Random, outcomes: Outcomes) -> None:
        self.directory = directory
        self.log_file = directory.with_suffix(".log")
        self.dice = dice
        self.outcomes = outcomes
        self.accounts = [development_account(account_name(index)) for index in range(SENDERS)]
        self.senders = [Sender(account.private_key) for account in self.accounts]
        self.start_seconds = START_SECONDS
        self.accepted: dict[str, None] = {}
        self.receipts: dict[str, Any] = {}
        self.beacon = derive_actor_address(self.accounts[0].address, b"", keccak256(BEACON))
        first = self.senders[0]
        first.unanswered = [
            first.next(DeployActor(BEACON, b""), 1_000_000, 10_000),
            first.next(FundActor(self.beacon, 50_000 * BASE_UNITS_PER_CBY)),
        ]

    def run(self, kills: int) -> None:
        """Kill so often, then let the node end, and verify its chain."""
        while kills:
            kills -= self.once()
        node = self.start()
        self.check(node)
        assert node.end() == 0, "the node did not end well"
        self.verify()

    def once(self) -> bool:
        """Let a node live until it is killed, and return whether it was."""
        chance = self.dice.random()
        if chance < ASKED:
            node = self.start()
            self.check(node)
            for _ in range(5):
                self.send(node)
            assert node.end() == 0, "the node did not end well"
            return False
        if chance < ASKED + EARLY:
            node = self.start(self.dice.uniform(0, self.start_seconds))
            moment = DURING_START
        else:
            node = self.start()
            self.start_seconds = node.start_seconds
            moment = DURING_CHECK if chance < ASKED + 2 * EARLY else UNDER_LOAD
        self.live(node, moment)
        ended = node.wait()
        assert ended == -signal.SIGKILL, f"the node ended by itself, with {ended}: {self.log()}"
        self.outcomes.kills += 1
        self.outcomes.moments[moment] += 1
        return True

    def start(self, seconds: float | None = None) -> NodeProcess:
        """Start a node; it may be killed after a time, before it is ready or then."""
        place = ("--chain", str(self.directory), "--port", "0", "--no-explorer")
        return NodeProcess("dev", *place, "--block-time", "20ms", "--log", "json", log=self.log_file, seconds=seconds)

    def live(self, node: NodeProcess, moment: str) -> None:
        """Work with a node until it is killed.

        Args:
            node: The node.
            moment: What is to go on when it is killed.
        """
        if not node.is_ready:
            return
        with suppress(OSError, HTTPException):
            if moment == DURING_CHECK:
                node.kill_after(self.dice.uniform(0, CHECK_SECONDS))
            self.check(node)
            if moment != DURING_START:
                node.kill_after(self.dice.uniform(0, LOAD_SECONDS))
            while True:
                self.send(node)
                if self.dice.random() < ASKED:
                    self.look(node)

    def send(self, node: NodeProcess) -> None:
        """Send a transaction of each sender, and note which the node has accepted."""
        batch = [self.transaction_of(sender) for sender in self.senders]
        status, answer = node.ask("POST", "/submit", encode_submission(batch), OCTETS)
        assert status in (200, 400), answer
        assert "results" in answer, answer
        for sender, transaction, result in zip(self.senders, batch, answer["results"], strict=True):
            code = (result["error"] or {}).get("code")
            # A nonce that is used already: the one before has reached a block, and only its answer was lost.
            if result["status"] != "refused" or code == NONCE_MISMATCH:
                sender.unanswered.remove(transaction)
                self.accepted[f"0x{transaction_hash(transaction).hex()}"] = None
                self.outcomes.transactions += 1

    def transaction_of(self, sender: Sender) -> Transaction:
        """Return what a sender sends next: first what nobody has answered for."""
        if not sender.unanswered:
            to = self.dice.choice(self.accounts).address
            if self.dice.random() < 0.2:
                payload = self.dice.randbytes(8)
                sender.unanswered.append(sender.next(ExecuteActor(self.beacon, "light", payload), 100_000, 10_000))
            else:
                sender.unanswered.append(sender.next(Transfer(to, self.dice.randrange(1, 1_000))))
        return sender.unanswered[0]

    def look(self, node: NodeProcess) -> None:
        """Note the receipts of some accepted transactions, where there are any yet."""
        for name in self.dice.sample(list(self.accepted), min(3, len(self.accepted))):
            self.look_at(node, name)

    def look_at(self, node: NodeProcess, name: str) -> bool:
        """Note the receipt of an accepted transaction, and return whether a block holds it."""
        status, answer = node.ask("GET", f"/transaction/{name}/receipt")
        if status == 200:
            self.accepted.pop(name, None)
            self.receipts[name] = answer
            self.outcomes.receipts += 1
        return status == 200

    def check(self, node: NodeProcess) -> None:
        """Check that a node has all that was acknowledged."""
        for name in list(self.accepted):
            if not self.look_at(node, name):
                status, answer = node.ask("GET", f"/mempool/transaction/{name}")
                assert status == 200, f"accepted transaction {name} is gone: {answer}"
                assert answer["status"] in ("waiting", "included"), f"accepted transaction {name} is gone: {answer}"
                self.outcomes.waiting += answer["status"] == "waiting"
        for name in self.dice.sample(list(self.receipts), min(LOOKED_AT, len(self.receipts))):
            status, answer = node.ask("GET", f"/transaction/{name}/receipt")
            assert (status, answer) == (200, self.receipts[name]), f"the receipt of {name} has changed: {answer}"

    def verify(self) -> None:
        """Open the chain, replay it, and look for all that was acknowledged with a receipt."""
        with Chain.open(self.directory) as chain:
            chain.check_invariants()
            report = verify_chain(chain)
            assert report.ok, str(report)
            found = {
                f"0x{receipt.origin_hash.hex()}": block.height
                for block in chain.blocks.eventful()
                for receipt in block.receipts
                if receipt.origin is Origin.TRANSACTION
            }
            self.outcomes.blocks += report.blocks
            self.outcomes.fires += report.fires
        for name, receipt in self.receipts.items():
            assert found.get(name) == receipt["block_height"], f"the block of {name} is another one"

    def log(self) -> str:
        """Return the end of what the nodes of this directory have logged."""
        return "\n".join(self.log_file.read_text().splitlines()[-20:])


def crash(kills: int, seed: int, told: Callable[[Outcomes], None] = lambda _: None) -> Outcomes:
    """Kill so often; raise AssertionError at the first node that has lost something."""
    outcomes, dice = Outcomes(), random.Random(seed)
    # What is forked shares this process's memory, until the collector touches it.
    gc.freeze()
    while outcomes.kills < kills:
        with tempfile.TemporaryDirectory() as folder:
            life = Life(Path(folder, "chain"), dice, outcomes)
            life.run(min(KILLS_EACH, kills - outcomes.kills))
        told(outcomes)
    return outcomes


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(crash(options.kills, options.seed, print))


if __name__ == "__main__":
    main()
