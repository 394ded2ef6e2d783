"""A second verifier of proofs, from the definition alone: slow, recursive, over hexadecimal text.

It shares nothing with the first one: it reads the bytes as plain lists, walks from the root down, and knows the form of
the tree from the docstrings of `trailboss.state.tree` and `trailboss.state.commitment` and from decision D-49.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

WIDTHS = {"a": 20, "s": 52, "t": 40, "c": 32, "g": 40}
CAPACITY = 32
NOTHING = bytes(32)


class Refused(Exception):
    """The proof is not one, or not of that root."""


def need(condition: bool, what: str) -> None:
    """Refuse the proof unless the condition holds."""
    if not condition:
        raise Refused(what)


def verify(octets: bytes, root: bytes) -> dict[bytes, bytes]:
    """Return all that the state holds of the proof's subject: value by full key.

    Raises:
        Refused: If that is not proven.
    """
    try:
        plain = msgspec.msgpack.decode(octets)
    except (ValueError, RecursionError):
        raise Refused("no msgpack") from None
    need(msgspec.msgpack.encode(plain) == octets, "another encoding")
    need(isinstance(plain, list) and len(plain) == 5, "no proof")
    version, subject, others, nodes, values = plain
    need(version == 1 and type(version) is int, "another version")
    need(all(isinstance(each, list) for each in (subject, others, nodes, values)), "no lists")
    namespace, low, high = key_range(subject)
    need(len(others) == 4 and all(is_bytes(each, 32) for each in others), "not four digests")
    need(all(isinstance(value, bytes) for value in values), "values are bytes")
    waiting = iter(nodes)
    entries: dict[str, bytes] = {}
    digest = NOTHING if not nodes else descend(waiting, "", 2 * WIDTHS[namespace], (low, high), entries)[0]
    need(next(waiting, None) is None, "nodes left over")
    digests = dict(zip([name for name in WIDTHS if name != namespace], others, strict=True)) | {namespace: digest}
    combined = b"".join(name.encode() + digests[name] for name in WIDTHS)
    need(sha256(b"\x03cowboy-state-v1" + combined).digest() == root, "another root")
    need([sha256(value).digest() for value in values] == [entries[key] for key in sorted(entries)], "other values")
    return {namespace.encode() + bytes.fromhex(key): value for key, value in zip(sorted(entries), values, strict=True)}


def is_bytes(value: Any, width: int) -> bool:
    return isinstance(value, bytes) and len(value) == width


def is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def key_range(subject: list[Any]) -> tuple[str, str, str]:
    """Return namespace, least and greatest key of a subject, keys in hexadecimal."""
    match subject:
        case ["account", address] if is_bytes(address, 20):
            return "a", address.hex(), address.hex()
        case ["slot", address, bytes(name)] if is_bytes(address, 20):
            key = address.hex() + sha256(name).hexdigest()
            return "s", key, key
        case ["storage", address] if is_bytes(address, 20):
            return "s", address.hex() + "0" * 64, address.hex() + "f" * 64
        case ["timer", height, identity] if is_number(height) and is_bytes(identity, 32):
            return "t", f"{height:016x}{identity.hex()}", f"{height:016x}{identity.hex()}"
        case ["timers", first, last] if is_number(first) and is_number(last) and first <= last:
            return "t", f"{first:016x}" + "0" * 64, f"{last:016x}" + "f" * 64
    raise Refused("unknown subject")


def descend(
    nodes: Iterator[Any], beginning: str, digits: int, bounds: tuple[str, str], entries: dict[str, bytes]
) -> tuple[bytes, int]:
    """Read one subtree, note its entries within the range, and return its digest and count.

    Args:
        nodes: What is still to be read.
        beginning: What its keys must begin with.
        digits: Digits of a key.
        bounds: Least and greatest key of the range.
        entries: Value digest by key; added to.
    """
    low, high = bounds
    node = next(nodes, None)
    match node:
        case ["page", bytes(blob)]:
            width = digits // 2 + 32
            need(0 < len(blob) <= CAPACITY * width and len(blob) % width == 0, "page size")
            pieces = [blob[at : at + width].hex() for at in range(0, len(blob), width)]
            keys = [piece[:digits] for piece in pieces]
            need(keys == sorted(set(keys)), "page order")
            need(all(key.startswith(beginning) for key in keys), "page place")
            entries.update(
                {piece[:digits]: bytes.fromhex(piece[digits:]) for piece in pieces if low <= piece[:digits] <= high}
            )
            return sha256(b"\x01" + blob).digest(), len(pieces)
        case ["interior", count, length, bytes(packed), present, bytes(digests)]:
            need(all(is_number(each) for each in (count, length, present)), "numbers")
            need(len(beginning) <= length < digits, "prefix length")
            prefix = packed.hex()[:length]
            need(packed.hex() == prefix + "0" * (length % 2) and len(prefix) == length, "prefix form")
            need(prefix.startswith(beginning), "prefix place")
            need(count > CAPACITY and present < 2**16 and f"{present:b}".count("1") >= 2, "interior form")
            known, left_out, children = 0, [digests[at : at + 32] for at in range(0, len(digests), 32)], []
            pruned = len(left_out)
            for digit in "0123456789abcdef":
                below = prefix + digit
                if not present >> int(digit, 16) & 1:
                    children.append(NOTHING)
                elif below.ljust(digits, "f") < low or below.ljust(digits, "0") > high:
                    need(bool(left_out) and len(left_out[0]) == 32 and left_out[0] != NOTHING, "left out")
                    children.append(left_out.pop(0))
                else:
                    child, keys_below = descend(nodes, below, digits, bounds, entries)
                    children.append(child)
                    known += keys_below
            need(not left_out, "digests left over")
            need(count >= known + pruned if pruned else count == known, "count")
            head = b"\x02" + bytes([length]) + count.to_bytes(8, "big")
            return sha256(head + packed + b"".join(children)).digest(), count
    raise Refused("unknown node")
