"""The socket of the engine: what it answers, in which order, and what it makes of what is no request."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.event_loop import on_loop
from tests.network.abci_client import FLUSH, Served, block_frame, frame, served, to_request
from tests.network.nodes import ACCOUNTS, VALIDATORS, Member, network_genesis, signed
from trailboss.execution.genesis import encode_genesis
from trailboss.model.transactions import Transfer
from trailboss.network.abci import FRAME_BYTES_MAX, to_frame
from trailboss.network.answers import RECHECK
from trailboss.network.application import OK, REFUSED, Application, Committee, Result
from trailboss.network.halts import NetworkHaltError
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32

PIPELINED = 500
ROOT = Path(__file__).resolve().parents[2]
CLI = shutil.which("abci-cli", path=f"{ROOT / '.engine'}{os.pathsep}{os.environ.get('PATH', '')}")


def transfer(member: Member, *, waiting: int = 0) -> bytes:
    return signed(member.chain, Transfer(ACCOUNTS[1].address, 3), waiting=waiting)


async def check_alive(socket: Served, height: int = 0) -> None:
    """Another connection is answered, and no failure has been reported."""
    connection = await socket.connect()
    assert (await connection.ask(frame("info"))).info.last_block_height == height
    await connection.close()
    assert socket.failures == []


async def closed(socket: Served, octets: bytes) -> list[str]:
    """Send bytes and an end, and return the kinds of what is answered before the other side closes."""
    connection, kinds = await socket.connect(), []
    await connection.send(octets)
    await connection.finish()
    while (answer := await connection.read()) is not None:
        kinds.append(answer.WhichOneof("value"))
    await connection.close()
    return kinds


# Frames


@on_loop
async def test_requests_are_answered_alike_wherever_the_stream_is_split(member: Member) -> None:
    """At every byte, and byte by byte."""
    requests = frame("echo", message=b"x" * 130) + frame("info") + frame("check_tx", tx=b"\x02") + frame(FLUSH)
    async with served(member) as socket:
        answers = set()
        for split in range(len(requests)):
            connection = await socket.connect()
            await connection.send(requests[:split])
            await connection.send(requests[split:])
            answers.add(tuple([(await connection.read()).SerializeToString() for _ in range(4)]))
            await connection.close()
        connection = await socket.connect()
        for octet in requests:
            await connection.send(bytes([octet]))
        answers.add(tuple([(await connection.read()).SerializeToString() for _ in range(4)]))
        assert len(answers) == 1
        await check_alive(socket)


@on_loop
async def test_pipelined_transactions_are_answered_in_their_order(new_member: Callable[..., Member]) -> None:
    """Hundreds of CheckTx in one write, good and bad, each with the verdict that it gets alone."""
    member, alone = new_member(), new_member()
    raws = [
        transfer(member, waiting=place // 4) if place % 4 == 0 else bytes([2]) * (place % 7) + bytes([place % 256])
        for place in range(PIPELINED)
    ]
    expected = []
    for raw in raws:
        rejection = alone.application.check_transaction(raw).rejection
        expected.append("" if rejection is None else rejection.what)
    async with served(member) as socket:
        connection = await socket.connect()
        await connection.send(b"".join(frame("check_tx", tx=raw) for raw in raws) + frame(FLUSH))
        answers = [(await connection.read()).check_tx for _ in raws]
        assert (await connection.read()).WhichOneof("value") == FLUSH
        assert [each.log for each in answers] == expected
        assert [each.code != OK for each in answers] == [bool(what) for what in expected]
        assert len({*expected}) > 10
        assert len(member.mempool) == sum(not what for what in expected)


@pytest.mark.parametrize(
    ("octets", "answered"),
    [
        (b"\x80", []),
        (b"\x80" * 5 + b"\x01", []),
        (b"\xff" * 10, []),
        (frame("info")[:-1] if len(frame("info")) > 2 else b"\x05\x1a", []),
        (b"\x05\x1a\x00", []),
        ((FRAME_BYTES_MAX + 1).to_bytes(5, "little"), []),
        (b"\x81\x80\x80\x20" + bytes(8), []),
        (frame("info") + b"\x03\xff\xff\xff", ["info"]),
        (b"\x00", []),
        (b"\x02\x22\x00", []),
        (b"\x03\xca\x3e\x00", []),
        (frame("echo") + frame(FLUSH) + b"GET / HTTP/1.1\r\n\r\n", ["echo", FLUSH]),
    ],
    ids=[
        *("cut-length", "long-length", "endless-length", "cut-frame", "short-frame", "large", "larger", "noise-after"),
        *("no-kind", "kind-of-old", "kind-of-none", "http"),
    ],
)
def test_connection_alone_is_closed_when_it_does_not_speak_the_protocol(octets: bytes, answered: list[str]) -> None:
    """What came before is answered, and the other connections go on."""

    @on_loop
    async def test() -> None:
        member = Member(network_genesis())
        async with served(member) as socket:
            assert await closed(socket, octets) == answered
            await check_alive(socket)
        member.close()

    test()


@given(octets=st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_end_their_connection_at_most(member: Member, octets: bytes) -> None:
    """No failure, whatever they are."""

    @on_loop
    async def test() -> None:
        async with served(member) as socket:
            await closed(socket, octets)
            await check_alive(socket)

    test()


@on_loop
async def test_text_that_is_no_text_is_answered(member: Member) -> None:
    """A client of the engine chooses it: the path of a query, the message of an echo."""
    async with served(member) as socket:
        connection = await socket.connect()
        assert (await connection.ask(frame("echo", message=b"\xff\xfe\x00"))).echo.message == b"\xff\xfe\x00"
        answer = (await connection.ask(frame("query", path=b"\xff/\xc0", data=b"\x00\xff"))).query
        assert answer.code != OK
        assert "REST" in answer.log
        assert (await connection.ask(frame("query"))).query.code != OK
        # The engine itself states its version; another peer than the engine is cut off.
        assert await closed(socket, b"\x05\x1a\x03\x0a\x01\xff") == []
        await check_alive(socket)


# Transactions


@given(noise=st.binary(max_size=400), cut=st.integers(0, 300), flip=st.integers(0, 8 * 150))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_noise_is_no_transaction(member: Member, noise: bytes, cut: int, flip: int) -> None:
    """Random bytes, and a transaction that is cut, bent or longer: a code, some words, and the connection goes on."""
    raw = transfer(member)
    bent = bytearray(raw)
    bent[flip // 8 % len(raw)] ^= 1 << flip % 8

    @on_loop
    async def test() -> None:
        async with served(member) as socket:
            connection = await socket.connect()
            for each in (noise, raw[: min(cut, len(raw) - 1)], raw + noise + b"\x00", bytes(bent), b""):
                for kind in (0, RECHECK, 7):
                    answer = (await connection.ask(frame("check_tx", tx=each, type=kind))).check_tx
                    assert answer.code != OK
                    assert bool(answer.log) is (kind != RECHECK)
            await check_alive(socket)

    test()
    assert len(member.mempool) == 0


@on_loop
async def test_recheck_says_whether_a_transaction_waits(member: Member) -> None:
    """Before it came, while it waits, and after a block has taken it; sent twice it is still welcome."""
    raw = transfer(member)
    async with served(member) as socket:
        mempool, consensus = await socket.connect(), await socket.connect()
        codes = []
        for step in ("before", "waits", "taken"):
            if step == "waits":
                assert [(await mempool.ask(frame("check_tx", tx=raw))).check_tx.code for _ in range(2)] == [OK, OK]
            if step == "taken":
                await consensus.ask(block_frame(1, raw))
                await consensus.ask(frame("commit"))
            codes.append((await mempool.ask(frame("check_tx", tx=raw, type=RECHECK))).check_tx.code)
        assert codes == [REFUSED, OK, REFUSED]
        assert (await mempool.ask(frame("check_tx", tx=raw))).check_tx.code != OK
        await check_alive(socket, height=1)


# Blocks


@on_loop
async def test_chain_is_built_over_the_socket(member: Member) -> None:
    """From the handshake on, as the engine asks for it; a hostile proposal is voted against."""
    genesis, raw = member.genesis, transfer(member)
    async with served(member) as socket:
        connection = await socket.connect()
        begin = to_request(
            "init_chain",
            chain_id=genesis.engine_chain_id(),
            time={"seconds": 1_000},
            initial_height=1,
            app_state_bytes=b'{"genesis": "0x' + encode_genesis(genesis).hex().encode() + b'"}',
        )
        for each in VALIDATORS:
            begin.init_chain.validators.add(power=each.power).pub_key.ed25519 = each.public_key
        assert (await connection.ask(to_frame(begin))).init_chain.app_hash == member.chain.blocks[0].hash
        await connection.ask(frame("check_tx", tx=raw))
        proposed = (await connection.ask(frame("prepare_proposal", max_tx_bytes=10**6))).prepare_proposal.txs
        assert list(proposed) == [raw]
        votes = [
            (await connection.ask(frame("process_proposal", txs=txs))).process_proposal.status
            for txs in ([raw], [raw, raw])
        ]
        assert votes == [1, 2]
        finalized = (await connection.ask(block_frame(1, raw, b"noise", proposer=3))).finalize_block
        assert [each.code for each in finalized.tx_results] == [OK, REFUSED]
        assert (await connection.ask(frame("info"))).info.last_block_height == 0
        assert (await connection.ask(frame("commit"))).WhichOneof("value") == "commit"
        info = (await connection.ask(frame("info"))).info
        assert (info.last_block_height, info.last_block_app_hash) == (1, finalized.app_hash)
        assert bytes(member.chain.head.header.proposer) == VALIDATORS[3].fee_account
        assert socket.failures == []


@on_loop
async def test_staged_block_is_forgotten_when_the_connection_of_consensus_ends(member: Member) -> None:
    """The engine is gone: other work on the chain goes on, and its next connection asks for the block again."""
    raw = transfer(member)
    async with served(member) as socket:
        first = await socket.connect()
        finalized = (await first.ask(block_frame(1, raw))).finalize_block
        assert member.builder.is_staged
        await first.close()
        await check_alive(socket)
        assert not member.builder.is_staged
        assert member.chain.state_root == member.chain.head.header.state_root
        second = await socket.connect()
        assert (await second.ask(block_frame(1, raw))).finalize_block == finalized
        await second.ask(frame("commit"))
        await check_alive(socket, height=1)


@on_loop
async def test_block_of_a_new_engine_stays_when_the_old_one_is_noticed_late(member: Member) -> None:
    """The chain was busy with the old engine's request when that ended: its end takes nothing from the new one."""
    raw = transfer(member)
    async with served(member) as socket:
        old, new = await socket.connect(), await socket.connect()
        async with socket.chain:
            await old.send(block_frame(1, raw) + frame(FLUSH))
            await old.close()
            await new.send(block_frame(1, raw) + frame(FLUSH))
        assert (await new.read()).WhichOneof("value") == "finalize_block"
        assert (await new.read()).WhichOneof("value") == FLUSH
        assert (await new.ask(frame("commit"))).WhichOneof("value") == "commit"
        await check_alive(socket, height=1)


@on_loop
async def test_staged_block_stays_when_another_connection_ends(member: Member) -> None:
    """Those of the mempool, of queries and of snapshots, and whatever a stranger opens, in this process or another."""
    program = (
        "import socket, sys\nwith socket.socket(socket.AF_UNIX) as s:\n s.connect(sys.argv[1])\n"
        " s.sendall(bytes.fromhex(sys.argv[2]))\n s.shutdown(1)\n s.recv(9)"
    )
    raw = transfer(member)
    async with served(member) as socket:
        consensus, waiting = await socket.connect(), await socket.connect()
        await consensus.ask(block_frame(1, raw))
        for octets in (
            frame("check_tx", tx=b"x"),
            frame("query"),
            frame("list_snapshots") + frame(FLUSH),
            frame("load_snapshot_chunk", height=1) + frame(FLUSH),
            b"\xff" * 300,
            block_frame(2, raw)[:-1],
        ):
            await closed(socket, octets)
            stranger = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, str(socket.path), octets.hex(), stderr=subprocess.DEVNULL
            )
            assert await stranger.wait() == 0
        assert member.builder.is_staged
        assert (await waiting.ask(frame("check_tx", tx=raw))).check_tx.code == OK
        assert (await consensus.ask(frame("commit"))).WhichOneof("value") == "commit"
        await check_alive(socket, height=1)


@pytest.mark.parametrize(
    ("octets", "kind", "words"),
    [
        (frame("commit"), InvariantError, "no block is staged"),
        (block_frame(2), NetworkHaltError, "finalizes block 2"),
        (frame("finalize_block", height=1, proposer_address=b"\x01"), NetworkHaltError, "genesis does not state"),
        (frame("init_chain", chain_id="another"), NetworkHaltError, "chain_id"),
    ],
    ids=["commit", "gap", "stranger", "genesis"],
)
def test_node_fails_when_a_request_cannot_be_answered(octets: bytes, kind: type[Exception], words: str) -> None:
    """The error is reported, and the engine is not left waiting."""

    @on_loop
    async def test() -> None:
        member = Member(network_genesis())
        async with served(member) as socket:
            connection = await socket.connect()
            assert await connection.ask(octets) is None
            (failure,) = socket.failures
            assert isinstance(failure, kind)
            assert words in str(failure)
        member.close()

    test()


@on_loop
async def test_node_fails_when_a_fault_of_its_own_is_a_value_error(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for a peer that does not speak the protocol."""

    def broken(_: int) -> list[bytes]:
        raise ValueError("a fault in the builder")

    monkeypatch.setattr(member.builder, "propose", broken)
    async with served(member) as socket:
        connection = await socket.connect()
        assert await connection.ask(frame("prepare_proposal", max_tx_bytes=100)) is None
        assert [str(each) for each in socket.failures] == ["a fault in the builder"]


# Another client


class Unaddressed(Application):
    """Fills in what `abci-cli` states of no block: height, time and proposer."""

    def finalize(
        self, height: int, time_ns: int, transactions: list[bytes], committee: Committee
    ) -> tuple[list[Result], Hash32]:
        next_height = self.view.height + 1
        return super().finalize(
            height or next_height,
            time_ns if time_ns > 0 else (1_000 + next_height) * 10**9,
            transactions,
            committee if committee.proposer else Committee(VALIDATORS[0].identity),
        )


@pytest.mark.skipif(CLI is None, reason="abci-cli is not installed: `make engine` does it")
@on_loop
async def test_another_client_drives_the_application(member: Member) -> None:
    """A batch of the engine's own project, which is written in Go: echo, info, transactions, blocks, queries."""
    raws = [f"0x{transfer(member, waiting=place).hex()}" for place in range(2)]
    batch = [
        *("echo hello", "info", f"check_tx {raws[0]}", "check_tx 0x00", f"finalize_block {raws[0]} {raws[1]} 0x02"),
        *("commit", "info", 'query "abc"', f"check_tx {raws[0]}", "finalize_block 0x02", "commit", "info"),
    ]
    async with served(member, lambda each: Unaddressed(each.builder, each.mempool)) as socket:
        process = await asyncio.create_subprocess_exec(
            *(str(CLI), "--address", f"unix://{socket.path}", "batch"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate("\n".join(batch).encode() + b"\n")
        text = output.decode()
        print(text)
        assert process.returncode == 0, text
        assert "hello" in text
        assert member.chain.height == 2
        assert member.chain.head.hash.hex().upper() in text.upper()
        assert [len(block.transactions) for block in member.chain.blocks] == [0, 2, 0]
        assert socket.failures == []
