"""What the state knows of each actor of the auction: its weight, and what its next one will follow from.

A waiting timer is never touched. An actor's deferrals are a number of waiting timers and the block up to which they are
counted; a block adds to them only where that number changes. Weights are brought up to date one actor at a time, when
the mechanism asks for it, from what the actor has done since the last time.

Every quotient is rounded down, and 0 if it has no divisor. After every block `check_standings` holds. Spec: CIP-1v1 §3.
Decision: D-18, D-58, D-59.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from trailboss.execution.session import BlockSession, Fired, ReadableChain
from trailboss.governance.parameters import Read
from trailboss.model.auction import SCORE_UNIT, AuctionActor, AuctionEpoch, AuctionState
from trailboss.model.configs import amount_octets, amount_of, encode_record, is_outside, stored
from trailboss.params import AuctionParams
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address
from trailboss.primitives.units import clamp
from trailboss.state.keys import config_key

Sums = TypeVar("Sums", AuctionActor, AuctionEpoch)
_ACTOR: Final = b"system:auction:actor:"
_EPOCH: Final = b"system:auction:epoch:"


def actor_key(actor: bytes) -> bytes:
    """Return the state key of an actor's record."""
    return config_key(_ACTOR + actor)


def epoch_key(epoch: int) -> bytes:
    """Return the state key of an epoch's sums."""
    return config_key(_EPOCH + epoch.to_bytes(8, "big"))


def find_actor(read: Read, actor: bytes) -> AuctionActor | None:
    """Return an actor's record; None if none of its timers has joined yet."""
    return stored(read, actor_key(actor), AuctionActor)


def read_epoch(read: Read, epoch: int) -> AuctionEpoch:
    """Return an epoch's sums; empty before its first actor and after its last."""
    return stored(read, epoch_key(epoch), AuctionEpoch) or AuctionEpoch()


def find_actors(chain: ReadableChain) -> Iterator[tuple[bytes, AuctionActor]]:
    """Yield the address and record of every actor that has taken part. Complexity: O(accounts)."""
    for address, _ in chain.accounts():
        found = find_actor(chain.store.read, address)
        if found is not None:
            yield address, found


def counted(actor: AuctionActor, height: int) -> AuctionActor:
    """Return a record with what its actor has waited up to the end of a block."""
    blocks = height - actor.counted_at
    if not blocks:
        return actor
    if not actor.waiting:
        return msgspec.structs.replace(actor, counted_at=height)
    return msgspec.structs.replace(
        actor,
        deferrals=actor.deferrals + actor.waiting * blocks,
        counted_at=height,
        longest_wait=max(actor.longest_wait, height - actor.quiet_since),
        took_part=True,
    )


class Standings:
    """The actors of the auction in one block."""

    __slots__ = ("_auction", "_before", "_overlay", "_rescales", "epoch")

    def __init__(self, session: BlockSession, state: AuctionState) -> None:
        params = session.context.rules.params
        self._overlay = session.overlay
        self._auction = params.auction
        self._rescales = state.rescales
        self._before = session.context.height - 1
        self.epoch = session.context.height // params.calendar.epoch_length

    def weight_of(self, actor: bytes) -> int:
        """Return an actor's weight as it stands, in parts of `SCORE_UNIT`."""
        found = find_actor(self._overlay.read, actor)
        return self._auction.weight_start if found is None else found.weight

    def is_behind(self, actor: bytes) -> bool:
        """Return whether `refresh_weight` has anything to do for an actor."""
        found = find_actor(self._overlay.read, actor)
        return found is None or found.epoch < self.epoch or found.rescaled < len(self._rescales)

    def refresh_weight(self, actor: bytes) -> int:
        """Bring an actor's weight up to date and return it: its last epoch, idle epochs since, rescales by governance.

        Decision: D-18, D-59
        """
        record = find_actor(self._overlay.read, actor)
        if record is None:
            record = self._newcomer()
        elif record.epoch < self.epoch:
            record = self._next(record)
        factors = self._rescales[record.rescaled :]
        weight = rescaled(record.weight, factors, self._auction)
        record = msgspec.structs.replace(record, weight=weight, rescaled=len(self._rescales))
        self._overlay.write(actor_key(actor), encode_record(record))
        return weight

    def count(self, actor: bytes, *, joined: int, fires: Sequence[Fired], left: int) -> None:
        """Count what an actor's timers have done in this block, after it; ``left`` counts fired ones among them.

        Raises:
            InvariantError: If more leave than waited, or an actor has fires and no record.
        """
        found = find_actor(self._overlay.read, actor)
        if found is None:
            raise InvariantError(f"the auction has no record of {Address(actor)}, whose timers have joined")
        record = counted(found, self._before)
        waiting = record.waiting + joined - left
        if waiting < 0:
            raise InvariantError(f"{left} timers of {Address(actor)} leave the auction, which has {waiting + left}")
        quiet_since = self._before if joined and not record.waiting else record.quiet_since
        if fires:
            quiet_since = self._before + 1
            record = _with_fires(record, fires)
            sums = _with_fires(read_epoch(self._overlay.read, record.epoch), fires)
            self._overlay.write(epoch_key(record.epoch), encode_record(sums))
        record = msgspec.structs.replace(
            record,
            waiting=waiting,
            quiet_since=quiet_since,
            fires=record.fires + len(fires),
            took_part=record.took_part or joined > 0 or len(fires) > 0,
        )
        self._overlay.write(actor_key(actor), encode_record(record))

    def _newcomer(self) -> AuctionActor:
        """Return the first record of an actor: what governance has done to weights so far does not concern it."""
        self._change_places(self.epoch, 1)
        return AuctionActor(
            weight=self._auction.weight_start,
            rescaled=len(self._rescales),
            epoch=self.epoch,
            counted_at=self._before,
            quiet_since=self._before,
        )

    def _next(self, record: AuctionActor) -> AuctionActor:
        """Return an actor's record in the present epoch, its weight drawn from the one that it was about."""
        ended = counted(record, self._before)
        weight = ended.weight
        if ended.took_part:
            weight = weight_after(ended, read_epoch(self._overlay.read, ended.epoch), self._auction)
        if not ended.waiting:
            # Its record's own epoch is idle as well if the actor was brought up to date in it and took no part then.
            weight = relaxed(weight, self._auction.weight_start, self.epoch - ended.epoch - ended.took_part)
        self._change_places(ended.epoch, -1)
        self._change_places(self.epoch, 1)
        return AuctionActor(
            weight=weight,
            rescaled=ended.rescaled,
            epoch=self.epoch,
            waiting=ended.waiting,
            counted_at=ended.counted_at,
            quiet_since=ended.quiet_since,
        )

    def _change_places(self, epoch: int, change: int) -> None:
        """Change how many actors have yet to draw their weights from an epoch; its sums go with the last one."""
        sums = read_epoch(self._overlay.read, epoch)
        places = sums.actors + change
        if places > 0:
            self._overlay.write(epoch_key(epoch), encode_record(msgspec.structs.replace(sums, actors=places)))
        else:
            self._overlay.delete(epoch_key(epoch))


def _with_fires(record: Sums, fires: Sequence[Fired]) -> Sums:
    """Return a record of an actor or an epoch with the cycles of fires, at least one, and their highest tip."""
    highest = max(amount_of(record.highest_tip), *(fire.tip for fire in fires))
    cycles_used = record.cycles_used + sum(fire.cycles_used for fire in fires)
    return msgspec.structs.replace(record, highest_tip=amount_octets(highest), cycles_used=cycles_used)


RESET: Final = 0  # The factor that resets a weight instead of multiplying it.


def score_of(actor: AuctionActor, epoch: AuctionEpoch, lateness_scale: int) -> int:
    """Return an actor's score of an epoch: the mean of effective tip, outcome, lateness and sparing use.

    Its deferrals are counted to the end of the epoch; ``lateness_scale`` is the blocks of lateness that score one half.
    """
    tip = _quotient(amount_of(actor.highest_tip), amount_of(epoch.highest_tip))
    outcome = _quotient(actor.fires, actor.fires + actor.deferrals)
    late = actor.deferrals // max(1, actor.fires + actor.waiting)
    lateness = _quotient(late, late + lateness_scale)
    sparing = SCORE_UNIT - _quotient(actor.cycles_used, epoch.cycles_used)
    parts = (tip, outcome, lateness, sparing)
    return sum(parts) // len(parts)


def weight_after(actor: AuctionActor, epoch: AuctionEpoch, auction: AuctionParams) -> int:
    """Return an actor's weight after an epoch in which it took part; deferrals are counted to the end of the epoch.

    It moves towards the score by the share λ, within its bounds; an actor that was starved has the floor at least.
    """
    score = score_of(actor, epoch, auction.lateness_scale)
    moved = ((SCORE_UNIT - auction.decay) * actor.weight + auction.decay * score) // SCORE_UNIT
    weight = clamp(moved, auction.weight_min, auction.weight_max)
    return max(weight, auction.starvation_floor) if actor.longest_wait >= auction.starvation_blocks else weight


def relaxed(weight: int, start: int, epochs: int) -> int:
    """Return a weight after epochs in which its actor took no part: each halves the distance to the start.

    Half of an odd distance is rounded toward zero, so k halvings leave ⌈distance / 2ᵏ⌉, and never nothing.

    >>> relaxed(900, 500, 0), relaxed(900, 500, 1), relaxed(900, 500, 3), relaxed(105, 500, 1), relaxed(505, 500, 99)
    (900, 700, 550, 302, 501)
    """
    if weight >= start:
        return start - ((start - weight) >> epochs)
    return start + ((weight - start) >> epochs)


def rescaled(weight: int, factors: Iterable[int], auction: AuctionParams) -> int:
    """Return a weight after what governance has multiplied all weights by, in parts of `SCORE_UNIT`, in order."""
    for factor in factors:
        product = auction.weight_start if factor == RESET else weight * factor // SCORE_UNIT
        weight = clamp(product, auction.weight_min, auction.weight_max)
    return weight


def _quotient(part: int, whole: int) -> int:
    return SCORE_UNIT * part // whole if whole else 0


def check_auction(chain: ReadableChain) -> None:
    """Raise `InvariantError` unless the actors' records fit the timers that wait."""
    rules = chain.rules()
    outside = partial(is_outside, rules.gaps or (), rules.barred)
    due = chain.timers(last=chain.store.height)
    joined = (timer for timer in due if not outside(timer.fee_payer, (timer.height, timer.sequence)))
    waiting = Counter(timer.actor for timer in joined)
    check_standings(dict(find_actors(chain)), waiting, partial(read_epoch, chain.store.read))


def check_standings(
    actors: Mapping[bytes, AuctionActor], waiting: Mapping[bytes, int], epoch_of: Callable[[int], AuctionEpoch]
) -> None:
    """Raise `InvariantError` unless the actors' records fit their waiting timers, and the epochs' sums the records.

    Decision: D-58, D-59
    """
    for address in sorted(actors.keys() | waiting.keys()):
        counts = actors[address].waiting if address in actors else 0
        if counts != waiting.get(address, 0):
            raise InvariantError(
                f"the auction counts {counts} waiting timers of {Address(address)} and has {waiting.get(address, 0)}"
            )
    for epoch, places in sorted(Counter(record.epoch for record in actors.values()).items()):
        sums = epoch_of(epoch)
        if sums.actors != places:
            raise InvariantError(f"the auction's epoch {epoch} counts {sums.actors} actors and has {places}")
        used = sum(record.cycles_used for record in actors.values() if record.epoch == epoch)
        if used > sums.cycles_used:
            raise InvariantError(
                f"actors used {used} cycles of the auction's epoch {epoch}, which counts {sums.cycles_used}"
            )
