"""A fork: a chain in memory that goes on from where another one stands, and leaves that one as it is."""

from collections.abc import Iterator, Mapping
from itertools import takewhile

from trailboss.chain.block_archive import MemoryArchive
from trailboss.chain.chain import Chain
from trailboss.chain.history import BlockSequence, History
from trailboss.chain.reader import ChainReader
from trailboss.governance.apply import VALUE_WIDTH
from trailboss.governance.parameters import system_slot_key
from trailboss.model.blocks import Block
from trailboss.state.slots import encode_slot
from trailboss.state.store import MemoryStore
from trailboss.vm.native import NativeEngine


def fork_of(original: ChainReader, governed: Mapping[bytes, int] | None = None) -> Chain:
    """Return a chain that begins as a copy of another one: state, clock, timers, and the blocks so far.

    Blocks below the fork are read from the original: it must stay open and must not go back below the fork, but may
    go on. The fork itself cannot go back below where it began.

    Complexity: O(state), in time and in memory.

    Args:
        original: Stays as it is. The fork shares the engine of a chain, since all that it keeps is compiled code; a
            view has none, for it may be another thread's, and the fork gets one of its own.
        governed: Parameters that differ, by key of SetGovParam: as if set already, though no block did it.
    """
    changes: dict[bytes, bytes | None] = {
        system_slot_key(original.params, name): encode_slot(name, value.to_bytes(VALUE_WIDTH, "big"))
        for name, value in (governed or {}).items()
    }
    store = MemoryStore.copy_of(original.store, changes)
    interval_ms = original.params.governance.block_interval_ms
    blocks = History(_ForkArchive(original.blocks), interval_ms, height=original.height)
    shared = original.engine if isinstance(original, Chain) else None
    engine = shared or NativeEngine(original.params)
    return Chain.of_parts(original.genesis, original.params, engine, store, blocks, owns_engine=shared is None)


class _ForkArchive:
    """An archive in memory above a height, below it the records of another history."""

    __slots__ = ("_above", "_first", "_original")

    def __init__(self, original: BlockSequence) -> None:
        self._original = original
        self._first = original.height
        self._above = MemoryArchive()
        self._above.keep(original.head)

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none."""
        self._above.keep(record)

    def at(self, height: int) -> Block:
        """Return a block that is the one of a height, or the last record below it."""
        return self._above.at(height) if height >= self._first else self._original[height]

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""
        yield from takewhile(lambda block: block.height < self._first, self._original.records(first))
        yield from self._above.records(first)

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""
        self._above.drop_above(height)
