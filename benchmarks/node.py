"""The node over HTTP, from a second process: reads, transfers from end to end, the interval under that load."""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from benchmarks.load import (
    Connection,
    block_times,
    get,
    post,
    read_for,
    running_node,
    seconds_until_ready,
    send_all,
    until_empty,
)
from benchmarks.measure import Case, Figure, Report, calibrate, measure
from trailboss.chain.development import DEPLOYER, account_name, development_account, development_genesis
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, draft_deployment
from trailboss.codec.wire import encode_submission
from trailboss.crypto.digest import domain_digest
from trailboss.model.transactions import FundActor, Instruction, Transaction, Transfer, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

ACCOUNTS: Final = 200
CYCLES, CELLS = 10_000, 500
"""What a transfer uses."""
PRICE: Final = 40_000
"""Base units a cycle or a cell that transfers offer: four times the least basefee, for full blocks raise it."""
SENT_ALONE: Final = 4_000
SENT_TOGETHER: Final = 50
READ_SECONDS: Final = 3.0
CONNECTIONS: Final = 32
WATCHED_SECONDS: Final = 30.0
WATCHED_SECONDS_LARGE: Final = 120.0
PACE_TRANSFERS: Final = 1_000
"""Transfers a second while the interval is watched."""
PACE_READS: Final = 2_100
"""Reads a second meanwhile."""
ONE_BLOCK: Final = 1.0
SETTLED_SECONDS: Final = 3.0
"""After which the load counts as steady."""
PERCENTILE: Final = 0.99
MILLISECONDS: Final = 1_000
CROWD: Final = b"""import pvm_host


def init(payload):
    for ahead in range(100):
        pvm_host.schedule_timer(pvm_host.block_height() + 1_000_000 + ahead, b"")


def handle_timer(payload):
    pass
"""
INTERVAL: Final = ("--block-time", "1s", "--accounts", str(ACCOUNTS), "--no-explorer")
PATHS: Final = {
    "GET /height": "/height",
    "GET /account": f"/account/{development_account(account_name(0)).address}",
    "GET /block/latest": "/block/latest",
    "GET /timers, 50 of them": "/timers?limit=50",
    "GET /timers, a query of four parameters": "/timers?state=live&from_height=1&offset=0&limit=10",
}


def run(rounds: int, large: bool) -> Report:
    """Measure; in the large size the interval is watched for longer."""
    report = Report("A node that builds a block a second, asked from a second process", "one request, or transfer")
    with TemporaryDirectory(dir=Path.cwd()) as directory:
        cases = [Case(name="start, and answer", sample=seconds_until_ready, seconds_max=0.35)]
        on_disk = ("--chain", f"{directory}/started")
        cases.append(Case(name="start in a directory, and answer", sample=lambda: seconds_until_ready(*on_disk)))
        measure(report, cases, rounds)
        with running_node(*INTERVAL) as port:
            signed = transfers()
            asyncio.run(_fill(port))
            measure(report, [*_reads(port), *_sending(port, signed)], rounds)
        seconds = WATCHED_SECONDS_LARGE if large else WATCHED_SECONDS
        for place, options in (("in a temporary directory", ()), ("in a directory", ("--chain", f"{directory}/chain"))):
            with running_node(*INTERVAL, *options) as port:
                asyncio.run(_watch(report, place, port, seconds))
    report.calibration.append(calibrate())
    return report


def _reads(port: int) -> list[Case]:
    def reading(path: str, connections: int = CONNECTIONS) -> float:
        return 1 / asyncio.run(read_for(port, [path], READ_SECONDS, connections))

    return [
        *(
            Case(name=name, sample=partial(reading, path), rate_min=2_000 if path == "/height" else None)
            for name, path in PATHS.items()
        ),
        Case(name="GET /height, one connection", sample=partial(reading, "/height", 1)),
    ]


def _sending(port: int, transfers: Iterator[Transaction]) -> list[Case]:
    def sending(together: int) -> float:
        requests = submissions(transfers, SENT_ALONE, together)
        began = perf_counter()
        asyncio.run(_send(port, requests))
        return (perf_counter() - began) / SENT_ALONE

    return [
        Case(name="transfer, one a request, until it is in a block", sample=lambda: sending(1), rate_min=1_000),
        Case(
            name=f"transfer, {SENT_TOGETHER} a request, until it is in a block",
            sample=lambda: sending(SENT_TOGETHER),
        ),
    ]


async def _send(port: int, requests: list[bytes]) -> None:
    await send_all(port, requests, CONNECTIONS)
    await until_empty(port)


async def _watch(report: Report, place: str, port: int, seconds: float) -> None:
    """Watch the interval of a chain in some place while transfers come at a steady pace and others read."""
    heard: list[float] = []
    count = int(seconds * PACE_TRANSFERS / SENT_TOGETHER)
    # Signed before, or this process would be too busy to hear of a block when it comes.
    requests = submissions(transfers(), count * SENT_TOGETHER, SENT_TOGETHER)
    listening = asyncio.create_task(block_times(port, heard.append))
    reading = asyncio.create_task(read_for(port, [PATHS["GET /height"], PATHS["GET /account"]], seconds, 4, PACE_READS))
    began = perf_counter()
    connection = await Connection.open(port)
    for at, request in enumerate(requests):
        due = began + at * SENT_TOGETHER / PACE_TRANSFERS
        await asyncio.sleep(max(0.0, due - perf_counter()))
        await connection.ask(request)
    elapsed = perf_counter() - began
    rate = await reading
    await until_empty(port)
    listening.cancel()
    await listening
    # While the load was there: the first block with it comes later than the empty one before it, by what it takes.
    under_load = [at for at in heard if began + SETTLED_SECONDS < at < began + elapsed]
    off = sorted(abs(after - before - ONE_BLOCK) * MILLISECONDS for before, after in pairwise(under_load))
    report.figures += [
        Figure(
            name=f"{place}, interval as a reader sees it, off 1 s by, 99th percentile",
            value=off[int(PERCENTILE * len(off))],
            unit="ms",
            most=20,
        ),
        Figure(
            name=f"{place}, block begun after its time, 99th percentile, at most",
            value=_late(await connection.ask(get("/metrics"))) * MILLISECONDS,
            unit="ms",
            most=100,
        ),
        Figure(name=f"{place}, interval as a reader sees it, off 1 s by, median", value=off[len(off) // 2], unit="ms"),
        Figure(name=f"{place}, transfers taken meanwhile", value=count * SENT_TOGETHER / elapsed, unit="a second"),
        Figure(name=f"{place}, answers meanwhile", value=rate, unit="a second"),
    ]
    report.notes.append(f"The interval {place} is that of {len(off)} blocks as a reader of /events sees them.")


def _late(metrics: bytes) -> float:
    """Return the bound in seconds below which 99 of 100 blocks were begun late, as the node counts it."""
    buckets = [
        (float(bound), float(count))
        for bound, count in re.findall(r'late_seconds_bucket{le="([^"]+)"} (\S+)', metrics.decode())
    ]
    return next(bound for bound, count in buckets if count >= PERCENTILE * buckets[-1][1])


async def _fill(port: int) -> None:
    """Give the node timers to list."""
    deployer = development_account(DEPLOYER)
    instruction, address = draft_deployment(deployer.address, CROWD, b"")
    instructions: tuple[Instruction, ...] = instruction, FundActor(address, BASE_UNITS_PER_CBY)
    wanted = [
        Transaction(
            chain_id=development_genesis().chain_id,
            nonce=nonce,
            instruction=each,
            cycles_limit=CYCLES_LIMIT,
            cells_limit=CELLS_LIMIT,
            max_fee_per_cycle=PRICE,
            max_fee_per_cell=PRICE,
        )
        for nonce, each in enumerate(instructions)
    ]
    signed = [sign_transaction(each, deployer.private_key) for each in wanted]
    connection = await Connection.open(port)
    await connection.ask(post("/submit_wait", encode_submission(signed)))
    connection.close()


def transfers() -> Iterator[Transaction]:
    """Yield transfers without end, of each account in turn, each to another receiver."""
    accounts = [development_account(account_name(index)) for index in range(ACCOUNTS)]
    chain_id, number = development_genesis().chain_id, 0
    blank = Transaction(
        chain_id=chain_id,
        nonce=0,
        instruction=Transfer(accounts[0].address, 1),
        cycles_limit=CYCLES,
        cells_limit=CELLS,
        max_fee_per_cycle=PRICE,
        max_fee_per_cell=PRICE,
    )
    while True:
        for account in accounts:
            to = Address(domain_digest(b"benchmark-receiver", number.to_bytes(8, "big"))[:20])
            wanted = replace(blank, nonce=number // ACCOUNTS, instruction=Transfer(to, 1))
            yield sign_transaction(wanted, account.private_key)
            number += 1


def submissions(transfers: Iterator[Transaction], count: int, together: int) -> list[bytes]:
    """Return requests that submit so many of the transfers, some of them together."""
    signed = list(islice(transfers, count))
    return [post("/submit", encode_submission(signed[at : at + together])) for at in range(0, count, together)]
