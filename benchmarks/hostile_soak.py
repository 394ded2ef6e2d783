"""A soak of a node for strangers: 50 hostile programs a block beside honest timers and transfers.

The node is ``trailboss dev --vm sandbox`` with blocks of a second. Programs of `tests.hostile` are deployed first; then
five strangers send 50 calls a block, each at the default limit of a fire, beside 20 clocks of the public SDK, two
payers with three transfers a second each, a reader and a listener. One payer offers what the strangers offer, the other
a tip. A block runs the calls that half of its second has time for; a stranger may have 64 waiting beyond that.

    python -m benchmarks.hostile_soak --minutes 10

The status is 1 if a block came more than half a second late, an honest timer is lost or overdue, a payer waits for
good, or memory goes on growing.
"""

import asyncio
import json
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Final

from msgspec import Struct

from benchmarks.load import get, post
from benchmarks.soak import MEGABYTE, MINUTE, TRANSFER_SECONDS, Soaked, number_of, running, sign
from tests.hostile.corpus import all_programs
from tests.hostile.program import HostileProgram
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import draft_deployment
from trailboss.codec.wire import encode_submission
from trailboss.model.transactions import ExecuteActor, Instruction, Transaction, Transfer
from trailboss.params import load_params
from trailboss.primitives.octets import Address

STRANGERS: Final = range(4, 9)  # of the development accounts; the lower ones are honest
A_BLOCK: Final = 50
CYCLES: Final = load_params("mainnet").timers.max_cycles_per_fire
PARAMS: Final = (
    # Room for 50 calls at the limit of a fire and the honest load, at a price that does not rise.
    f"limits.block_cycles_max={(A_BLOCK + 10) * CYCLES}",
    "fees.max_basefee=10000",
)
LATE_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.1
OVERDUE_MAX: Final = 10  # blocks that a timer may be behind its height
PAYERS: Final = {2: 0, 3: 1}  # base units of the tip a cycle, by development account
WAITING_MAX: Final = 4  # deployments that wait for a block
SAMPLES: Final = 12
COLUMNS: Final = (
    "minute",
    "blocks",
    "cut short",
    "calls sent",
    "refused",
    "transactions a block",
    "late on average, ms",
    "blocks > 0.5 s late",
    "private MB",
    "nameless MB",
)
GROWTH_MAX: Final = 64 * MEGABYTE  # of memory between the middle and the end
BLOCK_BYTES: Final = 512  # of which `stat` counts


class Target(Struct, frozen=True):
    """A deployed hostile program."""

    actor: Address
    program: HostileProgram


class Attack:
    """The strangers, and what they have deployed."""

    def __init__(self, node: Soaked) -> None:
        self.node = node
        self.accounts = [development_account(account_name(index)) for index in STRANGERS]
        self.nonces = [0] * len(self.accounts)
        self.targets: list[Target] = []
        self.sent = self.taken = 0

    async def deploy(self, programs: list[HostileProgram]) -> None:
        """Deploy programs; those that the chain refuses are not called."""
        owner = self.accounts[0]
        for program in programs:
            # A sender may have so many waiting, and a block of many deployments would be late by itself.
            while await _nonce(self.node, owner.address) + WAITING_MAX < self.nonces[0]:
                await asyncio.sleep(POLL_SECONDS)
            code = program.source.encode(errors="surrogatepass")
            deployment, address = draft_deployment(owner.address, code, program.name.encode())
            signed = [sign(deployment, owner, self.nonces[0])]
            with suppress(RuntimeError):  # The node refuses it.
                self.nonces[0] += await _submit(self.node, signed)
                self.targets.append(Target(address, program))
        while await _nonce(self.node, owner.address) < self.nonces[0]:
            await asyncio.sleep(POLL_SECONDS)
        self.targets = [each for each in self.targets if await _is_actor(self.node, each.actor)]

    async def go_on(self) -> None:
        """Call the next programs for every block."""
        targets = cycle(self.targets)
        each = A_BLOCK // len(self.accounts)
        height = -1
        while True:
            while (now := await _height(self.node)) == height:
                await asyncio.sleep(POLL_SECONDS)
            height = now
            for index, account in enumerate(self.accounts):
                nonce = self.nonces[index]
                calls = (_call(target) for target in islice(targets, each))
                signed = [sign(call, account, nonce + at, CYCLES) for at, call in enumerate(calls)]
                self.sent += each
                # Unless all are refused, since the node has not yet come to those before them.
                with suppress(RuntimeError):
                    taken = await _submit(self.node, signed)
                    self.taken += taken
                    self.nonces[index] += taken


class Payer:
    """An honest account that sends money, and how long each transfer has waited for its block."""

    def __init__(self, node: Soaked, index: int, tip: int) -> None:
        self.node, self.tip = node, tip
        self.account = development_account(account_name(index))
        self.sent: list[float] = []  # when, by nonce
        self.waits: list[float] = []  # seconds, by nonce

    async def go_on(self) -> None:
        """Send money, three times a second."""
        receiver = development_account(account_name(1)).address
        while True:
            signed = sign(Transfer(receiver, 1), self.account, len(self.sent), tip=self.tip)
            with suppress(RuntimeError):  # As many wait as one account may have.
                await _submit(self.node, [signed])
                self.sent.append(perf_counter())
            await asyncio.sleep(TRANSFER_SECONDS)
            nonce, now = await _nonce(self.node, self.account.address), perf_counter()
            self.waits += [now - began for began in self.sent[len(self.waits) : nonce]]

    def words(self) -> str:
        """Return how long its transfers have waited."""
        waits = f"waited {mean(self.waits):.1f} s on average, {max(self.waits):.1f} s at most" if self.waits else ""
        return f"{len(self.sent)} transfers with a tip of {self.tip}, {len(self.waits)} in blocks, {waits}"


def _call(target: Target) -> Instruction:
    return ExecuteActor(target.actor, target.program.handler, target.program.payload)


async def _answer(node: Soaked, path: str) -> bytes:
    return await _ask(node, get(path))


async def _height(node: Soaked) -> int:
    return int(json.loads(await _answer(node, "/height"))["height"])


async def _submit(node: Soaked, signed: list[Transaction]) -> int:
    """Submit transactions; return how many were taken. `RuntimeError` if none was."""
    answer = json.loads(await _ask(node, post("/submit", encode_submission(signed))))
    return sum(result["error"] is None for result in answer["results"])


async def _ask(node: Soaked, request: bytes) -> bytes:
    """Ask over a connection of its own, because a node hangs up on one that rests."""
    async with node.connected() as connection:
        return await connection.ask(request)


async def _nonce(node: Soaked, address: Address) -> int:
    return int(json.loads(await _answer(node, f"/account/{address}"))["nonce"])


async def _is_actor(node: Soaked, address: Address) -> bool:
    try:
        await _answer(node, f"/account/{address}")
    except RuntimeError:  # There is no such account.
        return False
    return True


async def _clocks(node: Soaked) -> list[str]:
    """Return the actors that have timers; before the attack these are the clocks."""
    timers = json.loads(await _answer(node, "/timers?limit=100"))["timers"]
    return sorted({timer["actor"] for timer in timers})


class Counts(Struct, frozen=True):
    """What the node has counted.

    Attributes:
        blocks: Of the clock.
        seconds: What they were late in all.
        late: Those that were later than `LATE_SECONDS`.
        cut: Those that left transactions waiting.
        transactions: In blocks.
    """

    blocks: int
    seconds: float
    late: int
    cut: int
    transactions: int


async def _counts(node: Soaked) -> Counts:
    text = (await _answer(node, "/metrics")).decode()
    name = "trailboss_block_late_seconds"
    blocks = number_of(f"{name}_count", text)
    found = re.search(rf"^{name}_sum (\S+)$", text, re.MULTILINE)
    return Counts(
        blocks=blocks,
        seconds=0.0 if found is None else float(found[1]),
        late=blocks - number_of(rf'{name}_bucket{{le="{LATE_SECONDS}"}}', text),
        cut=number_of("trailboss_blocks_cut_total", text),
        transactions=sum(
            number_of(rf'trailboss_transactions_total{{status="{status}"}}', text) for status in ("ok", "reverted")
        ),
    )


def _nameless_bytes(pid: int) -> int:
    """Return the memory in files without a name: first states of actors, and the pages that machines put back."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # It has been closed.
            found += link.stat().st_blocks * BLOCK_BYTES if "memfd:" in os.readlink(link) else 0
    return found


async def soak(minutes: float, programs: list[HostileProgram], say: Callable[[str], None]) -> list[str]:
    """Put a node under attack, and return what speaks against it, in words."""
    options = [part for each in PARAMS for part in ("--param", each)]
    async with running("strangers", "--vm", "sandbox", "--block-time", "1s", *options) as node:
        await node.deploy()
        attack, payers = Attack(node), [Payer(node, *each) for each in PAYERS.items()]
        clocks = await _clocks(node)
        before, began = await _counts(node), perf_counter()
        await attack.deploy(programs)
        start, seconds = await _counts(node), perf_counter() - began
        say(f"{len(attack.targets)} of {len(programs)} programs deployed in {seconds:.0f} s, {len(clocks)} clocks")
        say(f"{start.late - before.late} of {start.blocks - before.blocks} blocks with deployments were late\n")
        say(f"| {' | '.join(COLUMNS)} |")
        say(f"|{' ---: |' * len(COLUMNS)}")
        work = [attack.go_on, *(payer.go_on for payer in payers), node.listen, node.poll]
        tasks = [asyncio.ensure_future(each()) for each in work]
        last, began, memory = start, perf_counter(), list[int]()
        try:
            for at in range(SAMPLES + 1):
                pause = began + at * minutes * MINUTE / SAMPLES - perf_counter()
                ended, _ = await asyncio.wait(tasks, timeout=max(pause, 0), return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    task.result()
                now, sample = await _counts(node), await node.sample(perf_counter() - began)
                blocks, nameless = max(now.blocks - last.blocks, 1), _nameless_bytes(node.pid)
                memory.append(sample.private + nameless)
                cells = (
                    f"{sample.seconds / MINUTE:.1f}",
                    now.blocks - start.blocks,
                    now.cut - start.cut,
                    attack.sent,
                    attack.sent - attack.taken,
                    f"{(now.transactions - last.transactions) / blocks:.0f}",
                    f"{1_000 * (now.seconds - last.seconds) / blocks:.0f}",
                    now.late - start.late,
                    sample.private // MEGABYTE,
                    nameless // MEGABYTE,
                )
                say(f"| {' | '.join(map(str, cells))} |")
                last = now
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        say("\n" + "\n".join(payer.words() for payer in payers))
        lost = [actor for actor in clocks if not await _ticks(node, actor)]
        return _faults(last.late - start.late, lost, payers, memory)


async def _ticks(node: Soaked, actor: str) -> bool:
    """Return whether a clock has one timer, which is not overdue."""
    height = await _height(node)
    timers = json.loads(await _answer(node, f"/timers?actor={actor}&limit=10"))["timers"]
    return len(timers) == 1 and timers[0]["height"] > height - OVERDUE_MAX


def _faults(late: int, lost: list[str], payers: list[Payer], memory: list[int]) -> list[str]:
    found = []
    if late:
        found.append(f"{late} blocks came more than {LATE_SECONDS} s late")
    if lost:
        found.append(f"the timers of {', '.join(lost)} are lost or overdue")
    found += [f"no transfer with a tip of {payer.tip} came into a block" for payer in payers if not payer.waits]
    growth = memory[-1] - memory[len(memory) // 2]
    if growth > GROWTH_MAX:
        found.append(f"memory grew by {growth // MEGABYTE} MB in the second half")
    return found


def main() -> int:
    """Soak a node, and print the table."""
    parser = ArgumentParser(prog="python -m benchmarks.hostile_soak", description="A node for strangers, attacked.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long (default 10)")
    parser.add_argument("--programs", type=int, default=0, help="hostile programs; 0 for all (default)")
    given = parser.parse_args()
    # Those that need other actors, or a frame that only reads, are attacks of the test suite alone.
    whole = [each for each in all_programs().values() if not each.others and not each.read_only]
    # In an order of no meaning, so that each block holds a mixture of all classes.
    whole.sort(key=lambda each: sha256(each.name.encode()).digest())
    chosen = whole[:: max(len(whole) // given.programs, 1)][: given.programs] if given.programs else whole
    faults = asyncio.run(soak(given.minutes, chosen, lambda line: print(line, flush=True)))
    print(f"\nload average {', '.join(f'{each:.1f}' for each in os.getloadavg())} on {os.cpu_count()} processors")
    for each in faults:
        print(each)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
