"""Light proofs as people make them, of a node and an engine, and as others check them, with the genesis alone."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.conftest import Ask, Run, program
from tests.e2e.test_cli_remote import ready
from tests.integration.helpers import PUPPET, script, step
from tests.model.committee import Committee
from trailboss.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_deployment, draft_transaction
from trailboss.cli.remote import signed_headers
from trailboss.cli.remote.signed_headers import await_signed_header
from trailboss.execution.genesis import parse_genesis
from trailboss.light.engine_records import signed_header_document
from trailboss.model.blocks import Header
from trailboss.model.transactions import ExecuteActor, FundActor
from trailboss.primitives.octets import Address, Hash32

ALICE = development_account("account 0")
COMMITTEE = Committee((10, 10, 10, 10))
FAR = 1_000


def genesis_text(committee: Committee = COMMITTEE) -> str:
    text = f'chain_id = 7\nproposer = "{ALICE.address}"\n[accounts]\n"{ALICE.address}" = {10**16}\n'
    for each in committee.validators:
        text += f'[[validators]]\npublic_key = "0x{each.public_key.hex()}"\npower = {each.power}\n'
        text += f'fee_account = "{each.fee_account}"\n'
    return text


class Network:
    """A node of a network, an engine that signs its blocks, and what happened there."""

    def __init__(self, node: str, engine: str, height: int, timers: dict[str, Hash32], actor: Address) -> None:
        self.node, self.engine, self.height, self.timers, self.actor = node, engine, height, timers, actor


def build(directory: Path) -> tuple[dict[int, Header], dict[str, Hash32], Address]:
    """Build a chain in which one timer has fired, one was cancelled, and one lives; return its headers too."""
    with Chain.create(directory, parse_genesis(genesis_text())) as chain:

        def send(instruction: Any) -> Any:
            block = chain.build((draft_transaction(chain, instruction, ALICE.private_key),)).block
            (receipt,) = block.receipts
            assert receipt.error is None, receipt.error
            return receipt

        deployment, actor = draft_deployment(ALICE.address, PUPPET.encode(), b"")
        send(deployment)
        send(FundActor(actor, 10**13))
        soon = chain.height + 3
        heights = {"fired": soon, "cancelled": FAR, "live": FAR}
        payload = script(*(step("schedule_timer", height, name.encode()) for name, height in heights.items()))
        answer = json.loads(send(ExecuteActor(actor, "perform", payload)).return_value)
        timers = {name: Hash32(bytes.fromhex(each["$"])) for name, each in zip(heights, answer, strict=True)}
        send(ExecuteActor(actor, "perform", script(step("cancel_timer", bytes(timers["cancelled"])))))
        while chain.height < soon + 2:
            chain.build(())
        headers = {height: chain.blocks[height].header for height in range(chain.height + 1)}
    return headers, timers, actor


@contextmanager
def serving(answer: Callable[[str, dict[str, list[str]]], tuple[int, object]]) -> Iterator[str]:
    """Serve JSON over HTTP for the length of a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            status, document = answer(url.path, parse_qs(url.query))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def commit_result(headers: dict[int, Header], height: int) -> dict[str, object] | None:
    """Return what the engine has to say of a height: it signs our header of the height below."""
    committee = Committee((10, 10, 10, 10), parse_genesis(genesis_text()).engine_chain_id())
    if height - 1 not in headers:
        return None
    signed = signed_header_document(committee.sign(headers[height - 1], absent=(2,)))
    return {"signed_header": signed, "canonical": True}


def engine_answers(headers: dict[int, Header]) -> Callable[[str, dict[str, list[str]]], tuple[int, object]]:
    """Return what answers like an engine's RPC."""

    def answer(path: str, query: dict[str, list[str]]) -> tuple[int, object]:
        result = commit_result(headers, int(query["height"][0]))
        if path != "/commit" or result is None:
            return 500, {"jsonrpc": "2.0", "id": -1, "error": {"code": -32603, "message": "Internal error"}}
        return 200, {"jsonrpc": "2.0", "id": -1, "result": result}

    return answer


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    directory = tmp_path_factory.mktemp("network") / "chain"
    headers, timers, actor = build(directory)
    arguments = ("node", "--chain", directory, "--port", 0, "--no-explorer", "--block-time", "3600s", "--json")
    with (
        serving(engine_answers(headers)) as engine,
        program(*arguments, stderr=subprocess.DEVNULL) as process,
    ):
        node = f"http://127.0.0.1:{ready(process.stdout)['port']}"
        yield Network(node, engine, max(headers), timers, actor)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "genesis.toml").write_text(genesis_text(), encoding="utf-8")
    return tmp_path


def test_timer_is_proven_and_verified_with_the_genesis_alone(run: Run, ask: Ask, network: Network, files: Path) -> None:
    """Live, fired, cancelled and never there: each file says so to a reader of the genesis."""
    where = ("--node", network.node, "--engine", network.engine, "--out", "proof.json")
    timers, last = network.timers, network.height
    absent = Hash32(b"\x07" * 32)
    wanted = {
        (str(timers["live"])[:10],): (
            f"timer {timers['live']} of actor {network.actor} is due at height 1,000; it is live after block {last}"
        ),
        (timers["fired"],): f"in block {last - 2}, timer {timers['fired']} fired",
        (timers["cancelled"], "--height", last): f"in block 4, timer {timers['cancelled']} ended: cancelled",
        (absent, "--due", 900): f"no timer {absent} that is due at height 900 exists after block {last}",
        ("timers", 0, 2_000): f"after block {last}, 1 timer is due in 0..=2,000, and no other",
        ("storage", network.actor): f"after block {last}, actor {network.actor} has 2 slots, and no others",
    }
    for subject, said in wanted.items():
        made = ask("light", "prove", *subject, *where)
        found = ask("light", "verify", "proof.json", "--genesis", "genesis.toml")
        assert made["statement"] == found["statement"] == said
        assert found["holds"] is True
        assert found["support"] == {"signers": 3, "validators": 4, "power": 30, "total_power": 40}
    run("light", "prove", timers["fired"], *where)
    shown = run("light", "verify", "proof.json", "--genesis", "genesis.toml", columns=200).stdout
    assert f"timer {timers['fired']} fired" in shown
    assert "3 of 4 validators, with a power of 30 of 40" in shown


def test_forged_and_foreign_files_are_refused(run: Run, network: Network, files: Path) -> None:
    """Another network's genesis, a changed file, no JSON and no network at all: each refusal says why."""
    where = ("--node", network.node, "--engine", network.engine)
    proof = files / "proof.json"
    proof.write_text(run("light", "prove", network.timers["live"], *where).stdout, encoding="utf-8")
    verify = ("light", "verify", "proof.json", "--genesis")
    run(*verify, "genesis.toml")
    (files / "other.toml").write_text(genesis_text(Committee((10, 10, 10, 10), seed="other")), encoding="utf-8")
    assert "the signed header is of the chain" in run(*verify, "other.toml", status=1, columns=300).output
    (files / "none.toml").write_text(genesis_text().split("[[")[0], encoding="utf-8")
    assert "states no validators" in run(*verify, "none.toml", status=2).output
    (files / "bytes.toml").write_bytes(b"\xff")
    assert "is not UTF-8 at byte 0" in run(*verify, "bytes.toml", status=2).output
    document = json.loads(proof.read_text(encoding="utf-8"))
    document["header"]["state_root"] = "0x" + "00" * 32
    proof.write_text(json.dumps(document), encoding="utf-8")
    assert "the validators signed the header" in run(*verify, "genesis.toml", status=1, columns=300).output
    proof.write_text("{", encoding="utf-8")
    assert "is not JSON" in run(*verify, "genesis.toml", status=2).output


def test_prove_says_what_it_cannot_prove(
    run: Run, network: Network, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier states, subjects that are none, and commits that never come."""
    monkeypatch.setattr(signed_headers, "COMMIT_SECONDS", 0)
    where = ("--node", network.node, "--engine", network.engine)
    live, fired = network.timers["live"], network.timers["fired"]
    for subject in (live, fired):
        refused = run("light", "prove", subject, "--height", 2, *where, status=1, columns=300).output
        assert f"is at height {network.height}, and proves no earlier state, as that after block 2" in refused
    assert "cannot be proven" in run("light", "prove", "timers", 5, 1, *where, status=2, columns=300).output
    refused = run("light", "prove", live, "--node", network.node, status=1, columns=300).output
    assert f"has no commit of height {network.height + 1} after 0 s" in refused
    assert "is no URL of a node" in run("light", "prove", live, "--node", "x://y", status=1, columns=300).output


def test_signed_header_is_awaited_and_read_from_a_node(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node says not_found until its validators have committed; then it answers as its engine does."""
    monkeypatch.setattr(signed_headers, "POLL_SECONDS", 0)
    result = commit_result(
        {41: Header(1, 7, 41, *[bytes(32)] * 1, 0, bytes(20), *[bytes(32)] * 3, b"", b"", 0, 0, 0)}, 42
    )
    asked: list[str] = []

    def answer(path: str, _: dict[str, list[str]]) -> tuple[int, object]:
        asked.append(path)
        if len(asked) < 3:
            refusal = {"code": 4004, "slug": "not_found", "what": "none yet", "why": "", "fix": ""}
            return 404, {"error": refusal}
        return 200, result

    with serving(answer) as url:
        assert await_signed_header(url, None, 42).header.height == 42
    assert asked == ["/light/42"] * 3
