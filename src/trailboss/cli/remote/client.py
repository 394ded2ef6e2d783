"""Requests to a node, and what its refusals are here.

Decision: D-77
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx

from trailboss.cli.errors import Missing, Refused
from trailboss.primitives.errors import ErrorObject

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 60
"""Longer than a node takes for anything but an advance of many blocks, which comes in pieces."""
STREAM_TIMEOUT: Final = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
"""A stream without news has a heartbeat every few seconds."""
OCTETS: Final = "application/octet-stream"
BAD_REQUEST: Final = 400
REQUEST_TIMEOUT: Final = 408
OK: Final = 200


class Client:
    """Asks one node.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, url: str) -> None:
        """Prepare to ask; nothing is sent yet.

        Raises:
            Missing: If the URL cannot be one of a node.
        """
        self.url = url.rstrip("/")
        try:
            self._http = httpx.Client(
                base_url=self.url, timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS), trust_env=False
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise Missing(f"{url!r} is no URL of a node: {error}", "write it as http://localhost:4000") from None

    def get(self, path: str, **query: object) -> Any:
        """Return what the node answers at a path; parameters that are None are left out."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._document(self._request("GET", path, params=given))

    def post(self, path: str, members: Mapping[str, object] | None = None) -> Any:
        """Send a JSON object, and return the answer."""
        return self._document(self._request("POST", path, json=dict(members or {})))

    def post_octets(self, path: str, octets: bytes, *, expected: tuple[int, ...] = (OK,), **query: object) -> Any:
        """Send bytes, and return the answer, which may also come with another status that is expected."""
        given = {name: str(value) for name, value in query.items()}
        response = self._request("POST", path, content=octets, headers={"content-type": OCTETS}, params=given)
        return self._document(response, expected)

    def stream(self, path: str, **query: object) -> Iterator[str]:
        """Yield the lines of an answer that goes on, until the node ends it; parameters that are None are left out.

        Raises:
            Missing: If the node goes away.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        try:
            with self._http.stream("GET", path, params=given, timeout=STREAM_TIMEOUT) as response:
                yield from response.iter_lines()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Missing(
                f"the node at {self.url} is gone: {str(error) or type(error).__name__}", "see whether it still runs"
            ) from None

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _request(self, method: str, path: str, **what: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **what)
        except httpx.TimeoutException:
            raise Missing(
                f"the node at {self.url} has not answered {method} {path} in time", "see what its log says"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Missing(
                f"there is no node at {self.url}: {str(error) or type(error).__name__}",
                "start one with `trailboss dev`, or name another with --url",
            ) from None

    def refused(self, document: Mapping[str, Any]) -> Refused:
        """Return the refusal that an answer tells of."""
        return Refused(read_error(document["error"]))

    def _document(self, response: httpx.Response, expected: tuple[int, ...] = (OK,)) -> Any:
        try:
            document = response.json()
        except ValueError:
            document = None
        if response.status_code in expected and document is not None:
            return document
        error = document.get("error") if isinstance(document, dict) else None
        if not isinstance(error, dict) or error.keys() < {"code", "slug", "what", "why", "fix"}:
            raise Missing(
                f"{self.url} answers {response.status_code} and not as a node of Trailboss does",
                "name the URL of one with --url",
            )
        raise Refused(read_error(error))


def read_error(document: Mapping[str, Any]) -> ErrorObject:
    """Return the error that a node tells of."""
    return ErrorObject(
        code=int(document["code"]),
        slug=str(document["slug"]),
        what=str(document["what"]),
        why=str(document["why"]),
        fix=str(document["fix"]),
        context=dict(document.get("context") or {}),
    )
