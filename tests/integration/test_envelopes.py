"""Payload envelopes: which handler a fire calls, and with which bytes."""

import base64
import json

import pytest

from tests.integration.helpers import FUNDS
from trailboss.codec.canonical import encode_canonical
from trailboss.testing import ActorHandle, LocalChain

NOTES_WHAT_IT_GETS = """
def schedule(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 3, payload)


def handle_timer(payload):
    pvm_host.set_state(b"handle_timer", payload)


def collect(payload):
    pvm_host.set_state(b"collect", payload)
"""


def delivered(chain: LocalChain, payload: bytes) -> dict[bytes, bytes]:
    """Return which handler a timer's fire called, with what."""
    actor: ActorHandle = chain.deploy(NOTES_WHAT_IT_GETS, sender=chain.accounts[0], value=FUNDS)
    actor.call("schedule", payload, sender=chain.accounts[0], check=True)
    chain.mine(4)
    return dict(actor.storage)


def json_envelope(inner: object, **more: object) -> bytes:
    return json.dumps({"_handler": "collect", "_payload": inner, **more}).encode()


@pytest.mark.spec("F-16")
@pytest.mark.parametrize("inner", [b"", b"rent", bytes(range(256))])
def test_named_handler_gets_the_inner_bytes_when_the_payload_is_a_json_envelope(
    chain: LocalChain, inner: bytes
) -> None:
    """The text's envelope: base64 in JSON."""
    payload = json_envelope(base64.b64encode(inner).decode())
    assert delivered(chain, payload) == {b"collect": inner}


@pytest.mark.spec("F-16")
@pytest.mark.parametrize("inner", [b"", b"rent", bytes(range(256))])
def test_named_handler_gets_the_inner_bytes_when_the_payload_is_a_cbor_envelope(
    chain: LocalChain, inner: bytes
) -> None:
    """The public SDK's envelope: canonical CBOR with the bytes as they are."""
    payload = encode_canonical({"_handler": "collect", "_payload": inner})
    assert delivered(chain, payload) == {b"collect": inner}


@pytest.mark.spec("F-16")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"rent",
        b"{",
        b"{}",
        b"[]",
        b'{"handler":"collect"}',
        b'{"_handler":7,"_payload":""}',
        b'"_handler"',
        b"\xff\xfe\x00",
        encode_canonical({"_handler": "collect"}),
        encode_canonical({"_handler": "collect", "_payload": "text"}),
        encode_canonical({"_handler": "collect", "_payload": b"x", "more": 1}),
        encode_canonical({"_handler": "collect", "_payload": b"x"}) + b"\x00",
    ],
)
def test_handle_timer_gets_the_payload_unchanged_when_it_is_no_envelope(chain: LocalChain, payload: bytes) -> None:
    """Whatever is not exactly an envelope is the actor's own."""
    assert delivered(chain, payload) == {b"handle_timer": payload}


@pytest.mark.spec("F-16")
def test_json_payload_is_passed_on_as_compact_json_when_it_is_not_base64(chain: LocalChain) -> None:
    """As the public node does: sorted keys, no spaces."""
    assert delivered(chain, json_envelope({"b": [1, 2], "a": "x"})) == {b"collect": b'{"a":"x","b":[1,2]}'}
    assert delivered(chain, json_envelope("no base64!")) == {b"collect": b'"no base64!"'}


@pytest.mark.spec("F-16", "F-50")
def test_fire_reverts_when_the_envelope_names_a_handler_that_is_not_there(chain: LocalChain) -> None:
    """The name is not checked when scheduling; the fire reverts, is charged, and the timer is gone."""
    payload = encode_canonical({"_handler": "nobody", "_payload": b"x"})
    assert delivered(chain, payload) == {}
    (receipt,) = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1223, "handler_not_found")
    assert "nobody" in receipt.error.what
    assert receipt.fee_paid > 0
    assert chain.timers() == []
