"""Payload envelopes, read a second time from the specification. Decision: D-04."""

import base64
import binascii
import io
import json

import cbor2

HANDLER_BYTES_MAX = 256


def routed(payload: bytes) -> tuple[str, bytes]:
    """Return the handler that a scheduled payload names, and what the handler gets."""
    for read in (_from_cbor, _from_json):
        found = read(payload)
        if found is not None and 1 <= len(found[0].encode()) <= HANDLER_BYTES_MAX:
            return found
    return "handle_timer", payload


def _from_cbor(payload: bytes) -> tuple[str, bytes] | None:
    try:
        envelope = cbor2.load(io.BytesIO(payload))
    except (cbor2.CBORDecodeError, ValueError, TypeError, UnicodeDecodeError):
        return None
    if not isinstance(envelope, dict) or set(envelope) != {"_handler", "_payload"}:
        return None
    if not isinstance(envelope["_handler"], str) or not isinstance(envelope["_payload"], bytes):
        return None
    if cbor2.dumps(envelope, canonical=True) != payload:
        return None
    return envelope["_handler"], envelope["_payload"]


def _from_json(payload: bytes) -> tuple[str, bytes] | None:
    try:
        envelope = json.loads(payload.decode(), parse_constant=_refuse)
    except ValueError:
        return None
    if not isinstance(envelope, dict) or "_payload" not in envelope or not isinstance(envelope.get("_handler"), str):
        return None
    inner = envelope["_payload"]
    if isinstance(inner, str):
        try:
            return envelope["_handler"], base64.b64decode(inner.encode(), validate=True)
        except (binascii.Error, ValueError):
            pass
    # An object that repeats a name, and text without a UTF-8 form, are beyond what these histories send.
    text = json.dumps(inner, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return envelope["_handler"], text.encode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
