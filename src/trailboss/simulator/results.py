"""What a run of a workload comes to."""

from typing import NamedTuple

from msgspec import Struct

from trailboss.primitives.octets import Address, Hash32
from trailboss.simulator.measures import Outcome


class Fire(NamedTuple):
    """One fire of a run: the block of the workload, the number of its group, and by how many blocks it was late."""

    block: int
    group: int
    late: int


class BlockLine(Struct, frozen=True):
    """One block of a run."""

    block: int  # its number within the workload, from 1
    timer_cycles: int  # cycles of its fires
    cycles: int  # cycles of everything in it
    cycle_basefee: int  # in force in it, base units per cycle
    # Of each group, blocks by which the oldest timer is late that waits after it; 0 if none does.
    oldest: tuple[int, ...]


class GroupResult(Struct, frozen=True):
    """What became of one group of actors."""

    name: str
    outcome: Outcome


class ActorResult(Struct, frozen=True):
    """What one actor got: its group, its number within it from 0, its address, fires delivered and asked for."""

    group: str
    number: int
    address: Address
    delivered: int
    asked: int


class MechanismResult(Struct, frozen=True, kw_only=True):
    """One mechanism's run. Money in base units."""

    mechanism: str  # which
    budget_cycles: int  # cycles that the fires of one block may use
    outcome: Outcome  # of all actors
    groups: tuple[GroupResult, ...]  # of each group, in the order of the workload
    actors: tuple[ActorResult, ...]  # of each actor
    fullest_block: int  # most cycles that the fires of one block used
    full_blocks: int  # blocks in which fires used at least nine tenths of the budget
    transactions: int  # transactions in the workload's blocks
    transactions_refused: int  # those that found no room, or no price that they would pay
    supply: int  # at genesis
    balances: int  # of all accounts at the end
    burned: int  # by everything since genesis; balances and this are the supply
    state_root: Hash32  # after the last block
    timeline: tuple[BlockLine, ...]  # its blocks
    fires: tuple[Fire, ...]  # its fires, in the order in which they ran
