"""The state and the blocks of a node's chain at one height, fetched on demand. Decision: D-77."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from trailboss.chain.block_records import decode_block
from trailboss.cli.remote.client import Client, octets_of
from trailboss.model.blocks import Block
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.commitment import Roots, build_roots
from trailboss.state.keys import KEY_WIDTHS, STORAGE, storage_range
from trailboss.state.slots import SCANNED_NAME_MAX, decode_slot

RANGE_ENTRIES: Final = 1_000  # entries of one request


class RemoteStore:
    """The state of a node's chain at one height, under the path of a view."""

    def __init__(self, client: Client, view: int, height: int, state_root: Hash32) -> None:
        self._client = client
        self.path = f"/state/views/{view}"
        self.height = height
        self.state_root = state_root
        self._values: dict[bytes, bytes | None] = {}

    @cached_property
    def roots(self) -> Roots:
        """The tree of each namespace. Complexity: O(state), all of which is fetched."""
        return build_roots(chain.from_iterable(map(self.iterate, sorted(KEY_WIDTHS))))

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        if key not in self._values and "roots" in vars(self):
            return None  # all that is there has been fetched
        if key not in self._values:
            found = self._client.get(f"{self.path}/value", key=_digits(key))["value"]
            self._values[key] = None if found is None else octets_of(found)
        return self._values[key]

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending."""
        slots = self.iterate(STORAGE, *storage_range(address))
        names = (decode_slot(record)[0] for _, record in slots)
        return sorted(name for name in names if len(name) <= SCANNED_NAME_MAX)

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace in order; see `Store.iterate`."""
        # A bound in a later namespace does not bound this one.
        end = None if upper is None or not upper.startswith(namespace) else _digits(upper)
        start, last = lower, b""
        while True:
            bounds = {"lower": None if start is None else _digits(start), "upper": end}
            page = self._client.get(f"{self.path}/range", namespace=namespace.decode(), limit=RANGE_ENTRIES, **bounds)
            for key, value in zip(map(octets_of, page["keys"]), map(octets_of, page["values"]), strict=True):
                # A page begins with the key that the one before it ended with.
                if key != last:
                    self._values[key] = value
                    yield key, value
                last = key
            if not page["more"]:
                return
            start = last

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds, or how many below a bound; see `Store.count`."""
        below = None if bound is None else _digits(bound)
        found: int = self._client.get(f"{self.path}/count", namespace=namespace.decode(), bound=below)["count"]
        return found

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due, or None if there is none of that id."""
        found: int | None = self._client.get(f"{self.path}/timers/0x{identity.hex()}/height")["height"]
        return None if found is None else Height(found)


class RemoteRecords:
    """Records, each fetched on first use."""

    def __init__(self, client: Client, view: int, head: Block) -> None:
        self._client = client
        self._path = f"/state/views/{view}"
        self._head = head

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""
        [record] = self._client.get(f"{self._path}/record", height=height)["records"]
        return decode_block(octets_of(record))

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending."""
        while first <= self._head.height:
            page = self._client.get(f"{self._path}/records", first=first)
            for record in page["records"]:
                block = decode_block(octets_of(record))
                yield block
                first = block.height + 1
            if not page["more"]:
                return


def _digits(octets: bytes) -> str:
    return f"0x{octets.hex()}"
