"""Heads of requests: what of them tells whether a request may harm."""

import re
from typing import Final

from starlette.types import Scope

from trailboss.api.errors import HttpError, HttpReason
from trailboss.node.options import is_loopback

SHOWN_CHARACTERS_MAX: Final = 80
"""Characters of a wrong value that an error repeats."""
MEDIA_TYPES: Final = ("application/json", "application/octet-stream")
ANY_ORIGIN: Final = "*"
PREFLIGHT: Final = "OPTIONS"
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", re.ASCII)
_LOOKED_AT: Final = frozenset(
    (
        b"host",
        b"origin",
        b"content-type",
        b"content-length",
        b"transfer-encoding",
        b"expect",
        b"access-control-request-method",
    )
)


class RequestHead:
    """What of a request's head is looked at.

    Attributes:
        hosts: Values of Host, in small letters.
        origin: The origin whose page asks, in small letters; None if it is no page that asks.
        media_types: Values of Content-Type without parameters, in small letters.
        length: Bytes of the body, as announced; 0 for none, or for what is not announced.
        has_body: Whether a body comes.
        expects_leave: Whether the client waits to be told to send the body.
        is_preflight: Whether a browser asks what pages of the origin may do.
    """

    __slots__ = ("expects_leave", "has_body", "hosts", "is_preflight", "length", "media_types", "origin")

    def __init__(self, scope: Scope) -> None:
        found: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            if name in _LOOKED_AT:
                found.setdefault(name, []).append(value.decode("latin-1"))
        origins = found.get(b"origin")
        lengths = found.get(b"content-length", ["0"])
        self.hosts = tuple(map(str.lower, found.get(b"host", ())))
        self.origin = None if origins is None else ",".join(origins).lower()
        self.media_types = tuple(each.partition(";")[0].strip().lower() for each in found.get(b"content-type", ()))
        # The server has refused what is no number, and what is no one number.
        self.length = int(lengths[0])
        self.has_body = bool(self.length) or b"transfer-encoding" in found
        self.expects_leave = b"expect" in found
        self.is_preflight = b"access-control-request-method" in found and scope.get("method") == PREFLIGHT

    def check_host(self, *, is_local: bool, bound: str) -> None:
        """Check that the request is for this node, and not for a name that somebody has given this machine's address.

        Args:
            is_local: Whether only this machine can reach the node.
            bound: What it listens on.

        Raises:
            HttpError: ``BAD_REQUEST`` unless there is one host; ``WRONG_HOST`` for another one than a local node has.
        """
        if len(self.hosts) != 1:
            raise HttpError(HttpReason.BAD_REQUEST, f"the request names {len(self.hosts)} hosts, it must name one")
        if not is_local:
            return
        parts = _HOST.fullmatch(self.hosts[0])
        name = None if parts is None else parts[1] or parts[2]
        if name is None or not (name == bound or is_loopback(name)):
            shown = self.hosts[0][:SHOWN_CHARACTERS_MAX]
            raise HttpError(HttpReason.WRONG_HOST, f"the request is for the host {shown!r}", host=shown)

    def check_origin(self, origins: frozenset[str]) -> None:
        """Check that it is no page of another origin that asks. Programs name no origin.

        Args:
            origins: Those whose pages may ask.

        Raises:
            HttpError: ``FOREIGN_ORIGIN``.
        """
        if self.origin is None or self.is_shared_with(origins):
            return
        if self.origin.partition("://")[2] != self.hosts[0]:
            shown = self.origin[:SHOWN_CHARACTERS_MAX]
            raise HttpError(HttpReason.FOREIGN_ORIGIN, f"a page of {shown!r} asks", origin=shown)

    def is_shared_with(self, origins: frozenset[str]) -> bool:
        """Return whether the page that asks is of one of the origins."""
        return self.origin is not None and (self.origin in origins or ANY_ORIGIN in origins)

    def check_media_type(self) -> None:
        """Check that the body is of a type that no page can send unasked.

        Raises:
            HttpError: ``MEDIA_TYPE``.
        """
        if len(self.media_types) != 1 or self.media_types[0] not in MEDIA_TYPES:
            shown = ", ".join(self.media_types)[:SHOWN_CHARACTERS_MAX] or "of no media type"
            known = " or ".join(MEDIA_TYPES)
            raise HttpError(HttpReason.MEDIA_TYPE, f"the body is {shown}, it must be {known}", value=shown, rule=known)
