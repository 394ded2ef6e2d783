"""Consensus engines without consensus: what CometBFT asks of an application, in its order, through every crash.

An engine keeps what the real one keeps on disk: blocks up to a height, the height of its state, and the last answer to
FinalizeBlock. When it starts it asks for what is missing, as the real one does: see `Engine.handshake`.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from tests.network.members import CommitPoint, Killed, RestartingMember
from tests.network.nodes import VALIDATORS
from trailboss.network.application import Committee, Result


class Divergence(AssertionError):
    """Members differ, or one of them breaks a law."""


class EngineBlock(NamedTuple):
    """A block as the engine has it."""

    height: int
    transactions: tuple[bytes, ...]
    proposer: int  # place among the validators
    time_ns: int  # nanoseconds since 1970
    signers: tuple[int, ...] = ()  # places of those that signed the block before

    @property
    def committee(self) -> Committee:
        """Its part in FinalizeBlock."""
        identities = [each.identity for each in VALIDATORS]
        present = [identities[place] for place in self.signers]
        absent = [each for each in identities if self.signers and each not in present]
        return Committee(identities[self.proposer], present, absent)


class Answer(NamedTuple):
    """What of an answer to FinalizeBlock the next header states."""

    app_hash: bytes
    results: tuple[tuple[int, int, int], ...]  # code, gas wanted and gas used of each transaction


def to_answer(results: Sequence[Result], app_hash: bytes) -> Answer:
    """Return the part of an answer that is agreed on."""
    return Answer(bytes(app_hash), tuple((each.code, each.cycles_limit, each.cycles_used) for each in results))


class Records:
    """The blocks that the network has decided, and every answer that an application has given to any block."""

    def __init__(self) -> None:
        self.decided: list[EngineBlock] = []
        self.answers: dict[EngineBlock, Answer] = {}

    def at(self, height: int) -> EngineBlock:
        """Return the decided block of a height, above 0."""
        return self.decided[height - 1]

    def check(self, who: str, block: EngineBlock, answer: Answer) -> Answer:
        """Refuse an answer that differs from the first one to the same block."""
        first = self.answers.setdefault(block, answer)
        if answer.app_hash != first.app_hash:
            what = f"the app hash {answer.app_hash.hex()[:16]}, not {first.app_hash.hex()[:16]}"
            raise Divergence(f"block {block.height}: {who} gives {what}")
        if answer.results != first.results:
            raise Divergence(f"block {block.height}: {who} gives the results {answer.results}, not {first.results}")
        return answer


class Point(Enum):
    """Where the work on a block may be cut off, in its order."""

    STORED = "the block is stored"
    FINALIZED = "FinalizeBlock is answered"
    SAVED = "the answer is saved"
    UNSEALED = "Commit has begun"
    SEALED = "Commit has sealed the block"
    INDEXED = "Commit has indexed the block"
    COMMITTED = "Commit is answered"
    DONE = "the state is saved"


class Engine:
    """The engine of one member."""

    def __init__(self, name: str, member: RestartingMember, records: Records) -> None:
        self.name, self.member, self.records = name, member, records
        self.base = 0  # height below and at which it has no blocks
        self.stored = self.state = 0  # height of the last block, and of the last one whose effects are saved
        self.saved: tuple[int, Answer] | None = None
        self.cut: Point | None = None  # where its work is cut off

    def forget_all(self) -> None:
        """Start with empty data."""
        self.begin_at(0)

    def begin_at(self, height: int) -> None:
        """Start with the data that joining by a snapshot leaves: a state, and no block."""
        self.base = self.stored = self.state = height
        self.saved = None

    def finalize(self, block: EngineBlock) -> Answer:
        """Have the application apply a block, and compare what it answers."""
        answer = self.member.application.finalize(block.height, block.time_ns, block.transactions, block.committee)
        return self.records.check(self.name, block, to_answer(*answer))

    def take(self, block: EngineBlock) -> None:
        """Store the next decided block, and apply it. `Killed` where it is cut off."""
        if block.height != self.state + 1:
            raise Divergence(f"{self.name} comes to block {block.height} at {self.state}")
        self.stored = block.height
        self._apply(block)

    def _apply(self, block: EngineBlock) -> None:
        self._reach(Point.STORED)
        answer = self.finalize(block)
        self._reach(Point.FINALIZED)
        self.saved = block.height, answer
        self._reach(Point.SAVED)
        self._commit(block)
        self._reach(Point.COMMITTED)
        self.state = block.height
        self._reach(Point.DONE)

    def _commit(self, block: EngineBlock) -> None:
        with self.member.dies_at(CommitPoint.__members__.get(self.cut.name) if self.cut else None):
            self.member.application.commit()
        self.member.offer_snapshot()
        self._check_standing(block.height)

    def _reach(self, point: Point) -> None:
        if self.cut is point:
            raise Killed

    def _check_standing(self, height: int) -> None:
        found, app_hash = self.member.application.standing()
        expected = self.records.answers[self.records.at(height)].app_hash if height else bytes(app_hash)
        if (found, bytes(app_hash)) != (height, expected):
            what = f"{self.name} stands at {found} with {bytes(app_hash).hex()[:16]}"
            raise Divergence(f"{what}, its engine at {height} with {expected.hex()[:16]}")

    def handshake(self) -> None:
        """Start: ask where the application stands, and apply what it lacks. `Killed` where it is cut off."""
        height, _ = self.member.application.standing()
        if height == 0:
            self.member.begin()
        if height > self.stored:
            raise Divergence(f"{self.name} has committed block {height}, its engine has {self.stored}")
        has_unfinished = self.stored == self.state + 1
        for replayed in range(height + 1, self.stored + (not has_unfinished)):
            # The engine has the answers to these, so it saves none.
            block = self.records.at(replayed)
            self.finalize(block)
            self._commit(block)
        if has_unfinished and height == self.stored:
            if self.saved is None or self.saved[0] != height:
                raise Divergence(f"{self.name} has committed block {height}, whose answer its engine never had")
            self.state = height
        elif has_unfinished:
            self._apply(self.records.at(self.stored))
        self._check_standing(self.state)
