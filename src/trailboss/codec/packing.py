"""Stored records as positional msgpack: the one encoder, which writes addresses and hashes as the bytes they are."""

from typing import Final

import msgspec

from trailboss.primitives.octets import Address, Hash32


def _plain(value: object) -> bytes:
    if isinstance(value, Address | Hash32):
        return bytes(value)
    raise NotImplementedError(f"records hold no {type(value).__name__}")


pack: Final = msgspec.msgpack.Encoder(enc_hook=_plain).encode
"""Return a record's bytes: minimal integers, text and bytes apart, no maps; equal records are equal bytes."""
