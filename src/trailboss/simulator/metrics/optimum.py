"""The most that one who knows all demand could get out of blocks: a bound for every mechanism."""

from collections.abc import Sequence
from typing import NamedTuple

Pieces = dict[int, int]
"""Parts of jobs in one block: the last height of the jobs, and cycles of them."""


class Job(NamedTuple):
    """A timer as its value sees it."""

    first: int  # height of the first block that can fire it
    last: int  # height of the last one
    cycles: int  # that its fire uses, from 1
    value: int  # what its fire is worth, base units


def optimum(jobs: Sequence[Job], cycles_max: int) -> float:
    """Return the greatest worth of fires that fit blocks of ``cycles_max`` cycles.

    Jobs are taken by value a cycle, the greatest first; each keeps what finds room beside those before it. It is exact
    for jobs of equal cycles: sets of unit jobs that can all be in time are the independent sets of a transversal
    matroid, in which the greedy choice is best (Edmonds & Fulkerson 1965; Lawler 1976, chapter 7). For others it is an
    upper bound: that of fires which may be split among blocks and done in part (the linear relaxation of the knapsack,
    Dantzig 1957), where the same choice is best because what can be in time is a polymatroid (Edmonds 1970). Whether
    jobs find room together, the earliest deadline first decides (Horn 1974; Glover 1967). A job's value is the same
    in all of its blocks: where it decays, its greatest value gives an upper bound too.
    """
    sizes = {job.cycles for job in jobs}
    is_exact = len(sizes) == 1
    room = cycles_max // sizes.pop() if is_exact else cycles_max
    blocks = dict[int, Pieces]()
    total = 0.0
    for job in sorted(jobs, key=lambda job: (-job.value / job.cycles, job)):
        size = 1 if is_exact else job.cycles
        changed, left_out = _placed(blocks, job, size, room)
        if left_out:
            changed = _placed(blocks, job, size - left_out, room)[0]
        blocks |= changed
        total += job.value * (size - left_out) / size
    return total


def _placed(blocks: dict[int, Pieces], job: Job, size: int, room: int) -> tuple[dict[int, Pieces], int]:
    """Return the blocks that placing a job changes, the earliest deadline first, and how much finds no room at all."""
    changed = dict[int, Pieces]()
    moved, height, left_out = {job.last: size} if size else Pieces(), job.first, 0
    while moved:
        pieces, kept, free = dict(blocks.get(height, {})), Pieces(), room
        for last, cycles in moved.items():
            pieces[last] = pieces.get(last, 0) + cycles
        moved = Pieces()
        for last, cycles in sorted(pieces.items()):
            part = min(cycles, free)
            free -= part
            if part:
                kept[last] = part
            if part < cycles and last > height:
                moved[last] = cycles - part
            elif part < cycles:
                left_out += cycles - part
        changed[height] = kept
        height += 1
    return changed, left_out
