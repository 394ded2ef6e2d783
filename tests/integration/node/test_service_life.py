"""`trailboss dev` and `trailboss node` as processes: how they begin, what they refuse, and how they end."""

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.node_process import NodeProcess
from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account
from trailboss.primitives.errors import InvariantError

Start = Callable[..., NodeProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a node on a free port; what is left of it at the end is killed."""
    running: list[NodeProcess] = []

    def start_node(command: str, *arguments: object, explorer: bool = False) -> NodeProcess:
        options = ["--port", "0", *map(str, arguments)]
        if not explorer:
            options.append("--no-explorer")
        node = NodeProcess(command, *options, log=tmp_path / "log")
        running.append(node)
        return node

    yield start_node
    for node in running:
        if node.is_running:
            node.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_node_ends_with_status_0_when_it_is_asked_to(start: Start, number: signal.Signals) -> None:
    """With an explorer, a stream that is open, a request that waits, and a connection that does nothing."""
    node = start("dev", "--pace", "manual", explorer=True)
    with socket.create_connection(node.address) as stream, socket.create_connection(node.address):
        stream.sendall(b"GET /events?since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in stream.recv(4_096)
        assert node.ask("GET", "/health")[1]["status"] == "running"
        assert node.end(number) == 0
        stream.settimeout(10)
        said = b"".join(iter(lambda: stream.recv(4_096), b""))
        assert b"stopping" in said


def test_node_ends_at_once_when_it_is_interrupted_twice(start: Start) -> None:
    """While it waits for a request to be answered, which it gives two seconds."""
    node = start("dev", "--pace", "manual")
    with socket.create_connection(node.address) as slow:
        head = (
            b"POST /submit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        )
        slow.sendall(head)
        assert node.ask("GET", "/height") == (200, {"height": 0})
        node.send(signal.SIGINT)
        while _listens(node.address):
            pass
        assert node.end(signal.SIGINT) == 130


def test_chain_goes_on_where_it_was_when_a_node_is_started_again(start: Start, tmp_path: Path) -> None:
    """Made by the first, opened by the second, with its index and what waited; by `node` without development calls."""
    directory = tmp_path / "chain"
    node = start("dev", "--chain", directory, "--pace", "manual", "--accounts", 3, "--mechanism", "lane")
    names = [account["name"] for account in node.document["accounts"]]
    assert names == ["account 0", "account 1", "account 2", "deployer"]
    key = development_account(account_name(1)).private_key
    assert node.document["accounts"][1]["private_key"] == f"0x{key.hex()}"
    status, gift = node.post("/faucet", address="0x" + "77" * 20)
    assert status == 200
    assert node.end() == 0

    node = start("node", "--chain", directory, "--pace", "manual")
    assert node.document["accounts"] == []
    assert (node.document["mechanism"], node.document["development"]) == ("lane", False)
    assert node.ask("GET", f"/mempool/transaction/{gift['tx_hash']}")[1]["status"] == "waiting"
    assert node.post("/dev/mine")[0] == 403
    assert node.post("/faucet", address="0x" + "77" * 20)[0] == 403
    assert node.end() == 0

    node = start("dev", "--chain", directory, "--pace", "manual")
    assert node.post("/dev/mine", blocks=3)[1] == {"height": 3}
    assert node.ask("GET", f"/transaction/{gift['tx_hash']}/receipt")[1]["status"] == "ok"
    assert node.end() == 0
    with Chain.open(directory) as chain:
        chain.check_invariants()
        assert chain.height == 3


def test_blocks_come_by_themselves_when_the_pace_is_an_interval(start: Start) -> None:
    """Empty ones too, and their timestamps are an interval of the chain apart."""
    node = start("dev", "--block-time", "10ms")
    height = 0
    while height < 5:
        height = node.ask("GET", "/height")[1]["height"]
    first, second = (node.ask("GET", f"/block/{number}")[1]["header"]["timestamp_ms"] for number in (3, 4))
    assert second - first == 1_000
    assert node.end() == 0


def test_node_ends_with_status_1_when_its_chain_fails(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says why, as JSON, and that it is a bug."""
    monkeypatch.setattr("trailboss.chain.chain.apply_block", _contradict)
    node = start("dev", "--block-time", "10ms")
    assert node.wait() == 1
    said = (tmp_path / "log").read_text()
    assert "the chain contradicts itself" in said
    assert "sums differ" in said


def _contradict(*_: object, **__: object) -> None:
    raise InvariantError("sums differ")


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address).close()
    except OSError:
        return False
    return True
