"""Gas bidding agents: contracts that an actor has price its timers, asked read-only at the end of a block.

An agent that fails, or answers what is no bid, changes nothing and delays nobody: the timer takes the default agent's
fees and is not asked about again, so that no failing agent holds the head of the line.

Spec: CIP-1v3 §7
Decision: D-16, D-17
"""

from typing import Any, Final

import msgspec

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.frames import run_handler
from trailboss.execution.session import BlockSession, Envelope, Scope
from trailboss.execution.timers import write_timer
from trailboss.fees.settlement import Prices
from trailboss.governance.rules import LaneTerms
from trailboss.mechanisms.base import Bid
from trailboss.model.blocks import Origin
from trailboss.model.decisions import AgentFailure, FeeSource
from trailboss.model.events import AGENT_FALLBACK, EventRecord
from trailboss.model.timers import NO_FEES, Timer
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Cells, Cycles, Price
from trailboss.vm.engine import Outcome
from trailboss.vm.failures import MESSAGE_CHARACTERS_MAX, exhaustion
from trailboss.vm.meter import Meter, OutOfGas

HANDLER: Final = "get_gas_bid"
"""What an agent defines. Decision: D-17."""
BUDGET_SPENT: Final = "budget"
"""Reason of a fallback: the questions of the block's older timers have used what there is for questions."""

SHOWN: Final = 64
"""Digits of an answer that is no bid, as far as they are shown."""

_REQUIRED: Final = frozenset({"max_fee_per_cycle", "max_priority_fee_per_cycle"})
_OPTIONAL: Final = frozenset({"max_fee_per_cell", "max_priority_fee_per_cell"})


class AgentDesk:
    """Asks the agents of one block's timers, within one budget.

    Attributes:
        cycles_used: By all questions so far.
        failures: Those that gave no bid so far.
    """

    __slots__ = ("_session", "_terms", "cycles_used", "failures")

    def __init__(self, session: BlockSession, terms: LaneTerms) -> None:
        self._session = session
        self._terms = terms
        self.cycles_used = 0
        self.failures: list[AgentFailure] = []

    def ask(self, timer: Timer) -> Bid | None:
        """Ask the agent of a timer's actor what the timer offers in this block.

        Spec: CIP-1v3 §7.2
        Decision: D-17

        Returns:
            The agent's bid; the default agent's, as a fallback, if there is no agent any more or it fails; None if the
            budget has no room for another question.
        """
        # CHECK
        session, lane = self._session, self._session.context.rules.params.lane
        if lane.gba_cycles_per_block - self.cycles_used < lane.gba_cycles_max:
            return None
        agent = session.ledger.account(timer.actor).agent
        # CHARGE
        meter = Meter(lane.gba_cycles_max, session.context.rules.timer.max_cells_per_fire)
        # RUN
        answer = "no_agent" if not agent else self._question(timer, agent, meter)
        # SETTLE
        base = session.context.rules.params.costs.frame_base
        used = Cycles(max(base, min(meter.cycles_used, meter.cycles_limit)))
        self.cycles_used += used
        if isinstance(answer, tuple):
            return Bid(Price(answer[0]), Price(answer[1]), FeeSource.AGENT, used)
        write_timer(session, msgspec.structs.replace(timer, fees=NO_FEES))
        tell_fallback(session, timer, agent, answer)
        return Bid(Price(2 * self._terms.basefee), self._terms.previous_tip, FeeSource.FALLBACK, used)

    def _question(self, timer: Timer, agent: bytes, meter: Meter) -> tuple[int, int] | str:
        """Run the agent, take back whatever it has done, and return its two fees, or why there are none."""
        session = self._session
        scope = Scope(session, _envelope(timer, agent, meter))
        mark = scope.mark()
        context = encode_canonical(self._context(timer))
        try:
            outcome = run_handler(scope, agent, HANDLER, context, sender=timer.actor, meter=meter, read_only=True)
        except OutOfGas:
            outcome = Outcome(b"", exhaustion(meter))
        scope.revert(mark)
        exhausted = exhaustion(meter)
        if exhausted is not None:
            return self._failed(timer, exhausted.slug, exhausted.what)
        if outcome.error is not None:
            return self._failed(timer, "failed", f"E{outcome.error.code} {outcome.error.slug}: {outcome.error.what}")
        cell_basefee = session.context.rules.timer_basefees()[1]
        bid = read_bid(outcome.return_value, cell_basefee)
        if bid is None:
            return self._failed(timer, "malformed", f"its answer is no bid: 0x{outcome.return_value.hex():.{SHOWN}}")
        return bid

    def _failed(self, timer: Timer, reason: str, what: str) -> str:
        # An exception's class may have a name as long as a source, and the words are in no cell that is paid for.
        self.failures.append(AgentFailure(timer.timer_id, what[:MESSAGE_CHARACTERS_MAX]))
        return reason

    def _context(self, timer: Timer) -> dict[str, int]:
        """Return what an agent is told. Spec: CIP-1v3 §7.2."""
        session = self._session
        cycle_basefee, cell_basefee = session.context.rules.timer_basefees()
        return {
            "trigger_block_height": timer.height,
            "current_block_height": session.context.height,
            "basefee_cycle": cycle_basefee,
            "basefee_cell": cell_basefee,
            "basefee_lane_timer": self._terms.basefee,
            "last_block_cycle_usage": session.context.parent_cycles_used,
            "previous_block_p50_priority_tip_per_cycle": self._terms.previous_tip,
            "owner_actor_balance": session.ledger.balance(timer.actor),
        }


def read_bid(answer: bytes, cell_basefee: int) -> tuple[int, int] | None:
    """Return max_fee_per_cycle and max_priority_fee_per_cycle of an agent's answer; None if it is no bid.

    Timers are bound by cycles: their cells pay the basefee and no tip, and an answer cannot say otherwise.

    Spec: CIP-1v3 §7.1
    Decision: D-17
    """
    try:
        fees: Any = decode_canonical(answer)
    except Rejection:
        return None
    if not isinstance(fees, dict) or not _REQUIRED <= fees.keys() <= _REQUIRED | _OPTIONAL:
        return None
    if any(type(fee) is not int or not 0 <= fee <= PRICE_MAX for fee in fees.values()):
        return None
    if fees.get("max_fee_per_cell", cell_basefee) < cell_basefee or fees.get("max_priority_fee_per_cell", 0):
        return None
    max_fee, max_priority_fee = fees["max_fee_per_cycle"], fees["max_priority_fee_per_cycle"]
    return None if max_priority_fee > max_fee else (max_fee, max_priority_fee)


def tell_fallback(session: BlockSession, timer: Timer, agent: bytes, reason: str) -> None:
    """Say that a timer takes the default agent's fees although its actor has one of its own."""
    facts = {"timer_id": timer.timer_id, "agent": agent, "reason": reason}
    session.events.append(EventRecord(AGENT_FALLBACK, timer.actor, encode_canonical(facts), timer.timer_id))


def _envelope(timer: Timer, agent: bytes, meter: Meter) -> Envelope:
    return Envelope(
        origin=Origin.TIMER,
        origin_hash=ZERO_HASH,
        sender=timer.actor,
        signer=timer.actor,
        payer=timer.fee_payer,
        cycles_limit=Cycles(meter.cycles_limit),
        cells_limit=Cells(meter.cells_limit),
        prices=Prices(Price(0), Price(0)),
        timer_id=timer.timer_id,
        actor=agent,
    )
