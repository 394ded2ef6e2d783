"""Timer payloads that name their handler."""

import json

import pytest

from trailboss.codec.canonical import encode_canonical
from trailboss.model.envelopes import route_payload

ROUTED = [
    (encode_canonical({"_handler": "tick", "_payload": b"\x00\xff"}), "tick", b"\x00\xff"),
    (b'{"_handler": "tick", "_payload": "AAE="}', "tick", b"\x00\x01"),
    (b' \n{"_payload": "", "_handler": "tick"}', "tick", b""),
    (b'{"_handler": "tick", "_payload": "no base64!"}', "tick", b'"no base64!"'),
    (b'{"_handler": "tick", "_payload": "AAE"}', "tick", b'"AAE"'),
    (b'{"_handler": "tick", "_payload": {"b": 1, "a": [1.5, "\xc3\xa9"]}}', "tick", b'{"a":[1.5,"\xc3\xa9"],"b":1}'),
    (b'{"_handler": "tick", "_payload": null}', "tick", b"null"),
    (json.dumps({"_handler": "n" * 256, "_payload": ""}).encode(), "n" * 256, b""),
]
RAW = [
    b"",
    b"\x00",
    b"plain",
    b"\x00CINT",
    encode_canonical({"_handler": "tick", "_payload": "text"}),
    encode_canonical({"_handler": "tick"}),
    encode_canonical({"_handler": "tick", "_payload": b"", "more": 1}),
    encode_canonical({"_handler": 5, "_payload": b""}),
    encode_canonical({"_handler": "", "_payload": b""}),
    encode_canonical({"_handler": "n" * 257, "_payload": b""}),
    encode_canonical({"_handler": "tick", "_payload": b""}) + b"\x00",
    bytes.fromhex("a2685f7061796c6f6164415f685f68616e646c6572647469636b"),
    b'{"_handler": "tick"}',
    b'{"_handler": "tick", "b": 1, "a": 2}',
    b"[1]",
    b'{"_handler": 5}',
    b'{"_handler": ""}',
    b'{"handler": "tick"}',
    b'{"_handler": "tick", "_handler": "tock"}',
    b'{"_handler": "tick", "_payload": NaN}',
    b'{"_handler": "\\ud800"}',
    b'{"_handler": "tick", "_payload": "\\ud800"}',
    b'{"_handler": "tick"',
    b'{"_handler": "tick", "_payload": "\xff"}',
    b'{"_handler": "tick", "_payload": ' + b"[" * 100_000,
    json.dumps({"_handler": "\xe9" * 129, "_payload": ""}).encode(),
]


@pytest.mark.spec("F-16")
@pytest.mark.parametrize(("payload", "handler", "inner"), ROUTED)
def test_payload_goes_to_the_handler_that_it_names(payload, handler, inner):
    """Canonical CBOR first, then JSON. Decision: D-04."""
    assert route_payload(payload, 256) == (handler, inner)


@pytest.mark.spec("F-02", "F-16")
@pytest.mark.parametrize("payload", RAW)
def test_payload_goes_unchanged_to_handle_timer_when_it_is_no_envelope(payload):
    """Whatever is not exactly an envelope is a payload."""
    assert route_payload(payload, 256) == ("handle_timer", payload)
