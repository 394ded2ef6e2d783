"""What the benchmarks of the lane and of the auction share: crowds that wait, and blocks that choose among them."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import count, repeat
from typing import Any, Protocol

from msgspec.structs import replace

from benchmarks.measure import Case, timed
from trailboss.mechanisms.base import DueTimers, Mechanism
from trailboss.mechanisms.context import SelectionContext
from trailboss.model.timers import DEFAULT_HANDLER, RECORD_VERSION, Timer, freeze_fees
from trailboss.primitives.units import Amount, Cycles, Height

SIZES = (10_000, 100_000, 1_000_000)
FIRES = 8
GAS = Cycles(250_000)
BUDGET = FIRES * GAS
BLOCKS = 5
"""Blocks of one sample, each at another basefee."""
RATIO = 3
FIT = 100_000
FIT_SECONDS = 0.15
ACTORS = 1_000
CLASSES = 8
"""Different weights of actors, or numbers of fires that give them."""
BASEFEE = 1_000
STEP = 37
"""A prime: the basefee moves by it, and fees are spread by its multiples."""
HEIGHT = 100
RICH = {number.to_bytes(20, "big"): Amount(2**127) for number in range(ACTORS)}

Fees = Callable[[int], bytes]
"""The number of a timer to its `Timer.fees`."""


def shapes(unpriced: bytes, spread: int, words: tuple[str, str, str, str]) -> dict[str, Fees]:
    """Return crowds by name: without fees, all the same, two for each actor, and all different.

    Args:
        unpriced: `Timer.fees` of a timer without any.
        spread: Different tips of the last crowd, a prime.
        words: What the four are called.
    """
    fees: tuple[Fees, ...] = (
        lambda _: unpriced,
        lambda _: freeze_fees(10 * BASEFEE, 5),
        lambda number: freeze_fees(10 * BASEFEE + number % ACTORS, 5 + number // ACTORS % 2),
        lambda number: freeze_fees(BASEFEE // 2 + number * STEP % 2_000_003, number * STEP % spread),
    )
    return dict(zip(words, fees, strict=True))


def waiting_timer(number: int, fees: bytes, expires_at: int) -> Timer:
    """Return a timer that is due, one of `ACTORS` actors'."""
    actor = (number % ACTORS).to_bytes(20, "big")
    return Timer(
        version=RECORD_VERSION,
        actor=actor,
        height=Height(HEIGHT),
        timer_id=sha256(number.to_bytes(8, "big")).digest(),
        sequence=number,
        handler=DEFAULT_HANDLER,
        payload=b"",
        fee_payer=actor,
        gas_limit=GAS,
        access_limit=0,
        expires_at=Height(expires_at),
        schedule_block=Height(1),
        fees=fees,
    )


class Block(Protocol):
    """What delivery would offer: a budget that fires use up, payers that can pay, records that are at hand.

    Attributes:
        left: Cycles that are left of the budget.
        context: The rest.
    """

    left: int
    context: SelectionContext[Any]


def cases(
    shape: str,
    joined: Callable[[int], Mechanism],
    block: Callable[[int, int], Block],
    at_hand: Callable[[SelectionContext[Any]], SelectionContext[Any]],
    *,
    has_budget: bool,
) -> list[Case]:
    """Return the cases of one crowd: some fires out of crowds of each size, and then all of `FIT`.

    Args:
        shape: Name of the crowd.
        joined: Returns a mechanism that so many timers of it have joined.
        block: Returns a block with a budget and a basefee.
        at_hand: Returns a context in which reading a timer's record takes no time.
        has_budget: Whether all of them must be chosen in `FIT_SECONDS`.
    """
    first = f"{shape}, {FIRES} of {SIZES[0]:,}"
    some = [
        Case(
            name=f"{shape}, {FIRES} of {size:,}",
            sample=partial(_fire, joined(size), block, count()),
            beside="" if size == SIZES[0] else first,
            ratio_max=RATIO if size == SIZES[-1] else None,
        )
        for size in SIZES
    ]
    everyone = Case(
        name=f"{shape}, all of {FIT:,}",
        sample=partial(_fire_all, joined(FIT), at_hand(block(FIT * GAS, BASEFEE // 2).context)),
        seconds_max=FIT_SECONDS if has_budget else None,
    )
    return [*some, everyone]


def _fire(mechanism: Mechanism, block_of: Callable[[int, int], Block], blocks: Iterator[int]) -> float:
    def fire() -> None:
        for number in (next(blocks) for _ in range(BLOCKS)):
            block = block_of(BUDGET, BASEFEE + number * STEP % BASEFEE)
            for decision in mechanism.select(DueTimers(()), block.context):
                mechanism.leave(decision.timer.timer_id)
                block.left -= decision.gas_limit

    return timed(fire, BLOCKS)


def _fire_all(mechanism: Mechanism, offered: SelectionContext[Any]) -> float:
    context = replace(offered, lane_cycles_left=repeat(FIT * GAS).__next__)
    decided = 0

    def fire_all() -> None:
        nonlocal decided
        for _ in mechanism.select(DueTimers(()), context):
            decided += 1

    seconds = timed(fire_all)
    if decided != FIT:
        raise RuntimeError(f"{decided} of {FIT} timers were selected")
    return seconds
