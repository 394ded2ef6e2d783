"""The application around its routes: what becomes of an error before an answer, and after it has begun."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from trailboss.api.app import Api
from trailboss.api.limits import limited
from trailboss.node.metrics import Metrics
from trailboss.node.options import NodeOptions
from trailboss.primitives.errors import Rejection, RejectionReason

REFUSAL = Rejection(RejectionReason.NOT_FOUND, "there is no such thing")


def ask(error: Exception, *, chunks: int | None = None) -> tuple[list[dict[str, Any]], Exception | None]:
    """Return what is sent by a route that raises an error, after so many chunks of an answer, and what it raises."""

    async def broken() -> AsyncIterator[bytes]:
        for _ in range(chunks or 0):
            yield b"chunk"
        raise error

    async def route(_: Request) -> Response:
        if chunks is None:
            raise error
        return StreamingResponse(broken())

    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/thing", "query_string": b"", "headers": headers}
    application: Any = limited(Api([Route("/thing", route)]), NodeOptions(), Metrics())
    try:
        asyncio.run(application(scope, receive, send))
    except Exception as raised:  # noqa: BLE001  # whatever it is
        return sent, raised
    return sent, None


def test_refusal_is_the_answer_and_goes_no_further() -> None:
    """The server has nothing to log."""
    (start, body), raised = ask(REFUSAL)
    assert (start["status"], json.loads(body["body"])["error"]["code"], raised) == (404, 1203, None)


def test_failure_is_answered_and_goes_on_to_the_server() -> None:
    """Which logs it."""
    (start, body), raised = ask(KeyError("oh"))
    assert (start["status"], json.loads(body["body"])["error"]["what"]) == (500, "the node failed: KeyError")
    assert type(raised) is KeyError


@pytest.mark.parametrize("chunks", [0, 2])
@pytest.mark.parametrize("error", [REFUSAL, KeyError("oh")])
def test_nothing_follows_an_answer_that_has_begun(error: Exception, chunks: int) -> None:
    """Its client gets what has come, and an end; the error goes on to the server."""
    sent, raised = ask(error, chunks=chunks)
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * chunks]
    assert raised is error or error in getattr(raised, "exceptions", ())
