"""A node beside other test chains: one client, one connection that stays open, the same work in turn."""

import asyncio
import platform
import re
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep
from typing import Final, Protocol

from benchmarks import ethereum
from benchmarks.load import LOOPBACK, get, post, running, send_all
from benchmarks.measure import Case, Figure, Report, measure, timed
from benchmarks.node import ACCOUNTS, transfers
from trailboss.codec.wire import encode_submission
from trailboss.crypto.digest import sha256

PEERS: Final = Path(".peers")  # where `make bench-peers` installs them
ANVIL: Final = next(PEERS.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"), None)  # itself, without its launcher
HARDHAT: Final = Path("node_modules/hardhat/internal/cli/bootstrap.js")  # there; it runs in no other folder
HARDHAT_SETTINGS: Final = 'module.exports = { solidity: "0.8.28" };\n'  # without a compiler it does not start
HAS_HARDHAT: Final = PEERS.joinpath(HARDHAT).exists()
IS_OPTIMIZED: Final = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
BUILD: Final = f"CPython {platform.python_version()}, built with{'' if IS_OPTIMIZED else 'out'} optimizations"
JSON: Final = "application/json"
OPTIONS: Final = ("--no-explorer", "--pace", "auto", "--accounts", str(ACCOUNTS))
TRANSFERS: Final = 400
WARM: Final = 50  # transfers of a new process before what is measured
READS: Final = 2_000
EMPTY_BLOCKS: Final = 300
CONNECTIONS: Final = 32
AT_ONCE: Final = 5_000  # blocks of one call
READY_SECONDS: Final = 60.0
READY_STEP: Final = 0.002  # seconds from one question whether it is ready to the next
MIB: Final = 2**20
LAST_CHUNK: Final = b"0\r\n\r\n"


class Client:
    """One connection, which asks one thing at a time and reads no more of an answer than it must."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """Send a request and return the body of its answer. `RuntimeError` if it is refused."""
        self._socket.sendall(request)
        answer = self._socket.recv(MIB)
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(MIB)
        head, _, body = answer.partition(b"\r\n\r\n")
        length = re.findall(rb"content-length: *(\d+)", head, re.IGNORECASE)
        # Hardhat sends chunks.
        while len(body) < int(length[0]) if length else not body.endswith(LAST_CHUNK):
            body += self._socket.recv(MIB)
        if b" 200 " not in head or b'"error":{' in body:
            raise RuntimeError(f"{request[:200]!r} is refused: {body[:500]!r}")
        return body

    def ask_all(self, requests: list[bytes]) -> None:
        """Send requests, each after the answer to the one before it."""
        for request in requests:
            self.ask(request)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Peer(Protocol):
    """A test chain that runs in a process of its own, and the requests that it understands."""

    port: int
    process: int  # its id
    by_hand: bytes  # blocks are built on request from then on
    mine: bytes  # a block
    height: bytes  # what the chain's height is

    def mine_many(self, blocks: int) -> bytes:
        """Return the request for so many blocks."""

    def mined(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it is in a block."""

    def pooled(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it waits for a block."""


Start = Callable[[], AbstractContextManager[Peer]]
Work = Callable[[Peer, Client], float]
"""Does what is measured, and returns the seconds of one operation."""


class Trailboss:
    """This node."""

    by_hand = post("/dev/pace", b'{"pace":"manual"}', JSON)
    mine = post("/dev/mine", b"", JSON)
    height = get("/height")

    def __init__(self, port: int, process: int) -> None:
        self.port, self.process = port, process
        self._transfers = transfers()

    def mine_many(self, blocks: int) -> bytes:
        """Return the request for so many blocks."""
        return post("/dev/mine", b'{"blocks":%d}' % blocks, JSON)

    def mined(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it is in a block."""
        return self._requests("/submit_wait", count)

    def pooled(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it waits for a block."""
        return self._requests("/submit", count)

    def _requests(self, path: str, count: int) -> list[bytes]:
        return [post(path, encode_submission([each])) for each in islice(self._transfers, count)]


class Anvil:
    """A node of Ethereum for tests."""

    send_mined, mine_at_once = "eth_sendRawTransactionSync", "anvil_mine"  # methods that nodes name in their own ways
    by_hand = post("/", ethereum.call("evm_setAutomine", False), JSON)
    mine = post("/", ethereum.call("evm_mine"), JSON)
    height = post("/", ethereum.call("eth_blockNumber"), JSON)

    def __init__(self, port: int, process: int) -> None:
        self.port, self.process = port, process
        self._nonce = 0

    def mine_many(self, blocks: int) -> bytes:
        """Return the request for so many blocks."""
        return post("/", ethereum.call(self.mine_at_once, hex(blocks)), JSON)

    def mined(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it is in a block."""
        return self._requests(self.send_mined, count)

    def pooled(self, count: int) -> list[bytes]:
        """Return requests to transfer, each of which is answered when it waits for a block."""
        return self._requests("eth_sendRawTransaction", count)

    def _requests(self, method: str, count: int) -> list[bytes]:
        first, self._nonce = self._nonce, self._nonce + count
        receivers = ((nonce, sha256(nonce.to_bytes(8, "big"))[:20]) for nonce in range(first, self._nonce))
        return [post("/", ethereum.call(method, ethereum.transfer(*each)), JSON) for each in receivers]


class Hardhat(Anvil):
    """Another one, in JavaScript; while it mines by itself, it answers after that."""

    send_mined, mine_at_once = "eth_sendRawTransaction", "hardhat_mine"


@contextmanager
def anvil() -> Iterator[Peer]:
    """Run Anvil, and return it once it answers."""
    with _running(str(ANVIL), "--silent") as (port, process):
        yield Anvil(port, process)


@contextmanager
def hardhat() -> Iterator[Peer]:
    """Run Hardhat, and return it once it answers."""
    PEERS.joinpath("hardhat.config.js").write_text(HARDHAT_SETTINGS, encoding="ascii")
    with _running("node", str(HARDHAT), "node", folder=PEERS) as (port, process):
        yield Hardhat(port, process)


@contextmanager
def _running(*command: str, folder: Path | None = None) -> Iterator[tuple[int, int]]:
    """Run a node of Ethereum, and return its port and the process's id once it answers."""
    with socket.socket() as chosen:
        chosen.bind((LOOPBACK, 0))
        port = chosen.getsockname()[1]
    arguments = [*command, "--port", str(port)]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield _answering(port, process), process.pid
        finally:
            process.terminate()


def _answering(port: int, process: subprocess.Popen[bytes]) -> int:
    """Return the port once something answers at it."""
    until = perf_counter() + READY_SECONDS
    while perf_counter() < until and process.poll() is None:
        with suppress(ConnectionRefusedError), closing(Client(port)) as client:
            client.ask(Anvil.height)
            return port
        sleep(READY_STEP)
    raise RuntimeError(f"{process.args} does not answer")


@contextmanager
def trailboss() -> Iterator[Peer]:
    """Run this node, and return it once it answers."""
    with running("dev", "--port", "0", *OPTIONS) as (port, process):
        yield Trailboss(port, process)


OTHERS: Final[dict[str, Start]] = {"Hardhat": hardhat} if HAS_HARDHAT else {}


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("A node beside Anvil and Hardhat: one client, one connection", "one transfer, block or read")
    if ANVIL is None:
        report.notes.append("Anvil is not here, so nothing is compared: make bench-peers installs it, with npm.")
        return report
    report.notes += [
        f"{_version(str(ANVIL))}; {BUILD}.",
        f"Hardhat {_version('node', str(PEERS / HARDHAT))}."
        if HAS_HARDHAT
        else "Hardhat is not here: make bench-peers installs it, with npm.",
        "Every sample is of a process of its own: the longer Anvil's chain is, the slower it builds.",
        "Anvil's transfer is eth_sendRawTransactionSync, Hardhat's eth_sendRawTransaction, ours /submit_wait. "
        f"{CONNECTIONS} connections are compared with our one.",
    ]
    cases = [
        *_beside("transfer, mined", _mined, 1 / 1.3),
        *_beside("transfer, pooled", _pooled, 1 / 1.2),
        *_beside(f"of {TRANSFERS} in a block", _mined_at_once, 1 / 0.6),
        *_beside("empty block", _empty, 1 / 2),
        *_beside("read", _read, 1 / 1.5),
        *_beside("start", None),
    ]
    together = f"transfer, mined, {CONNECTIONS} connections"
    cases.append(Case(name=together, sample=partial(_sample, trailboss, _mined_together), beside="transfer, mined"))
    measure(report, cases, rounds)
    measure(report, _beside(f"of {AT_ONCE:,} blocks", _many), 1, warm=False)
    held = []
    for name, start in {"Anvil": anvil, "Trailboss": trailboss, **OTHERS}.items():
        with start() as peer, closing(Client(peer.port)) as client:
            client.ask_all(peer.mined(TRANSFERS))
            held.append(_memory(peer))
        report.figures.append(
            Figure(name=f"{name}, resident after {TRANSFERS} blocks", value=held[-1] / MIB, unit="MiB")
        )
    report.figures.append(Figure(name="ratio of it", value=held[1] / held[0], unit="×", most=1.2))
    return report


def _beside(what: str, work: Work | None, ratio_max: float | None = None) -> list[Case]:
    """Return what is measured of each; the most that this node's time may be of Anvil's."""
    beside = f"Anvil, {what}"
    cases = [
        Case(name=beside, sample=partial(_sample, anvil, work)),
        Case(name=what, sample=partial(_sample, trailboss, work), beside=beside, ratio_max=ratio_max),
    ]
    for name, start in OTHERS.items():
        cases.append(Case(name=f"{name}, {what}", sample=partial(_sample, start, work), beside=beside))
    return cases


def _sample(start: Start, work: Work | None) -> float:
    """Return the seconds of work of a new process; of its start for None."""
    began = perf_counter()
    with start() as peer, closing(Client(peer.port)) as client:
        client.ask(peer.height)
        ready = perf_counter() - began
        if work is None:
            return ready
        client.ask_all(peer.mined(WARM))
        return work(peer, client)


def _mined(peer: Peer, client: Client) -> float:
    requests = peer.mined(TRANSFERS)
    return timed(lambda: client.ask_all(requests), TRANSFERS)


def _mined_together(peer: Peer, client: Client) -> float:
    del client
    requests = peer.mined(TRANSFERS)
    return timed(lambda: asyncio.run(send_all(peer.port, requests, CONNECTIONS)), TRANSFERS)


def _pooled(peer: Peer, client: Client) -> float:
    requests = peer.pooled(TRANSFERS)
    client.ask(peer.by_hand)
    return timed(lambda: client.ask_all(requests), TRANSFERS)


def _mined_at_once(peer: Peer, client: Client) -> float:
    client.ask_all([peer.by_hand, *peer.pooled(TRANSFERS)])
    return timed(lambda: client.ask(peer.mine), TRANSFERS)


def _empty(peer: Peer, client: Client) -> float:
    return timed(lambda: client.ask_all([peer.mine] * EMPTY_BLOCKS), EMPTY_BLOCKS)


def _read(peer: Peer, client: Client) -> float:
    return timed(lambda: client.ask_all([peer.height] * READS), READS)


def _many(peer: Peer, client: Client) -> float:
    return timed(lambda: client.ask(peer.mine_many(AT_ONCE)), AT_ONCE)


def _memory(peer: Peer) -> int:
    """Return the bytes of memory that its process holds."""
    [kilobytes] = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{peer.process}/status").read_text(encoding="ascii"))
    return int(kilobytes) * 1024


def _version(*command: str) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, check=True, text=True).stdout.splitlines()[0]
