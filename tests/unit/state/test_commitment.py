"""The state root, by its definition, and under two hash seeds."""

from hashlib import sha256

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state.commitment import EMPTY_ROOTS, next_roots, state_root
from trailboss.state.keys import account_key

PROGRAM = """
from trailboss.state.keys import account_key, config_key
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore
store = MemoryStore()
for height in range(3):
    overlay = Overlay(store)
    for name in {f"name {number}" for number in range(height, height + 100)}:
        overlay.write(config_key(name.encode()), name.encode() + bytes([height]))
        overlay.delete(config_key(name.encode()[:6]))
        overlay.write(account_key(name.encode().ljust(20)), name.encode())
    store.commit(height, overlay.changes())
print(store.state_root)
"""


def test_state_root_hashes_the_namespaces_in_order_when_one_key_is_there() -> None:
    """The root is the tag, then each namespace's byte and tree digest, in the order a, s, t, c, g."""
    key = bytes(range(20))
    roots = next_roots(EMPTY_ROOTS, {account_key(key): b"value"}.items())
    page = sha256(b"\x01" + key + sha256(b"value").digest()).digest()
    rest = b"".join(namespace + bytes(32) for namespace in (b"s", b"t", b"c", b"g"))
    assert state_root(roots) == sha256(b"\x03cowboy-state-v1" + b"a" + page + rest).digest()


@pytest.mark.parametrize("key", [b"", b"a", b"a" + bytes(19), b"a" + bytes(21), b"x\x01kid", b"z" + bytes(20)])
def test_next_roots_refuses_the_key_when_namespace_or_width_is_wrong(key) -> None:
    """No key but those of the committed namespaces, in their widths, can reach a tree."""
    message = f"state key {key.hex()} has no committed namespace, or not its width"
    with pytest.raises(InvariantError, match=message):
        next_roots(EMPTY_ROOTS, {key: b"value"}.items())


def test_state_root_is_the_same_when_the_hash_seed_differs(output_under_hash_seed) -> None:
    """Two interpreters that walk a set in different orders reach one root."""
    first, second = (output_under_hash_seed(PROGRAM, seed) for seed in (1, 2))
    assert first == second
    assert first.startswith("0x")
