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
    """One block of a run.

    Attributes:
        block: Its number within the workload, from 1.
        timer_cycles: Cycles of its fires.
        cycles: Cycles of everything in it.
        cycle_basefee: In force in it, base units per cycle.
        oldest: Of each group, blocks by which the oldest timer is late that waits after it; 0 if none does.
    """

    block: int
    timer_cycles: int
    cycles: int
    cycle_basefee: int
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
    """One mechanism's run. Money in base units.

    Attributes:
        mechanism: Which.
        budget_cycles: Cycles that the fires of one block may use.
        outcome: Of all actors.
        groups: Of each group, in the order of the workload.
        actors: Of each actor.
        fullest_block: Most cycles that the fires of one block used.
        full_blocks: Blocks in which fires used at least nine tenths of the budget.
        transactions: Transactions in the workload's blocks.
        transactions_refused: Those that found no room, or no price that they would pay.
        supply: At genesis.
        balances: Of all accounts at the end.
        burned: By everything since genesis; balances and this are the supply.
        state_root: After the last block.
        timeline: Its blocks.
        fires: Its fires, in the order in which they ran.
    """

    mechanism: str
    budget_cycles: int
    outcome: Outcome
    groups: tuple[GroupResult, ...]
    actors: tuple[ActorResult, ...]
    fullest_block: int
    full_blocks: int
    transactions: int
    transactions_refused: int
    supply: int
    balances: int
    burned: int
    state_root: Hash32
    timeline: tuple[BlockLine, ...]
    fires: tuple[Fire, ...]
