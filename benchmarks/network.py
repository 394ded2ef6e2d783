"""Four validators on one machine: how regular their blocks are, what they commit, how fast others catch up or join."""

import asyncio
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import httpx
from msgspec.structs import replace

from benchmarks.load import Connection, block_times, get, post, running
from benchmarks.measure import Figure, Report, calibrate
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import draft_deployment
from trailboss.chain.opening import GenesisOptions
from trailboss.codec.wire import encode_submission
from trailboss.crypto.digest import domain_digest
from trailboss.model.transactions import (
    ExecuteActor,
    FundActor,
    Instruction,
    Transaction,
    Transfer,
    sign_transaction,
)
from trailboss.network.home import Home
from trailboss.network.survey import trust
from trailboss.network.testnet import Plan, add_node, create_testnet
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

VALIDATORS: Final = 4
ACCOUNTS: Final = 200
WATCHED_SECONDS: Final = 40.0
PACE: Final = 200  # transfers a second while the interval is watched
TOGETHER: Final = 20  # transfers of one request
MOST: Final = 6_000  # transfers sent as fast as they are taken
INTERVAL_MAX_MS: Final = 1_500
COMMITTED_MIN: Final = 300
PRICE: Final = 400_000  # base units a cycle or a cell that transactions offer at most
CROWD: Final = 1_000  # timers that are due in one block
CROWD_ACTORS: Final = 10
AROUND: Final = 8  # blocks before and after the crowd whose intervals are compared
QUICK_MS: Final = 100  # time between blocks while a history is made for others to catch up with
BEHIND: Final = 500  # blocks that a node is behind
BEHIND_LARGE: Final = 5_000
CAUGHT_UP_MIN: Final = 150  # blocks a second
TIMERS: Final = 20_000  # of the chain that a node joins by a snapshot
TIMERS_LARGE: Final = 1_000_000
TIMERS_EACH: Final = 10_000  # that one call schedules
JOIN_SECONDS_MAX: Final = 90
PERCENTILE: Final = 0.99
MILLISECONDS: Final = 1_000
POLL_SECONDS: Final = 0.02
CROWD_SOURCE: Final = b"""import pvm_host


def arm(payload):
    height, number = (int(word) for word in payload.split())
    for _ in range(number):
        pvm_host.schedule_timer(height, b"")


def handle_timer(payload):
    pass
"""
ROOM: Final = {"timers.lane_cycles_per_block": 10**9, "limits.block_cycles_max": 2 * 10**9}
"""Room for a thousand fires in one block: with mainnet's numbers three of these fire in a block."""
WIDE: Final = {
    "limits.block_cycles_max": 10**12,
    "limits.block_cells_max": 10**12,
    "timers.max_timers_per_actor": 10**7,
}
"""Room for calls that schedule thousands of timers."""


def run(rounds: int, large: bool) -> Report:  # noqa: ARG001  # a network is measured over time, not in rounds
    """Measure a network, beside one node without one in the same run."""
    report = Report("Four validators on one machine", "operation")
    report.calibration.append(calibrate())
    with TemporaryDirectory(prefix="tb", dir="/var/tmp") as directory:
        alone = asyncio.run(_alone(report, Path(directory)))
        asyncio.run(_together(report, Path(directory), alone))
        asyncio.run(_behind(report, Path(directory), BEHIND_LARGE if large else BEHIND))
        asyncio.run(_join(report, Path(directory), TIMERS_LARGE if large else TIMERS))
    report.calibration.append(calibrate())
    report.notes.append("All processes share this machine's cores: four nodes, four engines and the load.")
    return report


class Client:
    """Sends to one node, and knows the nonces of those who sign."""

    def __init__(self, chain_id: int, host: str, port: int) -> None:
        self._chain_id, self.host, self.port = chain_id, host, port
        self._nonces = {number: count() for number in range(ACCOUNTS)}

    def signed(self, sender: int, instruction: Instruction, cycles: int = 10_000, cells: int = 500) -> Transaction:
        """Return a signed transaction, the sender's next one."""
        blank = Transaction(
            chain_id=self._chain_id,
            nonce=next(self._nonces[sender]),
            instruction=instruction,
            cycles_limit=cycles,
            cells_limit=cells,
            max_fee_per_cycle=PRICE,
            max_fee_per_cell=PRICE,
        )
        return sign_transaction(blank, development_account(account_name(sender)).private_key)

    def transfers(self, number: int) -> list[Transaction]:
        """Return transfers of each account in turn, each to another receiver."""
        found = []
        for at in range(number):
            to = Address(domain_digest(b"benchmark-receiver", at.to_bytes(8, "big"))[:20])
            found.append(self.signed(at % ACCOUNTS, Transfer(to, 1)))
        return found

    async def ask(self, path: str) -> Any:
        """Return what a path answers."""
        connection = await Connection.open(self.port, self.host)
        try:
            return json.loads(await connection.ask(get(path)))
        finally:
            connection.close()

    async def send(self, transactions: Sequence[Transaction], path: str = "/submit") -> None:
        """Send transactions."""
        connection = await Connection.open(self.port, self.host)
        await connection.ask(post(path, encode_submission(transactions)))
        connection.close()


async def _alone(report: Report, directory: Path) -> float:
    """Measure one node without a network, and return the transfers a second that it commits."""
    options = (
        "--block-time",
        "1s",
        "--chain",
        str(directory / "alone"),
        "--accounts",
        str(ACCOUNTS),
        "--vm",
        "sandbox",
    )
    with running("dev", "--port", "0", *options) as (port, _):
        client = Client(1, "127.0.0.1", port)
        _add_intervals(report, "one node, idle", await _intervals(client, 0))
        return await _commit(report, "one node", client)


async def _together(report: Report, directory: Path, alone: float) -> None:
    genesis = GenesisOptions(accounts=ACCOUNTS, vm="sandbox", overrides=ROOM)
    plan = Plan(validators=VALIDATORS, genesis=genesis, hosts=(_host(1),))
    homes = create_testnet(directory / "net", plan, time.time_ns() // 1_000_000)
    with _started(homes):
        client = _client(homes[0])
        await _reach(client, 3)
        _add_intervals(report, "four validators, idle", await _intervals(client, 0), INTERVAL_MAX_MS)
        words = f"four validators, {PACE} transfers a second"
        _add_intervals(report, words, await _intervals(client, PACE), INTERVAL_MAX_MS)
        committed = await _commit(report, "four validators", client, COMMITTED_MIN)
        report.figures.append(Figure(name="the same, beside one node", value=committed / alone, unit="×"))
        await _crowd(report, client)


async def _intervals(client: Client, pace: int) -> list[float]:
    """Return the milliseconds between blocks as a reader sees them, while transfers come at a pace."""
    heard: list[float] = []
    batches = client.transfers(int(pace * WATCHED_SECONDS))
    listening = asyncio.create_task(block_times(client.port, heard.append, client.host))
    began = perf_counter()
    for at in range(0, len(batches), TOGETHER):
        await asyncio.sleep(max(0.0, began + at / pace - perf_counter()))
        await client.send(batches[at : at + TOGETHER])
    await asyncio.sleep(max(0.0, began + WATCHED_SECONDS - perf_counter()))
    listening.cancel()
    await listening
    return sorted((after - before) * MILLISECONDS for before, after in pairwise(heard))


def _add_intervals(report: Report, name: str, intervals: Sequence[float], most: float | None = None) -> None:
    report.figures += [
        Figure(name=f"{name}: between blocks, median", value=median(intervals), unit="ms"),
        Figure(
            name=f"{name}: between blocks, 99th percentile",
            value=intervals[int(PERCENTILE * len(intervals))],
            unit="ms",
            most=most,
        ),
    ]


async def _commit(report: Report, name: str, client: Client, least: float | None = None) -> float:
    """Send transfers as fast as they are taken, and return how many a second are committed."""
    transfers = client.transfers(MOST)
    began = perf_counter()
    for at in range(0, MOST, TOGETHER):
        await client.send(transfers[at : at + TOGETHER])
    await _until_empty(client)
    rate = MOST / (perf_counter() - began)
    report.figures.append(
        Figure(name=f"{name}: transfers committed, signed before", value=rate, unit="a second", least=least)
    )
    return rate


async def _crowd(report: Report, client: Client) -> None:
    """Have many timers fire in one block, and compare the intervals around it with those before."""
    deployer = development_account(account_name(0))
    actors = []
    for number in range(CROWD_ACTORS):
        instruction, actor = draft_deployment(deployer.address, CROWD_SOURCE, bytes((number,)))
        actors.append(actor)
        funds = FundActor(actor, 2_000 * BASE_UNITS_PER_CBY)
        await client.send([client.signed(0, instruction, 2_000_000, 20_000), client.signed(0, funds)], "/submit_wait")
    height = int((await client.ask("/height"))["height"])
    due = height + 3 * AROUND
    each = b"%d %d" % (due, CROWD // CROWD_ACTORS)
    calls = [client.signed(0, ExecuteActor(actor, "arm", each), 3_000_000, 100_000) for actor in actors]
    await client.send(calls, "/submit_wait")
    times: dict[int, float] = {}
    while True:
        height = int((await client.ask("/height"))["height"])
        times.setdefault(height, perf_counter())
        if height > due + AROUND:
            break
        await asyncio.sleep(POLL_SECONDS)
    gaps = {after: (times[after] - times[before]) * MILLISECONDS for before, after in pairwise(sorted(times))}
    offset = (await client.ask("/height"))["height"] - due
    [block] = (await client.ask(f"/blocks?offset={offset}&limit=1"))["blocks"]
    around = [gap for at, gap in gaps.items() if abs(at - due) <= AROUND // 2]
    before = [gap for at, gap in gaps.items() if at < due - AROUND // 2]
    report.figures += [
        Figure(name=f"{block['receipts']:,} timers fire in one block: its own interval", value=gaps[due], unit="ms"),
        Figure(name="median interval around it, beside that before", value=median(around) / median(before), unit="×"),
    ]


async def _behind(report: Report, directory: Path, blocks: int) -> None:
    """Let a node sleep while others make blocks, and measure how fast it has them all."""
    plan = Plan(
        validators=VALIDATORS,
        genesis=GenesisOptions(accounts=ACCOUNTS, vm="sandbox"),
        hosts=(_host(2),),
        block_time_ms=QUICK_MS,
    )
    homes = create_testnet(directory / "behind", plan, time.time_ns() // 1_000_000)
    with _started(homes[:-1]):
        client = _client(homes[0])
        await _reach(client, blocks)
        began = perf_counter()
        with _started(homes[-1:]):
            late = _client(homes[-1])
            await _reach(late, 1)
            first = perf_counter()
            # It is there when it is as high as the others were when it had begun.
            await _reach(late, blocks)
            seconds = perf_counter() - first
    report.figures += [
        Figure(
            name=f"a node {blocks:,} blocks behind: blocks a second from its first one on",
            value=blocks / seconds,
            unit="a second",
            least=CAUGHT_UP_MIN,
        ),
        Figure(name="from its start until it has its first block", value=first - began, unit="s"),
    ]


async def _join(report: Report, directory: Path, timers: int) -> None:
    """Let a node join a chain with many timers by a snapshot."""
    genesis = GenesisOptions(accounts=ACCOUNTS, vm="native", overrides=WIDE)
    plan = Plan(validators=1, genesis=genesis, hosts=(_host(3),), block_time_ms=QUICK_MS)
    homes = create_testnet(directory / "join", plan, time.time_ns() // 1_000_000)
    homes = [replace(home, snapshot_blocks=64) for home in homes]
    for home in homes:
        home.write()
    with _started(homes):
        client = _client(homes[0])
        await _fill(client, timers)
        async with httpx.AsyncClient(trust_env=False) as http:
            height = int((await client.ask("/height"))["height"])
            # A snapshot of all timers, and the two headers after it that its reader's light client asks for.
            await _reach(client, height + 64 + 64)
            home = add_node(homes, await trust(homes, http))
        began = perf_counter()
        with _started([home]):
            joined = _client(home)
            height = int((await client.ask("/height"))["height"])
            await _reach(joined, height)
            seconds = perf_counter() - began
            has = (await joined.ask("/timers?limit=1"))["total_count"]
    report.figures.append(
        Figure(
            name=f"a node joins a chain with {has:,} timers by a snapshot, and follows its head",
            value=seconds,
            unit="s",
            most=JOIN_SECONDS_MAX,
        )
    )


async def _fill(client: Client, timers: int) -> None:
    instruction, actor = draft_deployment(development_account(account_name(0)).address, CROWD_SOURCE, b"")
    funds = FundActor(actor, 100_000 * BASE_UNITS_PER_CBY)
    await client.send([client.signed(0, instruction, 2_000_000, 20_000), client.signed(0, funds)], "/submit_wait")
    for number in range(timers // TIMERS_EACH):
        payload = b"%d %d" % (1_000_000 + number, TIMERS_EACH)
        await client.send([client.signed(1, ExecuteActor(actor, "arm", payload), 10**9, 10**8)])
        await _until_empty(client)


async def _until_empty(client: Client) -> None:
    while (await client.ask("/mempool?limit=1"))["total_count"]:
        await asyncio.sleep(POLL_SECONDS)


async def _reach(client: Client, height: int) -> None:
    while int((await client.ask("/height"))["height"]) < height:
        await asyncio.sleep(POLL_SECONDS)


@contextmanager
def _started(homes: Sequence[Home]) -> Iterator[None]:
    """Run nodes of a network, and go on when each of them answers."""
    with ExitStack() as nodes:
        for home in homes:
            nodes.enter_context(running("node", "--network", str(home.directory)))
        yield


def _client(home: Home) -> Client:
    return Client(home.genesis.chain_id, home.api.host, home.api.port)


def _host(network: int) -> str:
    """Return a loopback address that no other network of this machine has."""
    return f"127.{64 + os.getpid() % 128}.{network}.1"
