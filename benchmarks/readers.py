"""Who reads while blocks of a thousand transfers are built: answers, the news of a block to 500, the first block."""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from benchmarks.load import LOOPBACK, Connection, get, post, running_node
from benchmarks.measure import Case, Figure, Report, calibrate, measure, percentile
from benchmarks.node import ACCOUNTS, INTERVAL, PACE_TRANSFERS, SENT_TOGETHER, submissions, transfers
from trailboss.codec.wire import encode_submission

LISTENERS: Final = 500
SECONDS: Final = 30.0
SECONDS_LARGE: Final = 120.0
SETTLED_SECONDS: Final = 3.0
PAUSE_SECONDS: Final = 0.003
"""Between two answers of the reader that watches the height."""
PATH: Final = "/events?kinds=blocks"
BLOCK: Final = b"event: block"
HEIGHT: Final = b'"height":'
MILLISECONDS: Final = 1_000
FIRST_SECONDS_MAX: Final = 0.05


def run(rounds: int, large: bool) -> Report:
    """Measure; in the large size for longer."""
    report = Report("Readers beside blocks of 1,000 transfers", "the first transfer after a start, until it is mined")
    cases = [
        Case(name="in memory", sample=lambda: _first(is_kept=False), seconds_max=FIRST_SECONDS_MAX),
        Case(name="in a directory", sample=lambda: _first(is_kept=True), seconds_max=FIRST_SECONDS_MAX),
    ]
    measure(report, cases, rounds)
    seconds = SECONDS_LARGE if large else SECONDS
    for listeners in (1, LISTENERS):
        with running_node(*INTERVAL) as port:
            asyncio.run(_watch(report, port, seconds, listeners))
    report.calibration.append(calibrate())
    report.notes.append("news out: the last listener has it; from then on, or before, GET /height shows the block.")
    return report


def _first(*, is_kept: bool) -> float:
    """Return the seconds of the first transfer that a node takes, sent as soon as it answers."""
    with TemporaryDirectory(dir=Path.cwd()) as directory:
        options = ("--chain", f"{directory}/chain") if is_kept else ()
        request = post("/submit_wait", encode_submission([next(transfers())]))
        with running_node("--pace", "auto", "--accounts", str(ACCOUNTS), "--no-explorer", *options) as port:
            return asyncio.run(_ask(port, request))


async def _ask(port: int, request: bytes) -> float:
    connection = await Connection.open(port)
    began = perf_counter()
    await connection.ask(request)
    connection.close()
    return perf_counter() - began


class _Listener(asyncio.Protocol):
    """A listener that costs little: it notes when each block comes."""

    def __init__(self, heard: dict[int, list[float]]) -> None:
        self._heard, self._rest = heard, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for blocks."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(get(PATH))

    def data_received(self, octets: bytes) -> None:
        """Note the blocks that have come whole."""
        *whole, self._rest = (self._rest + octets).split(b"\n\n")
        for event in whole:
            if BLOCK in event:
                height = int(event.split(HEIGHT, 1)[1].split(b",", 1)[0].rstrip(b"}"))
                self._heard.setdefault(height, []).append(perf_counter())


async def _watch(report: Report, port: int, seconds: float, listeners: int) -> None:
    heard: dict[int, list[float]] = {}
    loop = asyncio.get_running_loop()
    kept = [await loop.create_connection(lambda: _Listener(heard), LOOPBACK, port) for _ in range(listeners)]
    requests = submissions(transfers(), int(seconds * PACE_TRANSFERS), SENT_TOGETHER)
    began = perf_counter()
    watching = asyncio.create_task(_heights(port, began + SETTLED_SECONDS, began + seconds))
    connection = await Connection.open(port)
    for at, request in enumerate(requests):
        await asyncio.sleep(max(0.0, began + at * SENT_TOGETHER / PACE_TRANSFERS - perf_counter()))
        await connection.ask(request)
    answers, seen = await watching
    connection.close()
    for transport, _ in kept:
        transport.close()
    out = [max(heard[height]) - at for height, at in seen.items() if len(heard.get(height, ())) == listeners]
    name = f"{listeners} listening" if listeners > 1 else "one listening"
    figures = {"news of a block is out after": (out, 50), "GET /height": (answers, 20)}
    for what, (values, most) in figures.items():
        for hundredth, budget in ((50, None), (99, most)):
            value = percentile(values, hundredth) * MILLISECONDS
            report.figures.append(
                Figure(name=f"{name}: {what}, {hundredth}th percentile", value=value, unit="ms", most=budget)
            )


async def _heights(port: int, start: float, until: float) -> tuple[list[float], dict[int, float]]:
    """Ask for the height every few milliseconds; return the seconds of each answer, and when each height was seen."""
    connection, request = await Connection.open(port), get("/height")
    answers: list[float] = []
    seen: dict[int, float] = {}
    while (asked := perf_counter()) < until:
        height = json.loads(await connection.ask(request))["height"]
        now = perf_counter()
        if asked >= start:
            answers.append(now - asked)
            seen.setdefault(height, now)
        await asyncio.sleep(PAUSE_SECONDS)
    connection.close()
    # The height that was there at the start came before it was seen; the news of the last may not be out.
    return answers, dict(list(seen.items())[1:-1])
