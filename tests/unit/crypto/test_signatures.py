"""Signatures: known vectors, and every way in which one can be wrong."""

import pytest
from cowboy_sdk import _signature_mock
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from trailboss.crypto.signatures import (
    ED25519_GROUP_ORDER,
    GROUP_ORDER,
    HIGHEST_LOW_S,
    address_of,
    check_private_key,
    recover,
    sign,
    verify_ed25519,
)
from trailboss.primitives.errors import Rejection, RejectionReason

KEY = b"\x01" * 32
DIGEST = bytes(range(32))


def refusal_of_recover(signature: bytes, digest: bytes = DIGEST) -> Rejection:
    """Return the refusal of a signature."""
    with pytest.raises(Rejection) as caught:
        recover(digest, signature)
    return caught.value


def test_address_of_gives_the_published_address_when_key_is_the_public_test_key() -> None:
    """The public codec's example key has its published address."""
    assert str(address_of(KEY)) == "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1"


@given(st.integers(1, GROUP_ORDER - 1), st.binary(min_size=32, max_size=32))
@settings(max_examples=50)
def test_recover_gives_the_signer_and_s_is_low(number: int, digest: bytes) -> None:
    """Signing is deterministic, low in s, and recovers to the key's address."""
    key = number.to_bytes(32, "big")
    signature = sign(digest, key)
    assert signature == sign(digest, key)
    assert signature[64] in (0, 1)
    assert int.from_bytes(signature[32:64], "big") <= HIGHEST_LOW_S
    assert recover(digest, signature) == address_of(key)


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (bytes(32), "a private key must be a number from 1 to below the secp256k1 group order"),
        (GROUP_ORDER.to_bytes(32, "big"), "a private key must be a number from 1 to below the secp256k1 group order"),
        (b"\x01" * 31, "a private key must be 32 bytes, got 31 bytes"),
        ("01" * 32, "a private key must be 32 bytes, got str"),
    ],
)
def test_check_private_key_refuses_without_showing_it_when_it_is_no_key(key: bytes, what: str) -> None:
    """Zero, the group order, another width and text are no keys."""
    with pytest.raises(Rejection) as caught:
        check_private_key(key)
    assert (caught.value.reason, caught.value.what) == (RejectionReason.INVALID_DATA, what)


def test_check_private_key_accepts_both_ends_of_its_range() -> None:
    """One and the group order less one are keys."""
    check_private_key((1).to_bytes(32, "big"))
    check_private_key((GROUP_ORDER - 1).to_bytes(32, "big"))


def test_recover_refuses_when_s_is_the_higher_twin() -> None:
    """The other valid s of the same signature is refused, though it fits the key."""
    signature = sign(DIGEST, KEY)
    twin = GROUP_ORDER - int.from_bytes(signature[32:64], "big")
    changed = signature[:32] + twin.to_bytes(32, "big") + bytes([1 - signature[64]])
    refusal = refusal_of_recover(changed)
    assert refusal.reason is RejectionReason.INVALID_SIGNATURE
    assert refusal.what == (f"s is 0x{twin:064x}, above half the group order; the lower of the two valid s is required")


@pytest.mark.parametrize("v", [2, 3, 27, 28, 255])
def test_recover_refuses_when_v_is_not_0_or_1(v: int) -> None:
    """The recovery id has no other form."""
    refusal = refusal_of_recover(sign(DIGEST, KEY)[:64] + bytes([v]))
    assert (refusal.reason, refusal.what) == (RejectionReason.INVALID_SIGNATURE, f"v is {v}; it must be 0 or 1")


@pytest.mark.parametrize("number", [0, GROUP_ORDER, 2**256 - 1])
def test_recover_refuses_when_r_or_s_is_out_of_range(number: int) -> None:
    """Zero and the group order and beyond are refused for either."""
    signature = sign(DIGEST, KEY)
    raw = number.to_bytes(32, "big")
    expected = f"is 0x{number:064x}; it must be from 1 to below the group order"
    assert refusal_of_recover(raw + signature[32:]).what == f"r {expected}"
    assert refusal_of_recover(signature[:32] + raw + signature[64:]).what == f"s {expected}"


def test_recover_refuses_when_no_key_fits() -> None:
    """An r that is no x coordinate of the curve (5 is none) fits no key."""
    signature = sign(DIGEST, KEY)
    refusal = refusal_of_recover((5).to_bytes(32, "big") + signature[32:64] + b"\x00")
    assert (refusal.reason, refusal.what) == (
        RejectionReason.INVALID_SIGNATURE,
        f"no public key fits r 0x{5:064x} with v 0",
    )


@pytest.mark.parametrize("width", [0, 64, 66])
def test_recover_refuses_when_signature_has_another_width(width: int) -> None:
    """A signature has 65 bytes."""
    assert refusal_of_recover(bytes(width)).what == f"a signature must be 65 bytes, got {width}"


def test_sign_and_recover_refuse_when_digest_has_another_width() -> None:
    """Only a digest can be signed."""
    with pytest.raises(Rejection, match="a signed digest must be 32 bytes, got 31"):
        sign(bytes(31), KEY)
    assert refusal_of_recover(sign(DIGEST, KEY), bytes(33)).what == "a signed digest must be 32 bytes, got 33"


# Ed25519. The SDK's mock says of itself that it mirrors the node's strict verification; it is the oracle.

SMALL_ORDER_POINTS = [
    bytes.fromhex(text)
    for text in (
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        # The first and third again, encoded with a y beyond the field.
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    )
]
OFF_CURVE = (2).to_bytes(32, "little")


class MockError(RuntimeError):
    """What the oracle raises for input that is no key."""

    def __init__(self, message: str, code: int, name: str) -> None:
        super().__init__(message, code, name)


def oracle(key: bytes, message: bytes, signature: bytes) -> bool | None:
    """Return the oracle's verdict; None when it refuses the input."""
    try:
        return _signature_mock.verify_signature(2, key, message, signature, MockError)
    except MockError:
        return None


def ours(key: bytes, message: bytes, signature: bytes) -> bool | None:
    """Return our verdict in the same form."""
    try:
        return verify_ed25519(key, message, signature)
    except Rejection as refusal:
        if refusal.reason is not RejectionReason.INVALID_INPUT:
            raise
        return None


def signed(message: bytes) -> tuple[bytes, bytes]:
    """Return a key and its signature over ``message``."""
    private = Ed25519PrivateKey.from_private_bytes(KEY)
    return private.public_key().public_bytes_raw(), private.sign(message)


def test_verify_ed25519_accepts_a_genuine_signature_and_refuses_another_message() -> None:
    """A signature holds for its message alone."""
    key, signature = signed(b"howdy")
    assert verify_ed25519(key, b"howdy", signature) is True
    assert verify_ed25519(key, b"howdx", signature) is False
    assert oracle(key, b"howdy", signature) is True


def test_verify_ed25519_is_false_when_s_is_not_reduced() -> None:
    """Adding the group order to S gives the same equation, and is refused."""
    key, signature = signed(b"howdy")
    s = int.from_bytes(signature[32:], "little") + ED25519_GROUP_ORDER
    changed = signature[:32] + s.to_bytes(32, "little")
    assert verify_ed25519(key, b"howdy", changed) is False
    assert oracle(key, b"howdy", changed) is False


@pytest.mark.parametrize("point", SMALL_ORDER_POINTS, ids=lambda point: point.hex()[:8] + point.hex()[-2:])
def test_verify_ed25519_is_false_when_key_or_r_has_small_order(point: bytes) -> None:
    """A key of small order would let one signature hold for many messages; all eight points are refused."""
    # With S = 0 and R in the key's small group, the bare equation holds for about one message in eight.
    for message in (bytes([number]) for number in range(64)):
        for r in SMALL_ORDER_POINTS[:8]:
            assert verify_ed25519(point, message, r + bytes(32)) is False
    key, signature = signed(b"howdy")
    assert oracle(point, b"howdy", point + bytes(32)) is False
    assert verify_ed25519(key, b"howdy", point + signature[32:]) is False


def test_verify_ed25519_refuses_when_the_key_is_no_point() -> None:
    """A key off the curve is the caller's error; an R off the curve is a false signature."""
    key, signature = signed(b"howdy")
    with pytest.raises(Rejection) as caught:
        verify_ed25519(OFF_CURVE, b"howdy", signature)
    assert caught.value.reason is RejectionReason.INVALID_INPUT
    assert caught.value.what == f"0x{OFF_CURVE.hex()} is not a point of the Ed25519 curve"
    assert oracle(OFF_CURVE, b"howdy", signature) is None
    assert verify_ed25519(key, b"howdy", OFF_CURVE + signature[32:]) is False


@pytest.mark.parametrize(("key_width", "signature_width"), [(31, 64), (33, 64), (32, 63), (32, 65)])
def test_verify_ed25519_refuses_when_a_width_is_wrong(key_width: int, signature_width: int) -> None:
    """Key and signature have one width each."""
    with pytest.raises(Rejection, match=r"must be (32|64) bytes, got \d\d"):
        verify_ed25519(bytes(key_width), b"", bytes(signature_width))


@settings(max_examples=60)
@given(st.binary(max_size=40), st.integers(0, 95), st.integers(1, 255))
def test_verify_ed25519_agrees_with_the_sdk_when_one_byte_is_changed(message: bytes, place: int, flip: int) -> None:
    """A changed byte anywhere in key or signature gets the oracle's verdict."""
    key, signature = signed(message)
    changed = bytearray(key + signature)
    changed[place] ^= flip
    arguments = bytes(changed[:32]), message, bytes(changed[32:])
    assert ours(*arguments) == oracle(*arguments)
