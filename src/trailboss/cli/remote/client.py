"""Requests to a node, with the standard library: the command line needs no HTTP package. Decision: D-77."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

from msgspec import convert

from trailboss.cli.errors import NotFound, Refused
from trailboss.primitives.errors import ErrorObject

Kind = TypeVar("Kind")
Query = Mapping[str, object]
CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 60
"""Longer than a node takes for anything but an advance of many blocks, which is requested in pieces. A stream without
news has a heartbeat every few seconds."""
IDLE_SECONDS: Final = 2  # after this time a connection is made again: servers close idle ones after five seconds
OCTETS: Final = "application/octet-stream"
JSON: Final = "application/json"
REORG: Final = "reorg"
END: Final = "end"


class Client:
    """Sends requests to one node, over one connection."""

    def __init__(self, url: str) -> None:
        """Prepare; nothing is sent yet.

        Raises:
            NotFound: If the URL cannot be one of a node.
        """
        self.url = url.rstrip("/")
        try:
            self._target = split_url(self.url)
        except ValueError as error:
            raise NotFound(f"{url!r} is no URL of a node: {error}", "write it as http://localhost:4000") from None
        self._connection = connection_to(self._target)
        self._used_at = 0.0

    def get(self, path: str, expected: tuple[int, ...] = (HTTPStatus.OK,), /, **query: object) -> Any:
        """Return the answer at a path, if its status is expected; parameters that are None are left out."""
        return self._document(*self._request("GET", path, query), expected)

    def post(self, path: str, members: Mapping[str, object] | None = None) -> Any:
        """Send a JSON object, and return the answer."""
        return self._document(*self._request("POST", path, {}, json.dumps(dict(members or {})).encode(), JSON))

    def post_octets(
        self, path: str, octets: bytes, *, expected: tuple[int, ...] = (HTTPStatus.OK,), **query: object
    ) -> Any:
        """Send bytes, and return the answer, which may also come with another status that is expected."""
        return self._document(*self._request("POST", path, query, octets, OCTETS), expected)

    def stream(self, path: str, **query: object) -> Iterator[str]:
        """Yield the lines of an answer, over a connection of its own, until the node ends it.

        Raises:
            NotFound: If the node goes away.
        """
        try:
            with closing(connection_to(self._target)) as connection:
                for line in self._answer(connection, "GET", path, query):
                    yield line.decode().rstrip("\r\n")
        except (OSError, HTTPException) as error:
            raise NotFound(f"the node at {self.url} is gone: {reason_of(error)}", "see whether it still runs") from None

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._connection.close()

    def _request(
        self, method: str, path: str, query: Query, body: bytes | None = None, kind: str = JSON
    ) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        if monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        try:
            answer = self._answer(self._connection, method, path, query, body, kind)
            found = answer.status, answer.read()
        except KeyboardInterrupt:
            self.close()  # a console goes on, and the connection still awaits this answer
            raise
        except (OSError, HTTPException) as error:
            self.close()
            if isinstance(error, TimeoutError):
                what, fix = f"the node at {self.url} has not answered {method} {path} in time", "see what its log says"
            else:
                what = f"there is no node at {self.url}: {reason_of(error)}"
                fix = "start one with `trailboss dev`, or name another with --url"
            raise NotFound(what, fix) from None
        self._used_at = monotonic()
        return found

    def _answer(
        self, by: HTTPConnection, method: str, path: str, query: Query, body: bytes | None = None, kind: str = JSON
    ) -> HTTPResponse:
        given = {name: str(value) for name, value in query.items() if value is not None}
        target = f"{self._target.path}{path}{f'?{urlencode(given)}' if given else ''}"
        is_closed = by.sock is None
        if is_closed:
            by.connect()
            by.sock.settimeout(ANSWER_SECONDS)
        by.request(method, target, body, headers_for(self._target, None if body is None else kind))
        return by.getresponse()

    def _document(self, status: int, body: bytes, expected: tuple[int, ...] = (HTTPStatus.OK,)) -> Any:
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if status in expected and document is not None:
            return document
        error = document.get("error") if isinstance(document, dict) else None
        if not isinstance(error, dict) or error.keys() < {"code", "slug", "what", "why", "fix"}:
            raise NotFound(
                f"{self.url} answers {status} and not as a node of Trailboss does", "name the URL of one with --url"
            )
        raise Refused(read_error(error))


def split_url(url: str) -> SplitResult:
    """Return the parts of an HTTP URL.

    Raises:
        ValueError: If it is none.
    """
    target = urlsplit(url)
    if target.scheme not in ("http", "https"):
        raise ValueError("it must begin with http:// or https://")
    if not target.hostname or target.port == 0:
        raise ValueError("it must name a host, and a port above 0 if any")
    return target


def connection_to(target: SplitResult, seconds: float = CONNECT_SECONDS) -> HTTPConnection:
    """Return a connection to the host of a URL that opens with the first request, within a time."""
    kind = HTTPSConnection if target.scheme == "https" else HTTPConnection
    return kind(str(target.hostname), target.port, timeout=seconds)


def headers_for(target: SplitResult, kind: str | None) -> dict[str, str]:
    """Return the headers of a request: the type of its body, and the user and password that the URL names."""
    headers = {} if kind is None else {"Content-Type": kind}
    if target.username is not None:
        user = f"{unquote(target.username)}:{unquote(target.password or '')}".encode()
        headers["Authorization"] = f"Basic {b64encode(user).decode()}"
    return headers


def reason_of(error: Exception) -> str:
    """Return why a request failed."""
    return str(error) or type(error).__name__


def read(kind: type[Kind], document: object) -> Kind:
    """Return a record in an answer; members that it does not have are ignored."""
    return convert(document, kind, dec_hook=lambda inner, text: inner.parse(text))


def octets_of(digits: str) -> bytes:
    """Return the bytes of hexadecimal digits in an answer."""
    return bytes.fromhex(digits[2:])


def read_error(document: Mapping[str, Any]) -> ErrorObject:
    """Return the error in an answer."""
    return read(ErrorObject, {**document, "context": document.get("context") or {}})
