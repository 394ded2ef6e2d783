"""A soak: nodes under load for as long as one likes, and what they hold and how late they are meanwhile.

Two nodes run side by side, one in a directory, one as ``trailboss dev`` starts it. On each live 20 clocks of the public
SDK with periods of two to six blocks; somebody transfers money, somebody listens to ``/events``, somebody polls, and
every minute somebody types a command with ``--url``. All of it stays on this machine.

    python -m benchmarks.soak --minutes 60

The status is 1 if a request or a command has failed, a block came more than a second late, a view is lent after its
lease, or memory goes on growing once its caches are full.
"""

import asyncio
import json
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from msgspec import Struct, field

from benchmarks.load import LOOPBACK, Connection, get, post
from trailboss.chain.development import DevelopmentAccount, account_name, development_account, development_genesis
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, draft_deployment
from trailboss.chain.opening import temporary_directory
from trailboss.codec.wire import encode_submission
from trailboss.model.transactions import FundActor, Instruction, Transaction, Transfer, sign_transaction
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.views.text import counted

CLOCK: Final = Path(__file__).parents[1] / "examples" / "actors" / "clock.py"
CLOCKS: Final = 20
PERIODS: Final = range(2, 7)
PURSE: Final = 40_000 * BASE_UNITS_PER_CBY
PRICE: Final = 100_000
"""Base units a cycle and a cell that transactions offer at most."""
TRANSFER_SECONDS: Final = 0.3
POLL_SECONDS: Final = 0.2
PATHS: Final = (
    "/height",
    "/block/latest",
    "/timers?limit=50",
    "/timers?state=fired&limit=50",
    "/logs?limit=50",
    "/calendar",
    "/mempool",
    "/health",
    f"/account/{development_account(account_name(0)).address}",
)
COMMANDS: Final = (
    ("status",),
    ("events", "--limit", "3"),
    ("timers", "--state", "fired", "--limit", "3"),
    ("timers", "--limit", "3"),
    ("balance",),
)
COMMAND_SECONDS: Final = 60
LEASE_SECONDS: Final = 62
"""After which no view is lent any more: its lease of a minute has ended, and a block has come."""
SAMPLES: Final = 12
LATE_SECONDS: Final = 1.0
SETTLED_MINUTES: Final = 30
"""A shorter soak ends before the caches are full, of which SQLite's and the stream's are the last."""
GROWTH_MAX: Final = 100
"""Bytes of private memory a fire that count as no growth, over the last third: what varies by itself is less."""
MINUTE: Final = 60
MEGABYTE: Final = 10**6
KIB: Final = 1_024


class Sample(Struct, frozen=True):
    """A node at one moment.

    Attributes:
        seconds: Since the soak began.
        height: Of its chain.
        fires: Since it started.
        private: Private memory, bytes.
        mapped: Mapped files, bytes, which are page cache and not the node's.
        lent: Views that it has lent.
        late: Blocks that came more than a second late.
    """

    seconds: float
    height: int
    fires: int
    private: int
    mapped: int
    lent: int
    late: int


class Soaked(Struct):
    """A node under load, and what has been seen of it.

    Attributes:
        name: What the table calls it.
        pid: Its process.
        port: Where it listens.
        samples: In order.
        slowest: Longest time that a command took, seconds, by command.
        answers: Requests that it has answered.
    """

    name: str
    pid: int
    port: int
    samples: list[Sample] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)
    answers: int = 0

    async def deploy(self) -> None:
        """Deploy the clocks, one in a block."""
        owner, source = development_account(account_name(0)), CLOCK.read_text()
        for nonce, period in zip(range(0, 2 * CLOCKS, 2), cycle(PERIODS), strict=False):
            code = f"{source.replace('PERIOD = 5', f'PERIOD = {period}')}\n# {nonce}\n"
            deployment, address = draft_deployment(owner.address, code.encode(), b"")
            wanted: tuple[Instruction, ...] = deployment, FundActor(address, PURSE // CLOCKS)
            signed = [sign(each, owner, nonce + at) for at, each in enumerate(wanted)]
            async with self.connected() as connection:
                answer = json.loads(await connection.ask(post("/submit_wait", encode_submission(signed))))
            assert answer["status"] == "included", answer

    async def transfer(self) -> None:
        """Send money, three times a second."""
        sender, receiver = (development_account(account_name(index)) for index in (1, 2))
        async with self.connected() as connection:
            for nonce in count():
                signed = sign(Transfer(receiver.address, 1), sender, nonce)
                await connection.ask(post("/submit", encode_submission([signed])))
                self.answers += 1
                await asyncio.sleep(TRANSFER_SECONDS)

    async def listen(self) -> None:
        """Read all that the node tells."""
        async with self.connected() as connection:
            async for line in connection.listen("/events"):
                assert not line.startswith(b"event: end"), "the stream has ended"

    async def poll(self) -> None:
        """Ask for one thing after the other."""
        async with self.connected() as connection:
            for path in cycle(PATHS):
                await connection.ask(get(path))
                self.answers += 1
                await asyncio.sleep(POLL_SECONDS)

    async def command(self) -> None:
        """Type a command every minute."""
        for words in cycle(COMMANDS):
            began, name = perf_counter(), " ".join(words)
            arguments = ("-m", "trailboss", *words, "--url", f"http://{LOOPBACK}:{self.port}")
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL
            )
            assert await process.wait() == 0, f"{name} has failed"
            self.slowest[name] = max(self.slowest.get(name, 0), perf_counter() - began)
            await asyncio.sleep(COMMAND_SECONDS)

    async def sample(self, seconds: float) -> Sample:
        """Look at the node."""
        async with self.connected() as connection:
            metrics = (await connection.ask(get("/metrics"))).decode()
        status = Path(f"/proc/{self.pid}/status").read_text()
        blocks, in_time = (
            number_of(rf"trailboss_block_late_seconds_{name}", metrics)
            for name in ("count", rf'bucket{{le="{LATE_SECONDS}"}}')
        )
        self.samples.append(
            Sample(
                seconds=seconds,
                height=number_of("trailboss_height", metrics),
                fires=number_of(r'trailboss_fires_total{status="ok"}', metrics),
                private=number_of("RssAnon:", status) * KIB,
                mapped=number_of("RssFile:", status) * KIB,
                lent=number_of("trailboss_views_lent", metrics),
                late=blocks - in_time,
            )
        )
        return self.samples[-1]

    def growth(self) -> float:
        """Return the bytes of private memory that each fire of the last third has added."""
        begin, end = self.samples[2 * len(self.samples) // 3], self.samples[-1]
        return (end.private - begin.private) / max(end.fires - begin.fires, 1)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """Lend a connection to it."""
        connection = await Connection.open(self.port)
        try:
            yield connection
        finally:
            connection.close()


def number_of(name: str, text: str) -> int:
    """Return the value of a metric, or of a line of a status file; ``name`` is a pattern."""
    found = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    return 0 if found is None else int(float(found[1]))


def sign(
    instruction: Instruction, account: DevelopmentAccount, nonce: int, cycles_limit: int = CYCLES_LIMIT, tip: int = 0
) -> Transaction:
    """Return a signed transaction that offers `PRICE`, and a tip of so many base units a cycle."""
    transaction = Transaction(
        chain_id=development_genesis().chain_id,
        nonce=nonce,
        instruction=instruction,
        cycles_limit=cycles_limit,
        cells_limit=CELLS_LIMIT,
        max_fee_per_cycle=PRICE,
        max_fee_per_cell=PRICE,
        max_priority_fee_per_cycle=tip,
    )
    return sign_transaction(transaction, account.private_key)


@asynccontextmanager
async def running(name: str, *options: str) -> AsyncIterator[Soaked]:
    """Run ``trailboss dev`` in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COWBOY", "TRAILBOSS"))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trailboss", "dev", "--port", "0", "--json", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdout is not None
    document: Any = json.loads(await process.stdout.readuntil(b"\n}\n"))
    try:
        yield Soaked(name, process.pid, document["port"])
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def soak(minutes: float, block_time: str, tell: Callable[[str], None]) -> list[Soaked]:
    """Put two nodes under load, and return what was seen of them.

    Args:
        minutes: For how long.
        block_time: From a block to the next, as the node takes it.
        tell: Gets a line of the table for each look at a node.
    """
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        places = {"in a directory": ("--chain", f"{directory}/chain"), "by default": ()}
        nodes = [
            await stack.enter_async_context(running(name, "--block-time", block_time, *options))
            for name, options in places.items()
        ]
        await asyncio.gather(*(node.deploy() for node in nodes))
        doing: list[Callable[[], Awaitable[None]]] = []
        for node in nodes:
            doing += [node.transfer, node.listen, node.poll, node.command]
        tasks = [asyncio.ensure_future(each()) for each in doing]
        began = perf_counter()
        try:
            for at in range(SAMPLES + 1):
                pause = began + at * minutes * MINUTE / SAMPLES - perf_counter()
                ended, _ = await asyncio.wait(tasks, timeout=max(pause, 0), return_when=asyncio.FIRST_EXCEPTION)
                for each in ended:
                    each.result()
                for node in nodes:
                    tell(_row(node, await node.sample(perf_counter() - began)))
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        tell("")
        await asyncio.sleep(LEASE_SECONDS)
        for node in nodes:
            tell(_row(node, await node.sample(perf_counter() - began)))
    return nodes


def _row(node: Soaked, found: Sample) -> str:
    cells = (
        node.name,
        f"{found.seconds / MINUTE:.1f}",
        f"{found.height:,}",
        f"{found.fires:,}",
        f"{found.private / MEGABYTE:.1f}",
        f"{found.mapped / MEGABYTE:.1f}",
        found.lent,
        found.late,
    )
    return f"| {' | '.join(map(str, cells))} |"


def faults_of(node: Soaked, minutes: float) -> list[str]:
    """Return what speaks against a node, in words."""
    found = []
    if node.samples[-1].lent:
        found.append(f"{counted(node.samples[-1].lent, 'view')} lent a minute after the last command")
    if node.samples[-1].late:
        found.append(f"{counted(node.samples[-1].late, 'block')} came more than {LATE_SECONDS:.0f} s late")
    if minutes >= SETTLED_MINUTES and node.growth() > GROWTH_MAX:
        found.append(f"private memory grows by {node.growth():,.0f} bytes a fire")
    return [f"{node.name}: {each}" for each in found]


def main() -> int:
    """Soak two nodes, and print the table."""
    parser = ArgumentParser(prog="python -m benchmarks.soak", description="Nodes under load, and what they hold.")
    parser.add_argument("--minutes", type=float, default=60.0, help="for how long (default 60)")
    parser.add_argument("--block-time", default="200ms", help="from a block to the next (default 200ms)")
    given = parser.parse_args()
    print("| node | minute | blocks | fires | private MB | mapped files MB | views lent | blocks > 1 s late |")
    print(f"| --- |{' ---: |' * 7}", flush=True)
    nodes = asyncio.run(soak(given.minutes, given.block_time, lambda line: print(line, flush=True)))
    print()
    for node in nodes:
        slowest = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in node.slowest.items())
        print(f"{node.name}: {node.answers:,} answers; {node.growth():,.0f} bytes a fire in the last third; {slowest}")
    print(f"load average {', '.join(f'{each:.1f}' for each in os.getloadavg())} on {os.cpu_count()} processors")
    faults = [each for node in nodes for each in faults_of(node, given.minutes)]
    for each in faults:
        print(each)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
