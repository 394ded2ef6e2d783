"""A member that joins by a snapshot: offers and chunks of the others, some of which lie, until the chain is there."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.model.histories import Dice
from tests.network.engines import Divergence, Engine, Records
from tests.network.members import RestartingMember
from trailboss.chain import snapshots
from trailboss.network.messages import MESSAGES
from trailboss.network.sync import Joining
from trailboss.network.sync_answers import ChunkResult, OfferResult
from trailboss.node.logs import Log
from trailboss.state import parts

PART, CHUNK = 300, 1_000
"""Most bytes of a part and of a chunk: the state of a schedule has several of each."""


def small_parts() -> AbstractContextManager[object]:
    """Cut states into small parts and chunks until it ends, and write no log of them."""
    with ExitStack() as patched:
        patched.enter_context(patch.object(Log, "write"))
        patched.enter_context(patch.object(parts, "PART_OCTETS", PART))
        patched.enter_context(patch.object(snapshots, "CHUNK_OCTETS", CHUNK))
        return patched.pop_all()


def offered(member: RestartingMember) -> list[Any]:
    """Return the snapshots that a member lists."""
    answer = MESSAGES["ResponseListSnapshots"]()
    member.snapshots.list_snapshots(None, answer)
    return list(answer.snapshots)


def join_by_snapshot(
    dice: Dice, engine: Engine, others: Sequence[Engine], records: Records, seen: Counter[str]
) -> bool:
    """Replace a member's chain and its engine's data by those of a snapshot; False if the others have none.

    Raises:
        Divergence: If two members have different snapshots of one block, or an answer to the engine is another one.
    """
    found: dict[int, Any] = {}
    for other in others:
        for each in offered(other.member):
            if each != found.setdefault(each.height, each):
                raise Divergence(f"{other.name} has another snapshot of block {each.height}")
    if not found:
        return False
    snapshot = found[dice.pick(sorted(found))]
    holders = [other.member for other in others if snapshot in offered(other.member)]
    engine.member.end()
    _Join(dice, engine, holders, snapshot, records.answers[records.at(snapshot.height)].app_hash, seen).run()
    engine.member.open()
    engine.begin_at(snapshot.height)
    return True


class _Join(NamedTuple):
    """The way of one member to a chain, as its engine goes it."""

    dice: Dice
    engine: Engine
    holders: Sequence[RestartingMember]
    snapshot: Any
    app_hash: bytes
    seen: Counter[str]

    def run(self) -> None:
        """Apply all chunks, in any order; perhaps the process ends once, and all begins again."""
        joining, missing = self._begin(), list(range(self.snapshot.chunks))
        ends_with = self.dice.integer(1, len(missing)) if self.dice.often(30) else 0  # so many are missing
        while missing:
            if len(missing) == ends_with:
                ends_with = 0
                self.seen["joins that end and begin again"] += 1
                joining._restoration._intake._closing.close()  # as the end of a process: nothing is tidied
                joining, missing = self._begin(), list(range(self.snapshot.chunks))
            self._fetch(joining, missing.pop(self.dice.integer(0, len(missing) - 1)))
        expected = self.snapshot.height, self.app_hash
        if joining.standing() != expected:
            raise Divergence(f"{self.engine.name} has joined at {joining.standing()}, not at {expected}")
        joining.close()

    def _begin(self) -> Joining:
        """Offer the snapshot, after false ones."""
        directory = self.engine.member.directory
        assert directory is not None
        joining = Joining(directory, self.engine.member.genesis)
        while self.dice.often(40):
            false = MESSAGES["Snapshot"]()
            false.CopyFrom(self.snapshot)
            field = self.dice.pick(("height", "chunks", "metadata", "hash"))
            value = getattr(false, field)
            setattr(false, field, value + 1 if isinstance(value, int) else self._garbled(value))
            self._offer(joining, false, self.app_hash, OfferResult.REJECT_SENDER)
            self.seen["false snapshots refused"] += 1
        self._offer(joining, self.snapshot, bytes(32), OfferResult.REJECT_SENDER)
        self._offer(joining, self.snapshot, self.app_hash, OfferResult.ACCEPT)
        return joining

    def _offer(self, joining: Joining, snapshot: Any, app_hash: bytes, expected: OfferResult) -> None:
        request, answer = MESSAGES["RequestOfferSnapshot"](app_hash=app_hash), MESSAGES["ResponseOfferSnapshot"]()
        request.snapshot.CopyFrom(snapshot)
        joining.offer(request, answer)
        self._check(answer.result, expected, "an offer")

    def _fetch(self, joining: Joining, index: int) -> None:
        """Apply a chunk of some member, after false ones."""
        snapshot = self.snapshot
        asked = MESSAGES["RequestLoadSnapshotChunk"](height=snapshot.height, format=snapshot.format, chunk=index)
        answer = MESSAGES["ResponseLoadSnapshotChunk"]()
        self.dice.pick(self.holders).snapshots.load_chunk(asked, answer)
        while self.dice.often(25):
            self._apply(joining, index, self._garbled(answer.chunk), ChunkResult.RETRY)
            self.seen["false chunks refused"] += 1
        self._apply(joining, index, answer.chunk, ChunkResult.ACCEPT)

    def _apply(self, joining: Joining, index: int, chunk: bytes, expected: ChunkResult) -> None:
        answer = MESSAGES["ResponseApplySnapshotChunk"]()
        joining.apply_chunk(MESSAGES["RequestApplySnapshotChunk"](index=index, chunk=chunk, sender=b"peer"), answer)
        self._check(answer.result, expected, f"chunk {index}")

    def _check(self, found: int, expected: int, what: str) -> None:
        if found != expected:
            raise Divergence(f"{self.engine.name} answers {found} to {what} of a snapshot, not {expected}")

    def _garbled(self, octets: bytes) -> bytes:
        """Return other bytes: shorter, longer, none, or with one bit that differs."""
        at = self.dice.integer(0, len(octets) - 1)
        flipped = octets[:at] + bytes((octets[at] ^ (1 << self.dice.integer(0, 7)),)) + octets[at + 1 :]
        return self.dice.pick((flipped, octets[:at], octets + octets[: at + 1], b""))
