"""Keys: their bytes, their order, and what can be read back."""

from hashlib import sha256

import pytest

from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.state import keys

ADDRESS = Address(bytes(range(20)))
ID = Hash32(bytes(range(32)))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.account_key(ADDRESS), b"a" + ADDRESS),
        (keys.storage_key(ADDRESS, b"name"), b"s" + ADDRESS + sha256(b"name").digest()),
        (keys.timer_key(258, ID), b"t" + bytes(6) + b"\x01\x02" + ID),
        (keys.config_key(b"system:timer_config"), b"c" + sha256(b"system:timer_config").digest()),
        (keys.code_key(ID), b"c" + sha256(b"code:" + ID).digest()),
        (keys.mailbox_key(258), b"g" + bytes(6) + b"\x01\x02" + bytes(32)),
        (keys.mailbox_key(1, ID), b"g" + bytes(7) + b"\x01" + ID),
    ],
)
def test_key_has_the_documented_bytes_when_built(key, expected) -> None:
    """A key is its namespace byte and the parts in their fixed widths."""
    assert key == expected
    assert key.startswith(b"x") or len(key) == 1 + keys.KEY_WIDTHS[key[:1]]


def test_timer_key_gives_back_its_parts_when_read() -> None:
    """Height and id can be read from a timer key."""
    key = keys.timer_key(U64_MAX, ID)
    assert (keys.timer_height(key), keys.timer_id(key)) == (U64_MAX, ID)


def test_mailbox_key_gives_back_its_major_when_read() -> None:
    """The sequence number can be read from a mailbox key."""
    assert keys.mailbox_major(keys.mailbox_key(77)) == 77


def test_storage_key_gives_back_its_address_when_read() -> None:
    """The actor can be read from a storage key."""
    assert keys.storage_address(keys.storage_key(ADDRESS, b"name")) == ADDRESS


@pytest.mark.parametrize(("first", "last"), [(0, 0), (255, 256), (5, U64_MAX)])
def test_timer_range_holds_its_heights_alone_when_bounds_are_compared(first, last) -> None:
    """The first and last ids of the named heights lie inside, those of the neighbours outside."""
    lower, upper = keys.timer_range(first, last)
    least, greatest = bytes(32), b"\xff" * 32
    assert lower <= keys.timer_key(first, least)
    assert keys.timer_key(last, greatest) < upper
    assert first == 0 or keys.timer_key(first - 1, greatest) < lower
    assert last == U64_MAX or keys.timer_key(last + 1, least) >= upper


@pytest.mark.parametrize("address", [ADDRESS, Address(b"\xff" * 20)])
def test_storage_range_holds_one_actor_when_bounds_are_compared(address) -> None:
    """All slots of the actor lie inside, those of the next address outside."""
    lower, upper = keys.storage_range(address)
    assert lower <= b"s" + address + bytes(32)
    assert b"s" + address + b"\xff" * 32 < upper
    following = (int.from_bytes(b"s" + address, "big") + 1).to_bytes(21, "big")
    assert following + bytes(32) >= upper
