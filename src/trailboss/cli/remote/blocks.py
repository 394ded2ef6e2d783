"""The blocks of a node's chain, up to one height. Decision: D-77."""

from collections.abc import Iterator

from trailboss.chain.block_records import decode_block
from trailboss.chain.history import BlockSequence
from trailboss.cli.remote.client import Client
from trailboss.model.blocks import Block


class RemoteRecords:
    """Records, each fetched on first use."""

    def __init__(self, client: Client, view: int, head: Block) -> None:
        self._client = client
        self._path = f"/state/views/{view}"
        self._head = head

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""
        [record] = self._client.get(f"{self._path}/record", height=height)["records"]
        return decode_block(bytes.fromhex(record[2:]))

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending."""
        while first <= self._head.height:
            page = self._client.get(f"{self._path}/records", first=first)
            for record in page["records"]:
                block = decode_block(bytes.fromhex(record[2:]))
                yield block
                first = block.height + 1
            if not page["more"]:
                return


class RemoteBlocks(BlockSequence):
    """The blocks of a node's chain in one view."""

    __slots__ = ("_head",)

    def __init__(self, client: Client, view: int, head: Block, interval_ms: int) -> None:
        super().__init__(RemoteRecords(client, view, head), interval_ms)
        self._head = head

    @property
    def head(self) -> Block:
        """The last block."""
        return self._head
