"""Signatures: recoverable secp256k1 for transactions, strict Ed25519 for the host's verify_signature.

A transaction signature is 65 bytes, ``r ‖ s ‖ v``: two 32-byte big-endian numbers and the recovery id, 0 or 1. Only the
lower of the two valid ``s`` is accepted, so that a valid signature cannot be changed into another.
"""

from importlib import import_module
from typing import Final

from coincurve import PrivateKey, PublicKey

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import Address

RecoveredKey = PublicKey  # of whoever made a signature

PRIVATE_KEY_WIDTH: Final = 32
SIGNATURE_WIDTH: Final = 65
HASH_WIDTH: Final = 32
GROUP_ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""Order of the secp256k1 group: private keys, r and s lie in 1..GROUP_ORDER."""
HIGHEST_LOW_S: Final = GROUP_ORDER // 2  # largest ``s`` accepted (the order is odd; the half is rounded down)

ED25519_KEY_WIDTH: Final = 32
ED25519_SIGNATURE_WIDTH: Final = 64
ED25519_GROUP_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_FIELD: Final = 2**255 - 19
_CURVE_D: Final = -121665 * pow(121666, -1, _FIELD) % _FIELD
_ORDER_EIGHT_Y: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y: Final = (0, 1, _FIELD - 1, _ORDER_EIGHT_Y, _FIELD - _ORDER_EIGHT_Y)
"""The y coordinates of the eight points whose order divides 8."""


def check_private_key(private_key: bytes) -> None:
    """Refuse an invalid secp256k1 private key. The message never shows the key.

    Raises:
        Rejection: ``INVALID_DATA`` if it is not 32 bytes, or its number is outside 1..GROUP_ORDER.
    """
    if not isinstance(private_key, bytes) or len(private_key) != PRIVATE_KEY_WIDTH:
        shown = f"{len(private_key)} bytes" if isinstance(private_key, bytes) else type(private_key).__name__
        raise Rejection(RejectionReason.INVALID_DATA, f"a private key must be {PRIVATE_KEY_WIDTH} bytes, got {shown}")
    if not 1 <= int.from_bytes(private_key, "big") < GROUP_ORDER:
        what = "a private key must be a number from 1 to below the secp256k1 group order"
        raise Rejection(RejectionReason.INVALID_DATA, what)


def address_of(private_key: bytes) -> Address:
    """Return the account address of a private key; refuses as `check_private_key`."""
    check_private_key(private_key)
    return address_of_key(PrivateKey(private_key).public_key)


def sign(hash32: bytes, private_key: bytes) -> bytes:
    """Sign a digest: 65 bytes ``r ‖ s ‖ v``, deterministic (RFC 6979), low ``s``, ``v`` 0 or 1.

    Raises:
        Rejection: ``INVALID_DATA`` if the digest is not 32 bytes or the key is invalid.
    """
    _check_hash(hash32)
    check_private_key(private_key)
    return PrivateKey(private_key).sign_recoverable(hash32, hasher=None)


def recover(hash32: bytes, signature: bytes) -> Address:
    """Return the address whose key made ``signature`` over ``hash32``.

    Raises:
        Rejection: ``INVALID_DATA`` if the digest is not 32 bytes; ``INVALID_SIGNATURE`` if the signature is not 65
            bytes ``r ‖ s ‖ v``, ``v`` is not 0 or 1, ``r`` or ``s`` is outside its range, ``s`` is the higher of the
            two valid ones, or no key fits.
    """
    return address_of_key(recover_key(hash32, signature))


def recover_key(hash32: bytes, signature: bytes) -> RecoveredKey:
    """Return the key that made ``signature`` over ``hash32``; refuses as `recover`."""
    _check_hash(hash32)
    if len(signature) != SIGNATURE_WIDTH:
        raise _invalid(f"a signature must be {SIGNATURE_WIDTH} bytes, got {len(signature)}")
    r = int.from_bytes(signature[:32], "big")
    s = int.from_bytes(signature[32:64], "big")
    v = signature[64]
    if v > 1:
        raise _invalid(f"v is {v}; it must be 0 or 1")
    for name, number in (("r", r), ("s", s)):
        if not 1 <= number < GROUP_ORDER:
            raise _invalid(f"{name} is {number:#066x}; it must be from 1 to below the group order")
    if s > HIGHEST_LOW_S:
        raise _invalid(f"s is {s:#066x}, above half the group order; the lower of the two valid s is required")
    try:
        return PublicKey.from_signature_and_message(signature, hash32, hasher=None)
    except ValueError:
        raise _invalid(f"no public key fits r {r:#066x} with v {v}") from None


def verify_ed25519(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether an Ed25519 signature, 64 bytes ``R ‖ S``, is strictly valid for a public key of 32 bytes.

    Strict: ``S`` below the group order, neither the key nor ``R`` of small order, and the equation checked without the
    cofactor. A signature that fails any of these is False; an invalid key is an error of the caller. Source: the public
    SDK's verify_signature contract.

    Raises:
        Rejection: ``INVALID_INPUT`` if key or signature has another width, or the key is not a point of the curve.
    """
    widths = (("public key", public_key, ED25519_KEY_WIDTH), ("signature", signature, ED25519_SIGNATURE_WIDTH))
    for name, octets, width in widths:
        if len(octets) != width:
            what = f"an Ed25519 {name} must be {width} bytes, got {len(octets)}"
            raise Rejection(RejectionReason.INVALID_INPUT, what)
    y = _edwards_y(public_key)
    if not _is_on_curve(y):
        raise Rejection(RejectionReason.INVALID_INPUT, f"0x{public_key.hex()} is not a point of the Ed25519 curve")
    if int.from_bytes(signature[32:], "little") >= ED25519_GROUP_ORDER:
        return False
    if y in _SMALL_ORDER_Y or _edwards_y(signature[:32]) in _SMALL_ORDER_Y:
        return False
    # Imported at the first use: it takes 6 ms, and few actors verify signatures.
    keys = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    try:
        keys.Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except import_module("cryptography.exceptions").InvalidSignature:
        return False
    return True


def address_of_key(public_key: RecoveredKey) -> Address:
    """Return the account address of a recovered key."""
    # The first byte of the uncompressed form only says that it is uncompressed.
    return Address(keccak256(public_key.format(compressed=False)[1:])[12:])


def _check_hash(hash32: bytes) -> None:
    if len(hash32) != HASH_WIDTH:
        raise Rejection(RejectionReason.INVALID_DATA, f"a signed digest must be {HASH_WIDTH} bytes, got {len(hash32)}")


def _invalid(what: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_SIGNATURE, what)


def _edwards_y(encoded: bytes) -> int:
    """Return the y coordinate of an encoded point, reduced; its highest bit is the sign of x."""
    return (int.from_bytes(encoded, "little") & (2**255 - 1)) % _FIELD


def _is_on_curve(y: int) -> bool:
    # x² = (y² - 1) / (d·y² + 1) has a root exactly when the product of both terms is a square; the denominator is
    # never zero, because -1/d is not a square.
    square = y * y
    return pow((square - 1) * (_CURVE_D * square + 1), (_FIELD - 1) // 2, _FIELD) in (0, 1)
