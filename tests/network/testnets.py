"""Networks of real nodes and real engines, on addresses of their own, and what they must all have in the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
from msgspec.structs import replace

from tests.faults.node_process import OCTETS, NodeProcess
from trailboss.chain import Chain
from trailboss.chain.opening import GenesisOptions
from trailboss.chain.replay import verify_chain
from trailboss.codec.wire import encode_submission
from trailboss.model.blocks import Origin
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.network.binary import find_engine
from trailboss.network.home import Home
from trailboss.network.testnet import Plan, create_testnet
from trailboss.primitives.errors import ConfigurationError

BLOCK_TIME_MS: Final = 250
POLL_SECONDS: Final = 0.05
WAIT_SECONDS: Final = 60
NONCE_MISMATCH: Final = 1002
LOG_LINES: Final = 25
Found = TypeVar("Found")


def own_host() -> str:
    """Return a loopback address that no other test run on this machine has."""
    process = os.getpid()
    return f"127.{64 + process % 128}.{process // 128 % 256}.1"


def engine_lack() -> str:
    """Return why there is no engine; empty if there is one."""
    try:
        find_engine()
    except ConfigurationError as error:
        return str(error)
    return ""


class Testnet:
    """Several nodes of one network, each a process with its engine below it."""

    __test__ = False

    def __init__(self, directory: Path, homes: Sequence[Home]) -> None:
        self.directory = directory
        self.homes = list(homes)
        self.nodes: dict[int, NodeProcess | NamespacedNode] = {}
        self.accepted: list[str] = []  # hashes of transactions that a node has accepted
        self.namespaces: dict[int, str] = {}
        self._http = httpx.Client(timeout=10, trust_env=False)
        self._included: set[tuple[int, str]] = set()

    @classmethod
    def create(cls, directory: Path, validators: int = 4, **plan: Any) -> "Testnet":
        """Make the homes of a network of the native engine."""
        given = {"hosts": (own_host(),), "block_time_ms": BLOCK_TIME_MS, "seed": "test", **plan}
        given.setdefault("genesis", GenesisOptions(vm="native"))
        now_ms = time.time_ns() // 1_000_000
        return cls(directory, create_testnet(directory, Plan(validators=validators, **given), now_ms))

    @classmethod
    def in_islands(cls, directory: Path, islands: "Islands") -> "Testnet":
        """Make the homes of a network whose nodes have a network namespace each."""
        hosts = [islands.peer_address(number) for number in range(islands.count)]
        # Other machines reach such addresses, so the genesis states the sandbox, which transfers do not load.
        net = cls.create(directory, islands.count, hosts=hosts, genesis=GenesisOptions(vm="sandbox"))
        homes = []
        for number, home in enumerate(net.homes):
            own = islands.own_address(number)
            homes.append(replace(home, api=home.api._replace(host=own), rpc=home.rpc._replace(host=own)))
            homes[-1].write()
        net.homes, net.namespaces = homes, dict(enumerate(islands.names))
        return net

    # Lives

    def start(self, *numbers: int) -> None:
        """Start nodes, all of them by default; each answers its API when this returns."""
        for number in numbers or range(len(self.homes)):
            home = self.homes[number]
            arguments = ("node", "--network", str(home.directory), "--log", "json")
            if number in self.namespaces:
                self.nodes[number] = NamespacedNode(self.namespaces[number], arguments, home.node_log)
            else:
                self.nodes[number] = NodeProcess(*arguments, log=home.node_log)
        # Those in namespaces start beside one another.
        for number in numbers or range(len(self.homes)):
            assert self.nodes[number].is_ready, self.words(number)

    def kill(self, number: int) -> int:
        """Kill a node's application, and return how it ended; the engine below it ends by itself."""
        return self.nodes.pop(number).end(signal.SIGKILL)

    def kill_engine(self, number: int) -> int:
        """Kill the engine of a node, and return the process that it was; the node starts another one."""
        engine = self.engine_of(number)
        os.kill(engine, signal.SIGKILL)
        return engine

    def stop(self, *numbers: int) -> None:
        """Ask nodes to end, all of them by default, and check that they do so well."""
        chosen = numbers or tuple(self.nodes)
        for number in chosen:
            self.nodes[number].send(signal.SIGTERM)
        for number in chosen:
            status = self.nodes.pop(number).wait()
            assert status == 0, f"node{number} ended with {status}: {self.words(number)}"

    def close(self) -> None:
        """Kill what still runs."""
        for number in list(self.nodes):
            with suppress(ProcessLookupError):
                self.kill(number)
        self._http.close()

    def engine_of(self, number: int) -> int:
        """Return the process of a node's engine; waits until there is one."""
        parent = self.nodes[number].pid
        return self.wait(f"an engine below node{number}", lambda: next(iter(children_of(parent)), None))

    # Questions

    def ask(self, number: int, path: str) -> Any:
        """Return what a node's API answers; None if it does not answer."""
        return self._get(f"{self.homes[number].api_url}{path}")

    def ask_engine(self, number: int, path: str) -> Any:
        """Return what a node's engine answers; None if it does not."""
        found = self._get(f"{self.homes[number].rpc_url}{path}")
        return None if found is None else found.get("result")

    def _get(self, url: str) -> Any:
        with suppress(httpx.HTTPError):
            answer = self._http.get(url)
            if answer.is_success:
                return answer.json()
        return None

    def height(self, number: int) -> int:
        """Return the height of a node's chain; -1 if it does not answer."""
        found = self.ask(number, "/height")
        return -1 if found is None else int(found["height"])

    def heights(self, numbers: Iterable[int] = ()) -> list[int]:
        """Return the heights of nodes, of all that run by default."""
        return [self.height(number) for number in (numbers or sorted(self.nodes))]

    def wait(self, what: str, condition: Callable[[], Found], seconds: float = WAIT_SECONDS) -> Found:
        """Return what a condition comes to when it is met; fails with the logs if that takes too long."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"no {what} after {seconds} s\n{self.report()}"
            time.sleep(POLL_SECONDS)
        return found

    def wait_height(self, height: int, *numbers: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until nodes, all that run by default, have come to a height."""
        self.wait(f"height {height}", lambda: min(self.heights(numbers)) >= height, seconds)

    def wait_blocks(self, count: int, *numbers: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait for so many more blocks on nodes, on all that run by default."""
        self.wait_height(max(self.heights(numbers)) + count, *numbers, seconds=seconds)

    def block_at(self, number: int, height: int) -> str:
        """Return the hash of a node's block."""
        return str(self.ask(number, f"/block/{height}?limit=1")["hash"])

    def watch_heights(self, most: int, seconds: float) -> None:
        """Fail if a node comes above a height within a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            heights = self.heights()
            assert max(heights) <= most, f"heights {heights}, above {most}"
            time.sleep(POLL_SECONDS)

    # Load

    def submit(self, number: int, transactions: Sequence[Transaction]) -> list[bool]:
        """Send transactions to a node, note which it accepts, and return for each whether it has it.

        A node that does not answer has none of them, as far as anyone knows.
        """
        try:
            answer = self._http.post(
                f"{self.homes[number].api_url}/submit",
                content=encode_submission(transactions),
                headers={"Content-Type": OCTETS},
            )
        except httpx.HTTPError:
            return [False] * len(transactions)
        assert answer.status_code in (200, 400), answer.text
        taken = []
        for transaction, result in zip(transactions, answer.json()["results"], strict=True):
            code = (result["error"] or {}).get("code")
            # A nonce that is used already: an earlier submission has reached a block.
            taken.append(result["status"] != "refused" or code == NONCE_MISMATCH)
            if taken[-1]:
                self.accepted.append(f"0x{transaction_hash(transaction).hex()}")
        return taken

    def wait_included(self, *numbers: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until nodes, all that run by default, have blocks with all that has been accepted."""

        def is_included() -> bool:
            missing.clear()
            for number, name in [(number, name) for name in self.accepted for number in numbers or sorted(self.nodes)]:
                if (number, name) not in self._included:
                    if self.ask(number, f"/transaction/{name}/receipt") is None:
                        missing.append((number, name))
                        return False
                    self._included.add((number, name))
            return True

        missing: list[tuple[int, str]] = []
        try:
            self.wait(f"block for each of {len(self.accepted)} accepted transactions", is_included, seconds)
        except AssertionError as error:
            ((number, name),) = missing
            held = {each: self._get(f"{self.homes[each].api_url}/mempool/transaction/{name}") for each in self.nodes}
            waiting = {each: self.ask(each, "/health") for each in self.nodes}
            raise AssertionError(f"node{number} lacks {name}; held: {held}; {waiting}\n{error}") from None

    # The end

    def verify(self) -> "Verdict":
        """Stop all nodes, and compare all that they have, block by block; replay one chain from genesis."""
        self.stop()
        return verify(self.homes, self.accepted)

    def words(self, number: int) -> str:
        """Return the ends of a node's logs."""
        home = self.homes[number]
        parts = []
        for log in (home.node_log, home.engine_log):
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
            parts.append(f"--- {log}\n" + "\n".join(line[:400] for line in lines))
        return "\n".join(parts)

    def report(self) -> str:
        """Return where all nodes stand, for a failure."""
        lines = [f"heights {self.heights(range(len(self.homes)))}, running {sorted(self.nodes)}"]
        for number in sorted(self.nodes):
            state = self.ask_engine(number, "/consensus_state")
            lines.append(f"node{number} consensus: {json.dumps(state)[:600]}\n{self.words(number)}")
        return "\n".join(lines)


class NamespacedNode:
    """A node in a network namespace; it has no parent's imports, so it starts more slowly."""

    def __init__(self, namespace: str, arguments: Sequence[str], log: Path) -> None:
        command = ["ip", "netns", "exec", namespace, sys.executable, "-m", "trailboss", *arguments, "--json"]
        with log.open("ab") as kept:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=kept, text=True)

    @cached_property
    def is_ready(self) -> bool:
        """Whether it has come as far as to say where it listens; waits for that, or for its end."""
        assert self._process.stdout is not None
        return "}\n" in iter(self._process.stdout.readline, "")

    @property
    def pid(self) -> int:
        """Its process: `ip` has become it."""
        return self._process.pid

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end, and return how it ended."""
        status = self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, and return how it did."""
        self.send(number)
        return self.wait()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the chains of a network hold.

    Attributes:
        height: The lowest of all nodes.
        transactions: Accepted ones, each of them in one block.
        fires: Timers that have fired, each of them once.
    """

    height: int
    transactions: int
    fires: int

    def __str__(self) -> str:
        return f"{self.height} blocks with {self.transactions} transactions and {self.fires} fires, once each"


def verify(homes: Sequence[Home], accepted: Iterable[str]) -> Verdict:
    """Compare the chains of nodes that have ended: one history, nothing twice, nothing lost, money conserved.

    Raises:
        AssertionError: At the first difference.
    """
    hashes, fires = [], 0
    for home in homes:
        with Chain.open(home.chain_directory) as chain:
            # Money among the rest: what accounts hold and what is burned is what genesis gave out.
            chain.check_invariants()
            hashes.append([chain.blocks[height].hash for height in range(chain.height + 1)])
            receipts = [receipt for block in chain.blocks.eventful() for receipt in block.receipts]
            sent = Counter(f"0x{each.origin_hash.hex()}" for each in receipts if each.origin is Origin.TRANSACTION)
            fired = Counter(each.timer_id for each in receipts if each.origin is Origin.TIMER)
            totals = chain.totals()
        assert max(sent.values(), default=1) == 1, f"{home.name} has a transaction in two blocks"
        assert max(fired.values(), default=1) == 1, f"{home.name} has fired a timer twice"
        assert len(fired) == totals.fired, f"{home.name} counts {totals.fired} fires, and has {len(fired)}"
        assert totals.unfunded == totals.expired == 0, f"{home.name} has lost timers: {totals}"
        if len(hashes[-1]) == max(map(len, hashes)):
            lost = [name for name in accepted if name not in sent]
            fires = len(fired)
            best = home
    for home, each in zip(homes, hashes, strict=True):
        first = next((at for at, (one, other) in enumerate(zip(each, hashes[0], strict=False)) if one != other), None)
        assert first is None, f"{home.name} and {homes[0].name} differ from block {first} on"
    assert not lost, f"{len(lost)} accepted transactions are in no block: {lost[:3]}"
    with Chain.open(best.chain_directory) as chain:
        report = verify_chain(chain)
        assert report.ok, str(report)
    return Verdict(min(map(len, hashes)) - 1, len(list(accepted)), fires)


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name of a program stands in brackets and may hold anything.
                fields = entry.joinpath("stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == process and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


class Islands:
    """Network namespaces, one for each node, whose cables lie in one of two switches. It needs root.

    A node's engine talks to others over its cable; its API and its engine's RPC are on a cable of their own, to this
    process, which no partition cuts.
    """

    def __init__(self, count: int) -> None:
        self._mark = f"{os.getpid() % 100_000:x}"
        self.count = count
        self.names = [f"tb{self._mark}n{number}" for number in range(count)]
        self.switches = [f"tb{self._mark}s{side}" for side in range(2)]

    @staticmethod
    def lack() -> str:
        """Return why there can be none; empty if there can."""
        if os.geteuid() != 0:
            return "network namespaces need root"
        name = f"tb{os.getpid():x}"
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
        if made.returncode:
            return f"no network namespaces here: {made.stderr.strip()}"
        _ip("netns", "del", name)
        return ""

    def __enter__(self) -> "Islands":
        for switch in self.switches:
            _ip("link", "add", switch, "type", "bridge")
            _ip("link", "set", switch, "up")
        for number, name in enumerate(self.names):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
            self._lay_cable(number, "p", self.peer_address(number))
            _ip("link", "set", self._plug(number, "p"), "master", self.switches[0], "up")
            self._lay_cable(number, "m", self.own_address(number))
            _ip("addr", "add", f"{self.own_address(number).rpartition('.')[0]}.1/24", "dev", self._plug(number, "m"))
            _ip("link", "set", self._plug(number, "m"), "up")
        return self

    def __exit__(self, *_: object) -> None:
        for number, name in enumerate(self.names):
            # A process that is about to end would keep them for a while.
            for kind in "pm":
                _ip("link", "del", self._plug(number, kind))
            _ip("netns", "del", name)
        for switch in self.switches:
            _ip("link", "del", switch)

    def peer_address(self, number: int) -> str:
        """Return where other nodes' engines reach a node's."""
        return f"10.99.0.{number + 1}"

    def own_address(self, number: int) -> str:
        """Return where this process reaches a node."""
        return f"10.98.{number + 1}.2"

    def part(self, *numbers: int) -> None:
        """Put the cables of some nodes into the other switch."""
        for number in numbers:
            _ip("link", "set", self._plug(number, "p"), "master", self.switches[1])

    def heal(self) -> None:
        """Put all cables into one switch."""
        for number in range(self.count):
            _ip("link", "set", self._plug(number, "p"), "master", self.switches[0])

    def _plug(self, number: int, kind: str) -> str:
        return f"tb{self._mark}{kind}{number}"

    def _lay_cable(self, number: int, kind: str, address: str) -> None:
        name, end = self.names[number], f"{kind}0"
        _ip("link", "add", self._plug(number, kind), "type", "veth", "peer", "name", end, "netns", name)
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
        _ip("-n", name, "link", "set", end, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
