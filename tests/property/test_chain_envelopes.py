"""Payload envelopes, read by the chain and, independently, by the slow model."""

import base64
import json

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.envelopes import HANDLER_BYTES_MAX, routed
from trailboss.model.envelopes import route_payload

names = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["é" * 128, "é" * 129, "n" * HANDLER_BYTES_MAX, "n" * (HANDLER_BYTES_MAX + 1)]),
    st.none() | st.integers() | st.binary(max_size=3),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
encoded = st.binary(max_size=9).map(lambda octets: base64.b64encode(octets).decode())
keys = st.sampled_from(["_handler", "_payload", "_payloads", ""])


def almost(handlers: st.SearchStrategy[object], payloads: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return a strategy for what is an envelope, or nearly one."""
    whole = st.fixed_dictionaries({"_handler": handlers, "_payload": payloads})
    return st.one_of(whole, whole, st.dictionaries(keys, handlers | payloads, max_size=3), payloads)


def is_json(value: object) -> bool:
    """Return whether JSON can carry it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


in_cbor = st.tuples(almost(names, values), st.booleans()).map(lambda pair: cbor2.dumps(pair[0], canonical=pair[1]))
in_json = almost(names, encoded | values).filter(is_json).map(lambda value: json.dumps(value).encode())


@pytest.mark.spec("F-02", "F-16")
@given(st.one_of(in_cbor, in_json, st.binary(max_size=40)), st.sampled_from([b"", b"\x00", b" "]))
def test_envelopes_are_read_as_the_model_reads_them(payload: bytes, tail: bytes) -> None:
    """Whatever the payload, both agree on the handler and on what it gets."""
    assert route_payload(payload + tail, HANDLER_BYTES_MAX) == routed(payload + tail)
