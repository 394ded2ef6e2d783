"""What the tests of the stream share: a chain that is told of step by step, and a reader who believes what he reads."""

import json
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from trailboss.api.stream import Streams
from trailboss.chain import Chain
from trailboss.index import Index
from trailboss.model.blocks import Block
from trailboss.node.block_builder import Published
from trailboss.node.feed import Feed
from trailboss.node.metrics import Metrics
from trailboss.testing import LocalChain

CBY = 10**9
SPEAKER = """
import pvm_host

def say(payload):
    for line in payload.split(b";"):
        name, _, data = line.partition(b"=")
        pvm_host.emit_event(name.decode(), data)

def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")

def handle_timer(payload):
    pvm_host.emit_event("tick", payload)
"""


class Broadcasts:
    """A chain in memory, and a feed that hears of it what somebody publishes.

    Attributes:
        index: Knows what the feed has heard; None unless asked for, for it takes longer to open than the rest.
    """

    def __init__(self, *, has_index: bool = False) -> None:
        self.local = LocalChain(preset="minimal")
        self.index: Any = Index.open(None, self.chain) if has_index else None
        self.feed = Feed(self.chain.publish())
        self.metrics = Metrics()
        self._amount = 0
        self._told = 0
        self._fork: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.index is not None:
            self.index.close()
        self.local.close()

    @property
    def chain(self) -> Chain:
        """The chain."""
        return self.local.chain

    def mine(self, blocks: int = 1) -> None:
        """Build blocks, of which nobody hears yet."""
        self.local.mine(blocks)

    def grow(self, blocks: int = 1) -> None:
        """Build blocks, and let the feed hear of them."""
        self.mine(blocks)
        self.publish()

    def streams(self, **limits: int) -> Streams:
        """Return the streams of the feed."""
        return Streams(self.feed, self.index, self.metrics, **limits)

    def vary(self) -> None:
        """Build a block that no other branch has."""
        self._amount += 1
        self.local.transfer(self.local.accounts[1], self._amount, sender=self.local.accounts[0])

    def reorg(self, depth: int) -> None:
        """Drop blocks, of which nobody hears yet."""
        self.local.reorg(depth)
        if self.chain.height < self._told:
            self._fork = self._told = self.chain.height

    def publish(self) -> Published:
        """Let the feed hear of all that has happened since it last did."""
        blocks = tuple(self.chain.blocks[self._told + 1 :])
        if self.index is not None:
            if self._fork is not None:
                self.index.revert(self._fork)
            self.index.apply(blocks)
        published = Published(view=self.chain.publish(), blocks=blocks, reorg_from=self._fork)
        self._told, self._fork = self.chain.height, None
        self.feed.publish(published)
        return published


@dataclass(frozen=True, slots=True)
class Told:
    """One server-sent event.

    Attributes:
        kind: Its type.
        data: What it tells.
        mark: Its id; None without one.
    """

    kind: str
    data: Any
    mark: str | None


def read_told(text: str) -> list[Told]:
    """Return the events of a stream's text as a browser reads them; comments and ``retry`` are left out."""
    found = []
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            fields[name] = value
        if "data" in fields:
            found.append(Told(fields["event"], json.loads(fields["data"]), fields.get("id")))
    return found


@dataclass
class Believer:
    """A client who takes what he is told for the chain, and notices what cannot be.

    Attributes:
        blocks: Hash and events of each block he believes in, by height.
        mark: The last id that he was told.
    """

    blocks: dict[int, tuple[str, list[tuple[str, str]]]] = field(default_factory=dict)
    mark: str | None = None

    def hear(self, told: Told) -> None:
        """Take note of one event of the stream."""
        self.mark = told.mark or self.mark
        if told.kind == "reorg":
            self.blocks = {height: found for height, found in self.blocks.items() if height <= told.data["height"]}
        elif told.kind == "block":
            height = told.data["height"]
            assert height not in self.blocks, f"block {height} is told twice"
            assert not self.blocks or height == max(self.blocks) + 1, f"block {height} comes after {max(self.blocks)}"
            self.blocks[height] = told.data["hash"], []
        elif told.kind != "end":
            height = told.data["block_height"]
            assert height == max(self.blocks), f"an event of block {height} comes after block {max(self.blocks)}"
            self.blocks[height][1].append((told.data["name"], told.data["raw"]))


def believed(text: str) -> dict[int, tuple[str, list[tuple[str, str]]]]:
    """Return the blocks that a believer of a stream's text believes in."""
    believer = Believer()
    for each in read_told(text):
        believer.hear(each)
    return believer.blocks


def truth_of(blocks: list[Block]) -> dict[int, tuple[str, list[tuple[str, str]]]]:
    """Return what a believer has been told who was told of exactly these blocks."""
    return {
        block.height: (
            str(block.hash),
            [
                (event.name, f"0x{event.data.hex()}")
                for event in [*(event for receipt in block.receipts for event in receipt.events), *block.events]
            ],
        )
        for block in blocks
    }
