"""Gas bidding agents: contracts that price timers, called read-only, in the timer lane and in the auction.

An agent that fails, or returns no bid, delays no other timer: its timer takes the market's default fees.
Spec: CIP-1v3 §7, CIP-1v1 §4.2. Decision: D-16, D-17, D-57.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.host import run_handler
from trailboss.execution.session import BlockSession, CollectedBids, Envelope, Scope
from trailboss.mechanisms.context import Bid
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Origin
from trailboss.model.decisions import AgentBid, AgentFailure, FeeSource
from trailboss.model.events import AGENT_FALLBACK
from trailboss.model.timers import Timer
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import Cells, Cycles, Price
from trailboss.vm.failures import MESSAGE_CHARACTERS_MAX, exhaustion

HANDLER: Final = "get_gas_bid"  # What an agent defines. Decision: D-17.
BUDGET_SPENT: Final = "budget"
"""Reason of a fallback: the questions of the block's older timers have used what there is for terms."""

SHOWN: Final = 64  # Digits of an answer that is no bid, as far as they are shown.


class BidTerms(Struct, frozen=True, kw_only=True):
    """How agents bid in one market."""

    cycles_max: Cycles  # cycles of one call
    cycles_per_block: Cycles  # cycles of all calls of one block
    facts: Mapping[str, int]  # what agents receive only in this market
    tip: str  # the bid's name for the tip: its keys are this with ``_per_cycle`` and ``_per_cell``
    default_fees: tuple[Price, Price]  # cap and tip per cycle, base units, of a timer whose agent returns no bid
    # A timer and its bid to the record that the call leaves; the same record if it leaves no trace.
    answered: Callable[[Timer, Bid], Timer]


class BidCollector:
    """Collects the bids of one block's timers from their agents, within one budget."""

    __slots__ = ("_session", "_terms", "collected")

    def __init__(self, session: BlockSession, terms: BidTerms) -> None:
        self._session = session
        self._terms = terms
        self.collected = CollectedBids()

    def collect(self, timer: Timer) -> Bid | None:
        """Return what a timer bids in this block, by its agent. The calling mechanism reads the record again.

        Spec: CIP-1v3 §7.2, CIP-1v1 §3. Decision: D-17, D-57

        Returns:
            The default bid, as a fallback, if the agent is gone or fails; None if the budget has no room for a call.
        """
        # CHECK
        session, terms = self._session, self._terms
        if terms.cycles_per_block - self.collected.cycles_used < terms.cycles_max:
            return None
        agent = agent_of(session, timer)
        # CHARGE
        meter = Meter(terms.cycles_max, session.context.rules.timer.max_cells_per_fire)
        # RUN
        answer = "no_agent" if not agent else self._run_agent(timer, agent, meter)
        # SETTLE
        base = session.context.rules.params.costs.frame_base
        used = max(base, meter.charged()[0])
        self.collected.cycles_used += used
        if isinstance(answer, Bid):
            bid = structs.replace(answer, cycles_used=used)
            self.collected.bids.append(AgentBid(timer.timer_id, bid.max_fee, bid.max_priority_fee, bid.cell_fees))
        else:
            bid = Bid(*terms.default_fees, FeeSource.FALLBACK, used)
            emit_fallback(session, timer, answer)
        asked = terms.answered(timer, bid)
        if asked is not timer:
            session.write_timer(asked)
        return bid

    def _run_agent(self, timer: Timer, agent: bytes, meter: Meter) -> Bid | str:
        """Run the agent read-only and return its bid, or why there is none."""
        session = self._session
        envelope = Envelope(
            origin=Origin.TIMER,
            sender=timer.actor,
            signer=timer.actor,
            payer=timer.fee_payer,
            cycles_limit=Cycles(meter.cycles_limit),
            cells_limit=Cells(meter.cells_limit),
            timer_id=timer.timer_id,
            actor=agent,
        )
        scope = Scope(session, envelope)
        context = encode_canonical(self._context(timer))
        outcome = run_handler(scope, agent, HANDLER, context, sender=timer.actor, meter=meter, read_only=True)
        session.printed += session.kept(scope.printing)
        if meter.is_exhausted:
            exhausted = exhaustion(meter)
            return self._failed(timer, exhausted.slug, exhausted.what)
        if outcome.error is not None:
            return self._failed(timer, "failed", f"E{outcome.error.code} {outcome.error.slug}: {outcome.error.what}")
        bid = read_bid(outcome.return_value, self._terms.tip)
        if bid is None:
            return self._failed(timer, "malformed", f"its answer is no bid: 0x{outcome.return_value.hex():.{SHOWN}}")
        return bid

    def _failed(self, timer: Timer, reason: str, what: str) -> str:
        # An exception's class may have a name as long as a source, and the words are in no cell that is paid for.
        self.collected.failures.append(AgentFailure(timer.timer_id, what[:MESSAGE_CHARACTERS_MAX]))
        return reason

    def _context(self, timer: Timer) -> dict[str, int]:
        """Return what an agent receives. Spec: CIP-1v3 §7.2, CIP-1v1 §4.2."""
        session = self._session
        cycle_basefee, cell_basefee = session.context.rules.timer_basefees()
        return {
            "trigger_block_height": timer.height,
            "current_block_height": session.context.height,
            "basefee_cycle": cycle_basefee,
            "basefee_cell": cell_basefee,
            "last_block_cycle_usage": session.context.parent_cycles_used,
            "owner_actor_balance": session.ledger.balance(timer.actor),
            **self._terms.facts,
        }


def read_bid(answer: bytes, tip: str) -> Bid | None:
    """Return the bid that an agent has returned, with the market's name for the tip; None if it is no bid.

    It states a cap and a tip per cycle, and may state the same per cell, or a cap per cell alone.
    Spec: CIP-1v3 §7.1, CIP-1v1 §4.2. Decision: D-17, D-57, D-86.
    """
    try:
        fees: Any = decode_canonical(answer)
    except Rejection:
        return None
    required = {"max_fee_per_cycle", f"{tip}_per_cycle"}
    allowed = required | {"max_fee_per_cell", f"{tip}_per_cell"}
    if not isinstance(fees, dict) or not required <= fees.keys() <= allowed:
        return None
    if any(type(fee) is not int or not 0 <= fee <= PRICE_MAX for fee in fees.values()):
        return None
    cap, offered = Price(fees["max_fee_per_cycle"]), Price(fees[f"{tip}_per_cycle"])
    cell_cap, cell_tip = Price(fees.get("max_fee_per_cell", 0)), Price(fees.get(f"{tip}_per_cell", 0))
    if offered > cap or cell_tip > cell_cap:
        return None
    cell_fees = (cell_cap, cell_tip) if "max_fee_per_cell" in fees else None
    return Bid(cap, offered, FeeSource.AGENT, cell_fees=cell_fees)


def agent_of(session: BlockSession, timer: Timer) -> bytes:
    """Return a timer's agent, 20 bytes: its own, else its actor's; empty without one. Decision: D-86."""
    return timer.own_agent or session.ledger.account(timer.actor).agent


def emit_fallback(session: BlockSession, timer: Timer, reason: str) -> None:
    """Emit that a timer with an agent takes the default fees."""
    session.emit(AGENT_FALLBACK, timer, {"agent": agent_of(session, timer), "reason": reason})
