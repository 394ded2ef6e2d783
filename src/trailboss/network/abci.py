"""The socket on which the consensus engine asks its application: framing, dispatch, and the answers as messages.

The engine opens four connections. On each, answers come in the order of the requests; between connections there is no
order, but for one: before Commit the engine waits for the answers of its mempool connection. So what only looks at the
mempool is answered at once, on the event loop, and what concerns the next block goes to the thread that has the chain.

An answer that never comes would hang the node for good, so an error ends it, with its reason.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from trailboss import __version__
from trailboss.network.application import (
    APPLICATION_VERSION,
    NANOSECONDS_PER_MS,
    OK,
    REFUSED,
    Application,
    Committee,
)
from trailboss.network.messages import Request, Response
from trailboss.network.snapshots import Sync
from trailboss.node.logs import log

Answered = TypeVar("Answered")
FRAME_BYTES_MAX: Final = 2**26  # of one request; a block has a mebibyte, a part of a snapshot at most 16
VARINT_BITS: Final = 7
VARINT_BYTES_MAX: Final = 5  # of a frame's length
RECHECK: Final = 1  # kind of CheckTx: whether a transaction that was accepted still waits
ACCEPT, REJECT = 1, 2  # votes on a proposal
ABSENT: Final = 1  # flag of a validator that did not sign a block; 2 signed it, 3 signed that there be none
NANOSECONDS: Final = 1_000_000_000
UNKNOWN_QUERY: Final = 1
NO_QUERY: Final = "ask the node's REST API: it answers with proofs"
OF_CONSENSUS: Final = frozenset({"init_chain", "prepare_proposal", "process_proposal", "finalize_block", "commit"})
"""Kinds of requests that only one of the engine's connections carries."""


class OnChain(Protocol):
    """Runs work on the thread that has the chain."""

    async def __call__(self, work: Callable[[], Answered], /) -> Answered:
        """Return what the work returns."""


class AbciServer:
    """Answers the engine of one node. Everything runs on one event loop, but for what goes to the chain's thread."""

    def __init__(
        self, application: Application, sync: Sync, on_chain: OnChain, failed: Callable[[BaseException], object]
    ) -> None:
        """Answer for an application; ``failed`` is called with an error that leaves a request without an answer."""
        self._application = application
        self._sync = sync
        self._on_chain = on_chain
        self._failed = failed
        self._consensus: asyncio.StreamWriter | None = None  # the connection that asked last about blocks
        self._at_once: dict[str, Callable[[Any, Any], None]] = {
            "echo": self._echo,
            "flush": lambda _, answer: answer.SetInParent(),
            "info": self._info,
            "query": self._query,
            "check_tx": self._check_tx,
            "list_snapshots": self._sync.list_snapshots,
        }
        self._on_thread: dict[str, Callable[[Any, Any], None]] = {
            "init_chain": self._init_chain,
            "prepare_proposal": self._prepare_proposal,
            "process_proposal": self._process_proposal,
            "extend_vote": lambda _, answer: answer.SetInParent(),
            "verify_vote_extension": self._verify_vote_extension,
            "finalize_block": self._finalize_block,
            "commit": self._commit,
            "load_snapshot_chunk": self._sync.load_chunk,
            "offer_snapshot": self._sync.offer,
            "apply_snapshot_chunk": self._sync.apply_chunk,
        }

    async def listen(self, path: Path) -> asyncio.Server:
        """Accept the engine's connections at a path; what another process has left there goes."""
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, path)
        path.chmod(0o600)
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await self._read(reader)) is not None:
                kind = request.WhichOneof("value")
                if kind in OF_CONSENSUS:
                    self._consensus = writer
                writer.write(to_frame(await self._answer(kind, getattr(request, kind))))
                if kind != "check_tx":
                    await writer.drain()
        except ConnectionError:
            pass
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine waits for an answer that does not come
            self._failed(error)
        finally:
            # The engine is gone, unless another one asks for the same block already. A node that stops has forgotten.
            if self._consensus is writer:
                with suppress(Exception):
                    await self._on_chain(self._application.forget)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Any:
        """Return the next request; None at the end, or where what comes is none: then the engine has not sent it."""
        try:
            frame = await read_frame(reader)
            if frame is None:
                return None
            request = Request.FromString(frame)
            if request.WhichOneof("value") is None:
                raise DecodeError("a request of no kind")
        except (DecodeError, ValueError) as error:
            # Something else has opened the socket, and that alone is cut off.
            log().warning(
                "a connection of the engine's socket is closed: it does not speak the protocol", what=str(error)
            )
            return None
        return request

    async def _answer(self, kind: str, request: Any) -> Any:
        response = Response()
        answer = getattr(response, kind)
        if kind in self._at_once:
            self._at_once[kind](request, answer)
        else:
            await self._on_chain(lambda: self._on_thread[kind](request, answer))
        # An answer that says nothing is an answer too.
        answer.SetInParent()
        return response

    # On the event loop

    def _echo(self, request: Any, answer: Any) -> None:
        answer.message = request.message

    def _info(self, _: Any, answer: Any) -> None:
        height, app_hash = self._application.standing()
        answer.data, answer.version, answer.app_version = "trailboss", __version__, APPLICATION_VERSION
        answer.last_block_height = height
        if height:
            answer.last_block_app_hash = app_hash

    def _query(self, _: Any, answer: Any) -> None:
        answer.code, answer.log = UNKNOWN_QUERY, NO_QUERY
        answer.height = self._application.standing()[0]

    def _check_tx(self, request: Any, answer: Any) -> None:
        if request.type == RECHECK:
            answer.code = OK if self._application.still_waits(request.tx) else REFUSED
            return
        outcome = self._application.check_transaction(request.tx)
        rejection = outcome.rejection
        # The node that took a transaction from a client has it in its mempool before its engine asks.
        if rejection is not None and not self._application.still_waits(request.tx):
            answer.code, answer.log, answer.codespace = rejection.reason.code or REFUSED, rejection.what, "trailboss"

    # On the thread that has the chain

    def _init_chain(self, request: Any, answer: Any) -> None:
        validators = [(each.pub_key.ed25519, each.power) for each in request.validators]
        time_ms = _nanoseconds(request.time) // NANOSECONDS_PER_MS
        genesis = stated_genesis(request.app_state_bytes)
        answer.app_hash = self._application.begin(
            request.chain_id, time_ms, validators, genesis, request.initial_height
        )

    def _prepare_proposal(self, request: Any, answer: Any) -> None:
        answer.txs.extend(self._application.propose(request.max_tx_bytes))

    def _process_proposal(self, request: Any, answer: Any) -> None:
        rejection = self._application.check_proposal(request.txs)
        answer.status = ACCEPT if rejection is None else REJECT
        if rejection is not None:
            log().warning(
                "voted against a proposal",
                height=request.height,
                proposer=request.proposer_address.hex(),
                reason=rejection.reason.slug,
                what=rejection.what,
            )

    def _verify_vote_extension(self, _: Any, answer: Any) -> None:
        # Genesis turns extensions off, so there is none; refusing would only lose a vote.
        answer.status = ACCEPT

    def _finalize_block(self, request: Any, answer: Any) -> None:
        for each in request.misbehavior:
            log().warning(
                "a validator is proven to misbehave", validator=each.validator.address.hex(), height=each.height
            )
        votes = request.decided_last_commit.votes
        committee = Committee(
            request.proposer_address,
            [each.validator.address for each in votes if each.block_id_flag != ABSENT],
            [each.validator.address for each in votes if each.block_id_flag == ABSENT],
        )
        time_ns = _nanoseconds(request.time)
        results, app_hash = self._application.finalize(request.height, time_ns, request.txs, committee)
        for result in results:
            answer.tx_results.add(
                code=result.code, gas_wanted=result.cycles_limit, gas_used=result.cycles_used, log=result.words
            )
        answer.app_hash = app_hash

    def _commit(self, _: Any, answer: Any) -> None:
        self._application.commit()
        self._sync.take()
        answer.SetInParent()


def stated_genesis(app_state: bytes) -> bytes:
    """Return the encoded genesis that an engine's genesis states; empty if it states none."""
    try:
        return bytes.fromhex(msgspec.json.decode(app_state)["genesis"].removeprefix("0x"))
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError):
        return b""


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next frame without its length; None at the end of the stream.

    Raises:
        ValueError: If it ends within a frame, or a length is too long or too large.
    """
    length = shift = 0
    for at in range(VARINT_BYTES_MAX):
        octet = await reader.read(1)
        if not octet:
            if at == 0:
                return None
            raise ValueError("the stream ends within the length of a frame")
        length |= (octet[0] & 0x7F) << shift
        shift += VARINT_BITS
        if octet[0] < 0x80:
            break
    else:
        raise ValueError(f"the length of a frame has more than {VARINT_BYTES_MAX} bytes")
    if length > FRAME_BYTES_MAX:
        raise ValueError(f"a frame has {length} bytes, above {FRAME_BYTES_MAX}")
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise ValueError(f"the stream ends after {len(error.partial)} bytes of a frame of {length}") from None


def to_frame(response: Any) -> bytes:
    """Return an answer's wire bytes, its length before it."""
    body: bytes = response.SerializeToString()
    length, octets = len(body), bytearray()
    while length >= 0x80:
        octets.append(length & 0x7F | 0x80)
        length >>= VARINT_BITS
    octets.append(length)
    return bytes(octets) + body


def _nanoseconds(time: Any) -> int:
    return int(time.seconds) * NANOSECONDS + int(time.nanos)
