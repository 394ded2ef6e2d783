"""The socket on which the consensus engine asks its application: connections, framing, and which thread answers.

The engine opens four connections. On each, answers come in the order of the requests; between connections there is no
order, but for one: before Commit the engine waits for the answers of its mempool connection.

An answer that never comes would hang the node for good, so an error ends it, with its reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import DecodeError

from trailboss.network.messages import Request, Response
from trailboss.node.logs import log

Answered = TypeVar("Answered")
Handler = Callable[[Any, Any], object]
"""Answers a request: it fills in the answer, a message of the same kind."""
FRAME_BYTES_MAX: Final = 2**26  # of one request; a block has a mebibyte, a part of a snapshot at most 16
VARINT_BITS: Final = 7
VARINT_BYTES_MAX: Final = 5  # of a frame's length
OF_CONSENSUS: Final = frozenset({"init_chain", "prepare_proposal", "process_proposal", "finalize_block", "commit"})
"""Kinds of requests that only one of the engine's connections carries."""


class OnChain(Protocol):
    """Runs work on the thread that has the chain."""

    async def __call__(self, work: Callable[[], Answered], /) -> Answered:
        """Return what the work returns."""


class Answers(Protocol):
    """What answers the engine, by kind of request."""

    at_once: Mapping[str, Handler]  # on the event loop
    on_thread: Mapping[str, Handler]  # on the thread that has the chain

    def forget(self) -> None:
        """Take back what the engine has begun and will ask for again; on the thread that has the chain."""


class AbciServer:
    """Answers the engine of one node. Everything runs on one event loop, but for what goes to the chain's thread."""

    def __init__(self, answers: Answers, on_chain: OnChain, failed: Callable[[BaseException], object]) -> None:
        """Answer the engine; ``failed`` is called with an error that leaves a request without an answer."""
        self._answers = answers
        self._on_chain = on_chain
        self._failed = failed
        self._consensus: asyncio.StreamWriter | None = None  # the connection that asked last about blocks

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
                    await self._on_chain(self._answers.forget)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Any:
        """Return the next request; None at the end, or where what comes is none: then the engine has not sent it."""
        try:
            frame = await read_frame(reader)
            if frame is None:
                return None
            request = Request.FromString(frame)
            kind = request.WhichOneof("value")
            if kind not in self._answers.at_once and kind not in self._answers.on_thread:
                raise DecodeError(f"a request of the kind {kind}, to which this node has no answer now")
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
        if kind in self._answers.at_once:
            self._answers.at_once[kind](request, answer)
        else:
            await self._on_chain(lambda: self._answers.on_thread[kind](request, answer))
        # An answer that says nothing is an answer too.
        answer.SetInParent()
        return response


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
