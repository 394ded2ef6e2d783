"""Who proposed and who signed lately, as this node has seen it since it started."""

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final

from msgspec import Struct

REMEMBERED_BLOCKS: Final = 100


class Attendance(Struct, frozen=True):
    """What one validator did in the last blocks."""

    identity: bytes  # 20 bytes
    proposed: int  # blocks that it proposed
    signed: int  # blocks that it signed
    blocks: int  # blocks of which it is known whether it signed them, at most `REMEMBERED_BLOCKS`
    last_signed: int | None  # height of the last one that it signed; None if none is known


class _Seen(Struct, frozen=True):
    height: int
    proposer: bytes
    signers: frozenset[bytes]  # of the block before
    is_known: bool  # whether the block stated who signed the one before


class Participation:
    """The validators' part in the last blocks. Any thread may read it."""

    def __init__(self, identities: Sequence[bytes]) -> None:
        self._identities = tuple(identities)
        self._seen: deque[_Seen] = deque(maxlen=REMEMBERED_BLOCKS)
        self._lock = Lock()

    def note(self, height: int, proposer: bytes, signers: Sequence[bytes], absent: Sequence[bytes]) -> None:
        """Note what a block states; a block that is finalized again takes the place of what was noted before."""
        seen = _Seen(height, proposer, frozenset(signers), bool(signers or absent))
        with self._lock:
            while self._seen and self._seen[-1].height >= height:
                self._seen.pop()
            self._seen.append(seen)

    def attendance(self) -> list[Attendance]:
        """Return what each validator did, in the order of genesis."""
        with self._lock:
            seen = list(self._seen)
        known = [each for each in seen if each.is_known]
        return [
            Attendance(
                identity=identity,
                proposed=sum(each.proposer == identity for each in seen),
                signed=sum(identity in each.signers for each in known),
                blocks=len(known),
                last_signed=next((each.height - 1 for each in reversed(known) if identity in each.signers), None),
            )
            for identity in self._identities
        ]
