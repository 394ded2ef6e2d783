"""Fixed-width byte strings: addresses and 32-byte hashes, and their text forms."""

from typing import ClassVar, Final, Self

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256

SHOWN_CHARACTERS_MAX: Final = 80  # characters of a wrong value that a message shows


class _FixedBytes(bytes):
    """Bytes of one exact width; they compare and hash like plain bytes."""

    WIDTH: ClassVar[int]
    __slots__ = ()

    def __new__(cls, value: bytes) -> Self:
        if not isinstance(value, bytes | bytearray | memoryview) or len(value) != cls.WIDTH:
            shown = f"{len(value)} bytes" if hasattr(value, "__len__") else repr(value)[:SHOWN_CHARACTERS_MAX]
            what = f"{cls.__name__} must be {cls.WIDTH} bytes, got {shown}"
            raise Rejection(RejectionReason.INVALID_DATA, what, field=cls.__name__)
        return super().__new__(cls, value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read hexadecimal text, with or without ``0x``."""
        digits = text[2:] if text[:2] in ("0x", "0X") else text
        try:
            octets = bytes.fromhex(digits)
        except ValueError:
            octets = b""
        if len(digits) != 2 * cls.WIDTH or len(octets) != cls.WIDTH:
            what = f"{cls.__name__} must be {2 * cls.WIDTH} hexadecimal digits, got {text!r:.80}"
            raise Rejection(RejectionReason.INVALID_DATA, what, field=cls.__name__)
        return cls(octets)

    def __str__(self) -> str:
        return "0x" + self.hex()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


class Hash32(_FixedBytes):
    """A 32-byte digest: a root, a block or transaction hash, a timer id."""

    WIDTH = 32
    __slots__ = ()


class Address(_FixedBytes):
    """A 20-byte account or actor address; its text is the EIP-55 checksummed form."""

    WIDTH = 20
    __slots__ = ()

    def __str__(self) -> str:
        digits = self.hex()
        nibbles = keccak256(digits.encode()).hex()
        cased = (c.upper() if n >= "8" else c for c, n in zip(digits, nibbles, strict=False))
        return "0x" + "".join(cased)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read hexadecimal text; mixed case must carry the EIP-55 checksum.

        Raises:
            Rejection: ``INVALID_DATA`` if it is not 40 hexadecimal digits, or its checksum is wrong.
        """
        address = super().parse(text)
        digits = text[-2 * cls.WIDTH :]
        if digits not in (digits.lower(), digits.upper()) and digits != str(address)[2:]:
            what = f"{text} fails its EIP-55 checksum; expected {address}"
            raise Rejection(RejectionReason.INVALID_DATA, what, field="Address")
        return address


ZERO_ADDRESS: Final = Address(bytes(Address.WIDTH))
ZERO_HASH: Final = Hash32(bytes(Hash32.WIDTH))


def system_address(number: int) -> Address:
    """Return the address of a system actor: 18 zero bytes, then ``number`` in two bytes.

    Source: docs/spec/sources.md §6 (19 zero bytes and the number, for numbers below 256).
    """
    return Address(number.to_bytes(Address.WIDTH, "big"))
