"""The transaction codec, beside the public one."""

import cowboy_protocol

from benchmarks.measure import Case, Report, measure, repeated
from benchmarks.world import World
from trailboss.codec.canonical import (
    decode_canonical,
    encode_canonical,
    encode_integer,
    encode_octets,
    encode_text,
    fields_template,
)
from trailboss.codec.textual import from_json, to_text
from trailboss.codec.wire import decode_transaction, encode_transaction, signing_hash
from trailboss.model.transactions import ExecuteActor, Transaction, sign_transaction
from trailboss.primitives.octets import Address

CALLS = 500
PEER_CALLS = 20
HEIGHT, HANDLER, IDENTITY = 1_000_000, "on_tick", bytes(range(32))
FACTS = {"height": HEIGHT, "handler": HANDLER, "timer_id": IDENTITY}
"""Fields of an event."""
TEMPLATE = fields_template(*FACTS)


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Codec: one signed ExecuteActor transaction with 32 bytes of payload", "one call")
    world = World(senders=1, actors=1)
    signed = world.sign(0, ExecuteActor(Address(bytes(20)), "on_tick", bytes(32)), cycles=100_000, cells=1_000)
    text, wire = to_text(signed), encode_transaction(signed)
    facts = encode_canonical(FACTS)
    _check(signed, text, wire, facts)
    key = world.keys[0]
    public = cowboy_protocol
    cases = []
    for name, ours, theirs in (
        ("encode", lambda: encode_transaction(signed), lambda: public.encode_transaction(text)),
        ("encode, from JSON", lambda: encode_transaction(from_json(text)), lambda: public.encode_transaction(text)),
        ("signing hash", lambda: signing_hash(signed), lambda: public.signing_hash(text)),
        ("sign", lambda: sign_transaction(signed, key), lambda: public.sign_transaction(text, key)),
    ):
        cases += [
            Case(name=name, sample=repeated(ours, CALLS)),
            Case(name=f"cowboy_protocol, {name}", sample=repeated(theirs, PEER_CALLS), beside=name),
        ]
    cases += [
        Case(name="decode", sample=repeated(lambda: decode_transaction(wire), CALLS)),
        Case(name="canonical CBOR, encode three fields", sample=repeated(lambda: encode_canonical(FACTS), CALLS)),
        Case(name="canonical CBOR, encode three known fields", sample=repeated(_fill_in, CALLS)),
        Case(name="canonical CBOR, decode three fields", sample=repeated(lambda: decode_canonical(facts), CALLS)),
    ]
    measure(report, cases, rounds)
    report.notes.append("cowboy_protocol takes JSON text only, and has no decoder of transactions.")
    return report


def _fill_in() -> bytes:
    return TEMPLATE % (encode_integer(HEIGHT), encode_text(HANDLER), encode_octets(IDENTITY))


def _check(signed: Transaction, text: str, wire: bytes, facts: bytes) -> None:
    """Refuse to compare codecs that disagree."""
    if wire != cowboy_protocol.encode_transaction(text) or decode_transaction(wire) != signed or _fill_in() != facts:
        raise AssertionError("the two codecs give different bytes")
