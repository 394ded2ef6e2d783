"""Our canonical CBOR against the public SDK's codec and against cbor2."""

import cbor2
import pytest
from cowboy_sdk import codec
from cowboy_sdk.errors import CodecError
from hypothesis import given, settings
from hypothesis import strategies as st

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.primitives.errors import Rejection

edges = [s * (2**k + d) for k in (0, 3, 5, 8, 16, 32, 64, 128, 4095) for d in (-1, 0, 1) for s in (1, -1)]
integers = st.one_of(st.integers(-(2**70), 2**70), st.integers(-(2**4095), 2**4095), st.sampled_from(edges))
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(st.none(), st.booleans(), integers, floats, st.binary(max_size=40), st.text(max_size=40))
keys = st.one_of(st.none(), st.booleans(), integers, floats, st.binary(max_size=4), st.text(max_size=30))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)


def same(left: object, right: object) -> bool:
    """Say whether two values are equal and of equal types throughout (1, 1.0 and True differ here)."""
    return codec.encode(left) == codec.encode(right)


@given(values)
def test_encoding_equals_the_public_sdks_and_decodes_to_the_value(value: object) -> None:
    """Bytes are the SDK's, and both decoders read the value back."""
    encoded = encode_canonical(value)
    assert encoded == codec.encode(value)
    assert same(decode_canonical(encoded), value)
    assert same(codec.decode(encoded), value)


@given(st.dictionaries(st.text(max_size=30), st.one_of(integers, st.binary(), st.text(), st.none()), max_size=6))
def test_encoding_equals_cbor2s_canonical_form_for_maps_without_floats(value: dict[str, object]) -> None:
    """The independent encoder agrees; its canonical form differs only in shortening floats."""
    assert encode_canonical(value) == cbor2.dumps(value, canonical=True)


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=24), values.map(codec.encode)), st.data())
def test_decoding_accepts_what_the_public_sdk_accepts_when_bytes_are_changed(
    encoded: bytes, data: st.DataObject
) -> None:
    """Both decoders accept the same bytes with the same value, and ours accepts only what it would encode."""
    changed = bytearray(encoded or b"\x00")
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    octets = bytes(changed)
    try:
        theirs = codec.decode(octets)
    except CodecError:
        with pytest.raises(Rejection):
            decode_canonical(octets)
        return
    if octets != codec.encode(theirs):
        # The SDK reads a negative zero, which it would never write.
        with pytest.raises(Rejection, match="negative zero"):
            decode_canonical(octets)
    else:
        assert encode_canonical(decode_canonical(octets)) == octets
