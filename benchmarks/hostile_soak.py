"""A soak of a node for strangers: 50 hostile programs a block beside honest timers and transfers.

The node is ``trailboss dev --vm sandbox`` with blocks of a second. Programs of `tests.hostile` are deployed first; then
five strangers call 50 of them a block, each at the default limit of a fire, beside 20 clocks of the public SDK, three
transfers a second, a reader and a listener.

    python -m benchmarks.hostile_soak --minutes 10

The status is 1 if a block came more than half a second late, an honest timer is lost, or memory goes on growing.
"""

import asyncio
import json
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, islice
from time import perf_counter
from typing import Final

from msgspec import Struct

from benchmarks.load import get, post
from benchmarks.soak import MEGABYTE, MINUTE, Soaked, running, sign
from tests.hostile.corpus import all_programs
from tests.hostile.program import HostileProgram
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import draft_deployment
from trailboss.codec.wire import encode_submission
from trailboss.model.transactions import ExecuteActor, Instruction, Transaction
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
WAITING_MAX: Final = 4  # deployments that wait for a block
SAMPLES: Final = 12
GROWTH_MAX: Final = 64 * MEGABYTE  # of private memory between the middle and the end


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


class Lateness(Struct, frozen=True):
    """Blocks of the clock so far.

    Attributes:
        blocks: How many.
        seconds: What they were late in all.
        late: Those that were later than `LATE_SECONDS`.
    """

    blocks: int
    seconds: float
    late: int


async def _lateness(node: Soaked) -> Lateness:
    text = (await _answer(node, "/metrics")).decode()
    name = "trailboss_block_late_seconds"
    found = {key: float(value) for key, value in re.findall(rf"^{name}_(\S+) (\S+)$", text, re.MULTILINE)}
    blocks = int(found["count"])
    return Lateness(blocks, found["sum"], blocks - int(found[f'bucket{{le="{LATE_SECONDS}"}}']))


async def soak(minutes: float, programs: list[HostileProgram], say: Callable[[str], None]) -> list[str]:
    """Put a node under attack, and return what speaks against it, in words."""
    options = [part for each in PARAMS for part in ("--param", each)]
    async with running("strangers", "--vm", "sandbox", "--block-time", "1s", *options) as node:
        await node.deploy()
        attack = Attack(node)
        clocks = await _clocks(node)
        before = await _lateness(node)
        began = perf_counter()
        await attack.deploy(programs)
        start = await _lateness(node)
        seconds = perf_counter() - began
        say(f"{len(attack.targets)} of {len(programs)} programs deployed in {seconds:.0f} s, {len(clocks)} clocks")
        say(f"{start.late - before.late} of {start.blocks - before.blocks} blocks with deployments were late\n")
        say(
            "| minute | blocks | calls | refused | late on average, ms | blocks > 0.5 s late | private MB | mapped MB |"
        )
        say(f"|{' ---: |' * 8}")
        tasks = [asyncio.ensure_future(each()) for each in (attack.go_on, node.transfer, node.listen, node.poll)]
        last, began = start, perf_counter()
        try:
            for at in range(SAMPLES + 1):
                pause = began + at * minutes * MINUTE / SAMPLES - perf_counter()
                ended, _ = await asyncio.wait(tasks, timeout=max(pause, 0), return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    task.result()
                now, sample = await _lateness(node), await node.sample(perf_counter() - began)
                average = 1_000 * (now.seconds - last.seconds) / max(now.blocks - last.blocks, 1)
                cells = (
                    f"{sample.seconds / MINUTE:.1f}",
                    now.blocks - start.blocks,
                    attack.sent,
                    attack.sent - attack.taken,
                    f"{average:.0f}",
                    now.late - start.late,
                    sample.private // MEGABYTE,
                    sample.mapped // MEGABYTE,
                )
                say(f"| {' | '.join(map(str, cells))} |")
                last = now
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        lost = [actor for actor in clocks if await _pending(node, actor) != 1]
        return _faults(node, last.late - start.late, lost)


async def _pending(node: Soaked, actor: str) -> int:
    return len(json.loads(await _answer(node, f"/timers?actor={actor}&limit=10"))["timers"])


def _faults(node: Soaked, late: int, lost: list[str]) -> list[str]:
    middle, end = node.samples[len(node.samples) // 2], node.samples[-1]
    found = []
    if late:
        found.append(f"{late} blocks came more than {LATE_SECONDS} s late")
    if lost:
        found.append(f"the timers of {', '.join(lost)} are lost")
    if end.private - middle.private > GROWTH_MAX:
        found.append(f"private memory grew by {(end.private - middle.private) // MEGABYTE} MB in the second half")
    return found


def main() -> int:
    """Soak a node, and print the table."""
    parser = ArgumentParser(prog="python -m benchmarks.hostile_soak", description="A node for strangers, attacked.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long (default 10)")
    parser.add_argument("--programs", type=int, default=0, help="hostile programs; 0 for all (default)")
    given = parser.parse_args()
    # Those that need other actors, or a frame that only reads, are attacks of the test suite alone.
    whole = [each for each in all_programs().values() if not each.others and not each.read_only]
    chosen = whole[:: max(len(whole) // given.programs, 1)][: given.programs] if given.programs else whole
    faults = asyncio.run(soak(given.minutes, chosen, lambda line: print(line, flush=True)))
    print(f"\nload average {', '.join(f'{each:.1f}' for each in os.getloadavg())} on {os.cpu_count()} processors")
    for each in faults:
        print(each)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
