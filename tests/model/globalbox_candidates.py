"""What is due or hit under Globalbox in the slow model: every watch is compared with every key.

Spec: CIP-5old §7. Decision: D-65.
"""

from typing import Any, NamedTuple

from tests.model.globalbox_scripts import HEIGHT, WATCH
from tests.model.joining import JoiningBlocks
from tests.model.world import Timer

MATCHED_MAX = 16


class Hit(NamedTuple):
    """A modified key: who has yet to hear of it, and as of which block it counts as modified."""

    key: bytes
    next_sequence: int
    modified_at: int


class Candidate(NamedTuple):
    """A timer that is to be queued in this block."""

    timer: Timer
    hit_height: int
    matched_keys: tuple[bytes, ...] = ()


class CandidateBlocks(JoiningBlocks):
    """A chain whose timers are due or hit.

    Attributes:
        own: The parameters of Globalbox in this block.
        carried: Keys that count as modified in the next block as well.
        slots_before: Storage as the block before has left it.
    """

    mechanism = "globalbox"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.own: dict[str, int] = {}
        self.carried: dict[bytes, Hit] = {}
        self.slots_before: dict[tuple[bytes, bytes], bytes] = {}

    def copy(self) -> "CandidateBlocks":
        """Return a model that goes on from here without touching this one."""
        twin = super().copy()
        twin.carried = dict(self.carried)
        return twin

    def _differences(self, before: dict[tuple[bytes, bytes], bytes]) -> list[bytes]:
        """Return the keys whose values are not what they were, ascending."""
        now = self.world.slots
        return sorted(owner + slot for owner, slot in {*before, *now} if self._differ(before, now, (owner, slot)))

    def _differ(self, before: Any, now: Any, slot: tuple[bytes, bytes]) -> bool:
        return before.get(slot) != now.get(slot)

    def _modified(self) -> list[Hit]:
        """Return the keys that count as modified in this block, ascending."""
        hits = dict(self.carried)
        for key in self._differences(self.slots_before):
            hits[key] = Hit(key, 0, self.height)
        return [hits[key] for key in sorted(hits)]

    def _due(self) -> list[Candidate]:
        """Return the height timers that have joined and have no fire yet."""
        return [
            Candidate(timer, timer.height)
            for timer in self.joined_timers()
            if timer.terms.kind == HEIGHT and self._is_armed(timer) and not timer.terms.in_mailbox
        ]

    def _is_armed(self, timer: Timer) -> bool:
        return timer.terms.fire is None and timer.expires_at >= self.height

    def _hears(self, timer: Timer, hit: Hit) -> bool:
        """Return whether a watch has yet to hear of a key."""
        is_later = timer.sequence >= hit.next_sequence and timer.schedule_block < hit.modified_at
        return is_later and any(hit.key.startswith(prefix) for prefix in timer.terms.watch_keys)

    def _hit(self, hits: list[Hit]) -> list[Candidate]:
        """Return the watches that are hit, as many as one block takes; carry the keys of which others have to hear."""
        watches = [timer for timer in self.world.timers if timer.terms.kind == WATCH and self._is_armed(timer)]
        watches.sort(key=lambda timer: timer.sequence)
        found = []
        for timer in watches:
            heard = [hit for hit in hits if self._hears(timer, hit)][:MATCHED_MAX]
            if heard:
                least = min(hit.modified_at for hit in heard)
                found.append(Candidate(timer, least, tuple(hit.key for hit in heard)))
        taken = found[: self.own["hits_max"]]
        if len(taken) < len(found):
            last = taken[-1].timer.sequence
            for hit in hits:
                rest = hit._replace(next_sequence=max(last + 1, hit.next_sequence))
                if any(self._hears(timer, rest) for timer in watches):
                    self.carried[hit.key] = rest
                    self.occurred.append("fan-out carried")
        return taken
