"""Rehearsing the activation of the timer lane: a copy of the chain lives through it, and another one goes on as FIFO.

Spec: CIP-1v3 §13.2
Decision: D-13, D-34
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, TypeGuard

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.apply import check_activation
from trailboss.governance.parameters import ACTIVATION
from trailboss.governance.rules import Rules
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.rehearsal import run as runs
from trailboss.rehearsal.run import CANCELLED, EXPIRED, FIRED, STRANDED, UNFUNDED, WAITING, Fate, OnBlock, Run
from trailboss.views.mechanism.lane_records import lane_cap, lane_gas_limit
from trailboss.views.mechanism.registry import views_of
from trailboss.views.shared_fields import extended
from trailboss.views.text import counted, span_words

REHEARSED_BLOCKS: Final = 100  # blocks after the activation, by default
REHEARSED_MAX: Final = 100_000  # most blocks after the activation; a day of them
DELAYS: Final = ((1, 1), (2, 10), (11, 100), (101, U64_MAX))  # delays, in blocks, that are counted together
PAID: Final = ("paid", "cycle_burned", "cell_burned", "lane_burned")
CLAMP: Final = "system:cip1:activation_clamps_gas_limit"
GRAVITY: Final = (STRANDED, UNFUNDED, EXPIRED, WAITING, CANCELLED, FIRED)
"""Outcomes, the ones that people should see first at the front."""


class RehearsedTimer(Struct, frozen=True, kw_only=True):
    """One timer in both runs."""

    timer_id: Hash32  # its id
    actor: Address  # its owner
    height: int  # at which it is due
    gas_limit: int  # cycles the fire may use, as scheduled
    fee_payer: Address  # who pays
    expires_at: int  # last height at which it may fire
    scheduled_at: int | None  # height of the rehearsal's block that scheduled it; None if the chain holds it already
    lane: Fate  # what becomes of it with the activation
    fifo: Fate | None  # what becomes of it without; None if that run never has this timer


class RunTotals(Struct, frozen=True, kw_only=True):
    """One run, summed up. Money is base units."""

    timers: int  # timers due by its last block, those counted that its own fires have scheduled
    on_time: int  # fired in the block of their height
    late: int  # fired later
    reverted: int  # of those that fired, how many reverted
    stranded: int  # still waiting, with a gas limit above the cap
    waiting: int  # still waiting otherwise
    unfunded: int  # ended because their payer could not pay
    expired: int  # ended because their last height had passed
    cancelled: int  # ended by a cancellation
    waited_for: Mapping[str, int]  # how many waited in at least one block, by reason
    delays: Mapping[str, int]  # how many fired after how many blocks, as ``0``, ``1``, ``2-10``, ``11-100``, ``101+``
    paid: int  # by all fires; the next four together
    cycle_burned: int  # by the cycle basefee
    cell_burned: int  # by the cell basefee
    lane_burned: int  # by the lane basefee
    tips: int  # to the proposer


class ActivationRehearsal(Struct, frozen=True, kw_only=True):
    """What an activation of the timer lane would do to the timers of a chain, if no transactions came meanwhile."""

    from_height: int  # height of the chain; the rehearsal goes on from there
    activation_height: int  # first block under the lane's rules
    last_height: int  # last block of the rehearsal
    max_cycles_per_fire: int  # the lane's cap of one fire
    clamps_gas_limit: bool  # whether governance holds timers from before the activation to it
    lane: RunTotals  # the run with the activation, summed up
    fifo: RunTotals  # the run without
    # Lane basefee, base units per cycle, as (height, basefee) of each block in which it was another one.
    basefees: tuple[Run, ...]
    stranded_later: int  # timers due after the rehearsal whose gas limit is above the cap
    advice: tuple[str, ...]  # what to think about before the vote, a sentence each
    # Each timer due by the last block, in the run with the activation: those first that fare otherwise than
    # under FIFO, and of them the worst.
    timers: tuple[RehearsedTimer, ...]


def rehearse_activation(
    chain: ChainReader, height: int, blocks: int = REHEARSED_BLOCKS, on_block: OnBlock | None = None
) -> ActivationRehearsal:
    """Play the activation of the timer lane through on a copy of a chain, and return what becomes of each timer.

    Two copies go on without transactions: one with the activation, one as FIFO. What the waiting timers do by
    themselves is exact. Complexity: what the blocks of both copies cost.

    Raises:
        Rejection: ``INVALID_PARAMETER`` for a height that governance would refuse; ``INVALID_DATA`` for a number of
            blocks below 0 or above ``REHEARSED_MAX``, or for more than there are heights.
    """
    _check(chain, height, blocks)
    last = height + blocks
    known = {timer.timer_id: timer for timer in chain.timers(0, last)}
    lane = _run(chain, height, last, on_block)
    fifo = _run(chain, None, last, on_block)
    with closing(lane.fork), closing(fifo.fork):
        in_lane, in_fifo = _fates(lane, known, last), _fates(fifo, known, last)
        timers = [_rehearsed(lane, timer, fate, in_fifo.get(timer.timer_id)) for timer, fate in in_lane.values()]
        timers.sort(key=_gravity)
        rules = lane.fork.rules()
        later = sum(_is_over_cap(rules, timer) for timer in lane.fork.timers(last + 1))
        totals = _totals(fate for _, fate in in_lane.values())
        return ActivationRehearsal(
            from_height=chain.height,
            activation_height=height,
            last_height=last,
            max_cycles_per_fire=lane_cap(rules),
            clamps_gas_limit=bool(rules.params.lane.clamps_gas_limit),
            lane=totals,
            fifo=_totals(fate for _, fate in in_fifo.values()),
            basefees=tuple(_changes(height, lane.basefees)),
            stranded_later=later,
            advice=tuple(_advice(timers, rules, totals, later)),
            timers=tuple(timers),
        )


def _check(chain: ChainReader, height: int, blocks: int) -> None:
    rules = chain.rules()
    is_voted = views_of(chain.genesis.mechanism).gives_way and height == rules.params.lane.activation_height
    if not (is_voted and height >= rules.height):
        check_activation(rules, height)
    if height >= U64_MAX:
        what = f"cannot rehearse an activation at height {height}: no block comes after it; it must be below {U64_MAX}"
        raise Rejection(RejectionReason.INVALID_DATA, what, height=height)
    most = min(REHEARSED_MAX, U64_MAX - 1 - height)
    if not 0 <= blocks <= most:
        what = f"cannot rehearse {blocks} blocks after height {height}: it can be 0..={most}"
        raise Rejection(RejectionReason.INVALID_DATA, what, blocks=blocks)


def _run(chain: ChainReader, activation_height: int | None, last: int, on_block: OnBlock | None) -> runs.RehearsalRun:
    fork = runs.fork_of(chain, runs.governed_slots(chain, {ACTIVATION: activation_height or 0}))
    run = runs.RehearsalRun(fork, activation_height)
    run.advance(last, on_block)
    return run


def _fates(run: runs.RehearsalRun, known: Mapping[bytes, Timer], last: int) -> dict[bytes, tuple[Timer, Fate]]:
    scheduled = {identity: timer for identity, (timer, _) in run.scheduled.items() if timer.height <= last}
    return {identity: (timer, run.fate(timer)) for identity, timer in {**known, **scheduled}.items()}


def _rehearsed(run: runs.RehearsalRun, timer: Timer, fate: Fate, without: tuple[Timer, Fate] | None) -> RehearsedTimer:
    scheduled = run.scheduled.get(timer.timer_id)
    return extended(
        RehearsedTimer,
        timer,
        timer_id=Hash32(timer.timer_id),
        actor=Address(timer.actor),
        fee_payer=Address(timer.fee_payer),
        scheduled_at=None if scheduled is None else scheduled[1],
        lane=fate,
        fifo=None if without is None else without[1],
    )


def _gravity(timer: RehearsedTimer) -> tuple[bool, int, bool, int, int]:
    fate, without = timer.lane, timer.fifo
    is_alike = without is not None and (
        (fate.outcome, fate.height, fate.error) == (without.outcome, without.height, without.error)
    )
    return is_alike, GRAVITY.index(fate.outcome), not fate.error, -fate.delay, timer.height


def _is_over_cap(rules: Rules, timer: Timer) -> bool:
    return lane_gas_limit(rules, timer.gas_limit, timer.schedule_block) > lane_cap(rules)


def _changes(first: int, basefees: Sequence[int]) -> Iterator[Run]:
    before = None
    for height, basefee in enumerate(basefees, first):
        if basefee != before:
            yield height, basefee
        before = basefee


def _totals(fates: Iterable[Fate]) -> RunTotals:
    outcomes, waited_for, reverted = Counter[str](), Counter[str](), 0
    delays = Counter[str]({"0": 0} | {_delay_label(low): 0 for low, _ in DELAYS})
    paid = Counter[str]()
    for fate in fates:
        outcomes[fate.outcome] += 1
        waited_for.update(dict.fromkeys(fate.waits, 1))
        reverted += bool(fate.error)
        if fate.payment is not None:
            delays[_delay_label(fate.delay)] += 1
            for part in (*PAID, "tip"):
                paid[part] += getattr(fate.payment, part)
    return RunTotals(
        timers=outcomes.total(),
        on_time=delays["0"],
        late=outcomes[FIRED] - delays["0"],
        reverted=reverted,
        **{outcome: outcomes[outcome] for outcome in GRAVITY if outcome != FIRED},
        waited_for=dict(waited_for),
        delays=dict(delays),
        tips=paid["tip"],
        **{part: paid[part] for part in PAID},
    )


def _delay_label(delay: int) -> str:
    for low, high in DELAYS:
        if low <= delay <= high:
            return str(low) if low == high else f"{low}+" if high == U64_MAX else f"{low}-{high}"
    return "0"


def _advice(timers: Sequence[RehearsedTimer], rules: Rules, lane: RunTotals, later: int) -> Iterator[str]:
    """Yield what to think about before the vote. Decision: D-13."""
    stranded = [timer for timer in timers if DeferralReason.OVER_CAP in timer.lane.waits]
    if stranded or later:
        yield _stranded_words(stranded, rules, later)
    lost = [timer for timer in timers if timer.lane.missing and _fires(timer.fifo)]
    if lost:
        missing = max(timer.lane.missing for timer in lost)
        yield (
            f"{_count(lost)} would end unfunded, and {'fires' if len(lost) == 1 else 'fire'} under FIFO: a fire in the "
            f"lane reserves more. Fund the payers; {format_cby(missing)} CBY is the most that one lacks"
        )
    broken = [timer for timer in timers if timer.lane.error and _fires(timer.fifo) and not timer.fifo.error]
    if broken:
        yield _reverting_words(broken, lane_cap(rules))
    priced_out = lane.waited_for.get(DeferralReason.PRICED_OUT, 0)
    if priced_out:
        yield (
            f"{counted(priced_out, 'timer')} would be priced out for a while: what "
            f"{'it offers' if priced_out == 1 else 'they offer'} is below the lane basefee"
        )
    delayed = [
        timer for timer in timers if _fires(timer.lane) and _fires(timer.fifo) and timer.lane.delay > timer.fifo.delay
    ]
    if delayed:
        most = max(timer.lane.delay - timer.fifo.delay for timer in delayed if timer.fifo is not None)
        yield f"{_count(delayed)} would fire later than under FIFO, by up to {counted(most, 'block')}"
    waiting = [timer for timer in timers if timer.lane.outcome == WAITING and _fires(timer.fifo)]
    if waiting:
        yield (
            f"{_count(waiting)} would still wait at the end, and {'fires' if len(waiting) == 1 else 'fire'} under FIFO "
            "by then; rehearse more blocks to see for how long"
        )


def _stranded_words(stranded: Sequence[RehearsedTimer], rules: Rules, later: int) -> str:
    cap = lane_cap(rules)
    if stranded:
        verb, them, end = ("carries", "it", "it expires") if len(stranded) == 1 else ("carry", "them", "they expire")
        gas_limits, ends = span_words(timer.gas_limit for timer in stranded), sorted({t.expires_at for t in stranded})
        whose = (
            f"{_count(stranded)} {verb} {gas_limits} cycles, above the lane's cap of {cap:,}: it sets {them} aside "
            f"until {end}, after block {ends[0]}{f' to {ends[-1]}' if len(ends) > 1 else ''}"
        )
    else:
        whose = f"No timer of the rehearsal is above the lane's cap of {cap:,} cycles"
    more = f". {counted(later, 'timer')} due later {'is' if later == 1 else 'are'} above it too" if later else ""
    return f"{whose}{more}. Governance can set {CLAMP} = 1; their actors can cancel and schedule them again"


def _reverting_words(broken: Sequence[RehearsedTimer], cap: int) -> str:
    slugs = sorted({timer.lane.error for timer in broken})
    verb = "does" if len(broken) == 1 else "do"
    words = f"{_count(broken)} would fire and revert ({', '.join(slugs)}), and {verb} not under FIFO"
    if RejectionReason.OUT_OF_CYCLES.slug in slugs:
        words += f": a fire has at most {cap:,} cycles there, its agent's question counted"
    return words


def _fires(fate: Fate | None) -> TypeGuard[Fate]:
    return fate is not None and fate.outcome == FIRED


def _count(timers: Sequence[RehearsedTimer]) -> str:
    return counted(len(timers), "timer")
