"""The consensus engine's header and commit of a height, from a node of the network or from the engine itself."""

from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, Final

from trailboss.cli.errors import NotFound, Refused
from trailboss.cli.remote.client import Client
from trailboss.light.engine_records import SignedHeader, read_signed_header

COMMIT_SECONDS: Final = 30
"""How long a commit is awaited: that of the head is there one block later."""
POLL_SECONDS: Final = 0.2
NO_SUCH: Final = "not_found"


def await_signed_header(url: str, engine: str | None, height: int) -> SignedHeader:
    """Return the signed header of a height, as soon as validators have committed it.

    Args:
        url: URL of a node.
        engine: URL of an engine's RPC, to be asked instead.
        height: Height of the engine's block.

    Raises:
        NotFound: If there is none in time.
        ProofError: If the answer is no signed header.
    """
    with closing(Client(url if engine is None else engine)) as client:
        ask: Callable[[Client, int], Any] = _of_node if engine is None else _of_engine
        end = monotonic() + COMMIT_SECONDS
        while (found := ask(client, height)) is None:
            if monotonic() > end:
                raise NotFound(
                    f"{client.url} has no commit of height {height} after {COMMIT_SECONDS} s",
                    "see whether its network builds blocks, and that it has not pruned that height",
                )
            sleep(POLL_SECONDS)
    return read_signed_header(found)


def _of_node(client: Client, height: int) -> Any:
    try:
        return client.get(f"/light/{height}")
    except Refused as refused:
        if refused.error.slug != NO_SUCH:
            raise
        return None


def _of_engine(client: Client, height: int) -> Any:
    expected = (HTTPStatus.OK, HTTPStatus.INTERNAL_SERVER_ERROR)
    answer = client.get("/commit", expected, height=height)
    return answer.get("result") if isinstance(answer, dict) else None
