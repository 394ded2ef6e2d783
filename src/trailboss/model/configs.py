"""Governed configurations as the state holds them, and the running totals. Amounts are 16 bytes big-endian."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple, TypeVar

import msgspec

from trailboss.codec.canonical import pack
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Amount, Cells, Cycles

AMOUNT_WIDTH: Final = 16


class TimerConfig(msgspec.Struct, frozen=True, array_like=True):
    """Timer parameters under governance. Units and limits: `trailboss.params.TimerParams`. Spec: CIP-5 §6.4."""

    max_ttl_blocks: int
    max_cycles_per_fire: Cycles
    max_cells_per_fire: Cells
    max_timers_per_actor: int
    gc_cycles_per_block: Cycles


class BasefeeConfig(msgspec.Struct, frozen=True, array_like=True):
    """The governed fee markets; access is stored and shown, and has no price here. Source: cowboy-facts §7."""

    alpha: int
    max_change_denominator: int
    min_basefee: bytes
    max_basefee: bytes
    cycles_target: int
    cells_target: int
    access_target: int
    access_weight_scalar_ppm: int


class LaneMultipliers(msgspec.Struct, frozen=True, array_like=True):
    """Fee multiplier of each lane, in parts of `FeeParams.lane_multiplier_unit`. Decision: D-41."""

    user: int
    runner: int
    timer: int
    system: int


class Basefees(msgspec.Struct, frozen=True, array_like=True):
    """Basefees of the next block."""

    cycle: bytes
    cell: bytes


class Economy(msgspec.Struct, frozen=True, array_like=True):
    """Money: what genesis created and what has been burned since."""

    supply: bytes
    burned: bytes


class SchedulerTotals(msgspec.Struct, array_like=True):
    """Counts over all timers ever; ``scheduled`` is also the next FIFO sequence. Decision: D-35."""

    scheduled: int = 0
    fired: int = 0
    unfunded: int = 0
    expired: int = 0
    cancelled: int = 0


class JoiningGap(NamedTuple):
    """Due timers that have not joined yet: from a height and sequence, up to a last height."""

    first_height: int
    first_sequence: int
    last_height: int

    def holds(self, height: int, sequence: int) -> bool:
        """Return whether a due timer of a height and sequence is in it."""
        return (self.first_height, self.first_sequence) <= (height, sequence) and height <= self.last_height


class BarredPayer(NamedTuple):
    """Due timers of one payer that could not pay when they were to join, from one place to another.

    A place is a height and a sequence. The first is that of a timer that could not pay; the end is behind the last.
    """

    payer: bytes
    first: tuple[int, int]
    end: tuple[int, int]

    def holds(self, payer: bytes, place: tuple[int, int]) -> bool:
        """Return whether it includes the due timer of a payer at a place."""
        return payer == self.payer and self.first <= place < self.end


def is_outside(
    gaps: Iterable[JoiningGap], barred: Iterable[BarredPayer], fee_payer: bytes, place: tuple[int, int]
) -> bool:
    """Return whether the due timer of a payer at a place has not joined yet. Decision: D-51, D-79."""
    return any(gap.holds(*place) for gap in gaps) or any(each.holds(fee_payer, place) for each in barred)


class LaneState(msgspec.Struct, frozen=True, array_like=True):
    """The timer lane between two blocks. Spec: CIP-1v3 §5."""

    basefee: bytes  # lane basefee of the next block, base units per cycle
    previous_tip: bytes = bytes(AMOUNT_WIDTH)  # lower median of the last block's tips per cycle; 0 if none fired
    burned: bytes = bytes(AMOUNT_WIDTH)  # lane basefee burned so far, base units; part of `Economy.burned`


class JoiningGaps(msgspec.Struct, frozen=True, array_like=True):
    """Due timers that have not joined yet, ascending. Decision: D-51."""

    gaps: tuple[JoiningGap, ...] = ()


class BarredPayers(msgspec.Struct, frozen=True, array_like=True):
    """Due timers that have not joined for want of funds, ascending. Decision: D-79."""

    barred: tuple[BarredPayer, ...] = ()


class FairnessTotals(msgspec.Struct, frozen=True, array_like=True):
    """The fairness window, summed up. Spec: CIP-1v3 §8. Decision: D-52."""

    first: int = 0  # number of the oldest block record in the window; blocks without a fire have none
    next: int = 0  # number of the next record
    counts: tuple[tuple[int, int], ...] = ()  # actors by their fires in the window: (fires, actors), ascending


class BlockFires(msgspec.Struct, frozen=True, array_like=True):
    """The fires of one block of the window: its height, and (actor, fires), ascending by actor."""

    height: int
    fires: tuple[tuple[bytes, int], ...]


class SmoothedMedian(msgspec.Struct, frozen=True, array_like=True):
    """The network median of fires over many blocks, in parts of 10⁻⁹. Spec: CIP-1v3 §8. Decision: D-106."""

    fires: int


class MailboxEnds(msgspec.Struct, frozen=True, array_like=True):
    """The waiting messages, or deferred transactions, are those with ``first <= sequence < next``."""

    first: int = 0
    next: int = 0


class Message(msgspec.Struct, frozen=True, array_like=True):
    """A waiting message: sender and target, 20 bytes each, payload, and the height of its block."""

    sender: bytes
    target: bytes
    payload: bytes
    sent_at: int


class DeferredCall(msgspec.Struct, frozen=True, array_like=True):
    """A waiting deferred transaction: an actor calls itself in a later block. Decision: D-88."""

    actor: bytes  # caller and callee, 20 bytes
    handler: str  # its handler
    payload: bytes  # the handler's argument
    created_at: int  # height of the block that created it
    origin_hash: bytes  # hash of the execution that created it
    pool: int  # number of its gas pool


class GasPool(msgspec.Struct, frozen=True, array_like=True):
    """What an execution leaves for the deferred transactions that it created. Spec: CIP-5 §5.2. Decision: D-88."""

    payer: bytes  # who pays, 20 bytes
    cycles: int  # cycles left
    cells: int  # cells left
    cycle_basefee: bytes  # burned per cycle, base units; as all four prices, that of the execution
    cell_basefee: bytes  # burned per cell
    cycle_tip: bytes  # to the proposer per cycle
    cell_tip: bytes  # to the proposer per cell
    waiting: int  # deferred transactions that draw on it


class Runner(msgspec.Struct, frozen=True, array_like=True):
    """The runner of a development chain. Decision: D-113."""

    jobs_max: int = 0  # jobs that may wait for a reply; 0 without a runner
    waiting: int = 0  # jobs that wait
    next: int = 1  # number of the next job


class RunnerJob(msgspec.Struct, frozen=True, array_like=True):
    """A runner job of a development chain. Decision: D-113."""

    actor: bytes  # who waits for the reply, 20 bytes
    request: bytes  # what it has sent, canonical CBOR
    sent_at: int  # height of the block in which it was sent
    origin_hash: bytes  # hash of the transaction in which it was sent; 32 zero bytes in a fire
    handler: str  # the handler that takes the reply
    cycles: int  # cycles that the handler may use
    cells: int  # cells that the handler may use
    replied_at: int = 0  # height of the block with the reply; 0 while it waits


class CallMock(msgspec.Struct, frozen=True, array_like=True):
    """What answers calls of a handler on a development chain; fields as in `SetMock`. Decision: D-110."""

    target: bytes  # 20 bytes
    handler: str
    payload: bytes | None
    returns: bytes
    reverts: str | None
    times: int | None  # how many calls it still answers; None for all

    def answers(self, target: bytes, handler: str, payload: bytes) -> bool:
        """Return whether it is for such a call."""
        return (self.target, self.handler) == (target, handler) and self.payload in (None, payload)


class CallMocks(msgspec.Struct, frozen=True, array_like=True):
    """All mocks, in the order in which they answer: those for one payload first. Decision: D-110."""

    mocks: tuple[CallMock, ...] = ()


Record = TypeVar("Record", bound=msgspec.Struct)
encode_record: Final[Callable[[msgspec.Struct], bytes]] = pack


def decode_record(octets: bytes, kind: type[Record]) -> Record:
    """Return the record of a kind that bytes of this chain's own state hold."""
    return msgspec.msgpack.decode(octets, type=kind)


def stored(read: Callable[[bytes], bytes | None], key: bytes, kind: type[Record]) -> Record | None:
    """Return the record under a key, or None."""
    octets = read(key)
    return None if octets is None else decode_record(octets, kind)


def held(read: Callable[[bytes], bytes | None], key: bytes, kind: type[Record], what: str) -> Record:
    """Return a record that the state holds; `InvariantError` with its name if it does not."""
    record = stored(read, key, kind)
    if record is None:
        raise InvariantError(f"the state holds no {what}")
    return record


def amount_octets(amount: int) -> bytes:
    """Return an amount as the state holds it."""
    return amount.to_bytes(AMOUNT_WIDTH, "big")


amount_of: Final[Callable[[bytes], Amount]] = int.from_bytes  # type: ignore[assignment]  # Amount is int with a name
"""Return the amount that 16 bytes hold, big-endian."""


class MarketKind(Enum):
    """What a chain keeps for its mechanism: from genesis on, or from the activation on. A registry has its rules."""

    NONE = "none"  # nothing
    LANE = "lane"  # Basefee and median tip of the timer lane, and its fairness window. Spec: CIP-1v3 §5, CIP-1v3 §8.
    AUCTION = "auction"  # Weights of actors. Spec: CIP-1v1 §3.
    GLOBALBOX = "globalbox"  # The queue of fires and its mailbox. Spec: CIP-5old §5.3.
