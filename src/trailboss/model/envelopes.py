"""Timer payloads that name their handler: the function that a fire calls, and its argument. Decision: D-04."""

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from functools import lru_cache
from typing import Any, Final, NoReturn

from trailboss.codec.canonical import decode_canonical
from trailboss.model.timers import DEFAULT_HANDLER
from trailboss.primitives.errors import Rejection

HANDLER_KEY: Final = "_handler"
PAYLOAD_KEY: Final = "_payload"
_OPEN_MAP_OF_TWO: Final = 0xA2
_OPEN_OBJECT: Final = b"{"
_JSON_SPACE: Final = b" \t\r\n"
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"
NESTING_MAX: Final = 64  # deepest nesting of arrays and objects in an envelope


def route_payload(payload: bytes, handler_bytes_max: int) -> tuple[str, bytes]:
    """Return the handler that a timer's payload names, and its argument.

    In order: a canonical CBOR map of exactly ``_handler`` and ``_payload`` (bytes), as the public SDK sends; a JSON
    object with ``_handler`` and ``_payload``, the latter base64 text; anything else goes to ``handle_timer`` unchanged.
    A JSON ``_payload`` that is not base64 text is passed on as compact JSON with sorted keys. A handler name outside
    1..=``handler_bytes_max`` UTF-8 bytes falls back to ``handle_timer`` with the payload unchanged. Spec: CIP-5 §4.2.
    Decision: D-04.
    """
    routed = _route(payload)
    if routed is None or not _is_name(routed[0], handler_bytes_max):
        return DEFAULT_HANDLER, payload
    return routed


@lru_cache  # most timers fire with the payload of one before
def _route(payload: bytes) -> tuple[str, bytes] | None:
    return _from_cbor(payload) or _from_json(payload)


def _from_cbor(payload: bytes) -> tuple[str, bytes] | None:
    if not payload or payload[0] != _OPEN_MAP_OF_TWO:
        return None
    try:
        envelope = decode_canonical(payload)
    except Rejection:
        return None
    match envelope:
        case {"_handler": str(handler), "_payload": bytes(inner)}:
            return handler, inner
    return None


def _from_json(payload: bytes) -> tuple[str, bytes] | None:
    if payload.lstrip(_JSON_SPACE)[:1] != _OPEN_OBJECT:
        return None
    # How deep Python's reader gets before it gives up depends on who called it, and on the version.
    if _nesting(payload) > NESTING_MAX:
        return None
    try:
        envelope = json.loads(payload.decode(), object_pairs_hook=_distinct, parse_constant=_refuse_constant)
        if not isinstance(envelope, dict) or PAYLOAD_KEY not in envelope:
            return None
        if not isinstance(envelope.get(HANDLER_KEY), str):
            return None
        return envelope[HANDLER_KEY], _inner(envelope[PAYLOAD_KEY])
    except ValueError:
        return None


def _nesting(text: bytes) -> int:
    """Return the nesting depth of the brackets of a JSON text, outside its strings."""
    deepest = depth = 0
    for bracket in re.sub(rb"[^\[\]{}]+", b"", _JSON_STRING.sub(b"", text)):
        if bracket in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in _CLOSING:
            depth -= 1
    return deepest


def _inner(inner: object) -> bytes:
    if isinstance(inner, str):
        try:
            return b64decode(inner, validate=True)
        except (Base64Error, ValueError):
            return _compact(inner)
    return _compact(inner)


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    # Which of two equal names counts differs between JSON readers, so such an object is no envelope.
    if len({name for name, _ in members}) != len(members):
        raise ValueError(f"an object repeats one of its names: {[name for name, _ in members]}")
    return dict(members)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_name(handler: str, handler_bytes_max: int) -> bool:
    try:
        return 1 <= len(handler.encode()) <= handler_bytes_max
    # A lone surrogate, which JSON can spell, has no UTF-8 form.
    except UnicodeEncodeError:
        return False
