"""The timer lane's end of block, around the deliveries: what it opens with, and what it leaves for the next block.

And the fees that a timer offers when it is scheduled: in the lane, and before the lane is active.
Spec: CIP-1v3 §3, CIP-1v3 §5, CIP-1v3 §6, CIP-1v3 §7, CIP-1v3 §13.2.
"""

from collections import Counter
from functools import partial
from typing import Final

import msgspec

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.agents import BidCollector, BidTerms
from trailboss.execution.checks import invalid
from trailboss.execution.lane.fairness import count_fires, counted_for, leave_window, move_median
from trailboss.execution.session import BlockSession, Offered, OpenMarket
from trailboss.execution.timers import WITHDRAWN, load_timer
from trailboss.governance.markets import LANE_KEY, MarketTerms
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Rest
from trailboss.mechanisms.context import Bid, LaneMarket
from trailboss.mechanisms.fee_lane.weight import lower_median
from trailboss.model.configs import LaneState, amount_octets, amount_of, encode_record
from trailboss.model.decisions import FeeSource
from trailboss.model.events import LANE_ACTIVATED, EventRecord
from trailboss.model.timers import ASK_AGENT, NO_FEES, Timer, TimerRequest, freeze_fees
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import Height, Price

TIP: Final = "max_priority_fee"  # What an agent's answer calls the tip. Spec: CIP-1v3 §7.1.


def open_lane(session: BlockSession) -> OpenMarket:
    """Open the lane's market: blocks leave the window, the median is read. Spec: CIP-1v3 §3 steps 5, 6 and 10."""
    rules, lane = session.context.rules, session.context.rules.params.lane
    terms = rules.market
    if terms.is_new:
        facts = {"height": session.context.height, "basefee": terms.basefee}
        emitter = system_address(rules.params.governance.basefee_actor)
        session.events.append(EventRecord(LANE_ACTIVATED, emitter, encode_canonical(facts)))
    leave_window(session)
    # An agent that fails is not called for its timer again. Spec: CIP-1v3 §7.2. Decision: D-17.
    bid_terms = BidTerms(
        cycles_max=lane.gba_cycles_max,
        cycles_per_block=lane.gba_cycles_per_block,
        facts={"basefee_lane_timer": terms.basefee, "previous_block_p50_priority_tip_per_cycle": terms.previous_tip},
        tip=TIP,
        default_fees=(Price(2 * terms.basefee), terms.previous_tip),
        answered=_answered,
    )
    collector = BidCollector(session, bid_terms)
    market = LaneMarket(
        basefee=terms.basefee,
        previous_tip=terms.previous_tip,
        max_cycles_per_fire=terms.max_cycles_per_fire,
        clamps_before=Height(lane.activation_height if lane.clamps_gas_limit else 0),
        median_fires=move_median(session),
        weight_min=lane.weight_min,
        weight_max=lane.weight_max,
        weight_age_blocks=lane.weight_age_blocks,
        counted_for=partial(counted_for, session) if lane.weight_per_deployer else None,
        fires_of=lambda account: session.ledger.account(account).recent_fires,
        ask=collector.collect,
        timer_of=partial(load_timer, session),
    )
    return OpenMarket(market, partial(close_lane, session), collector.collected)


def _answered(timer: Timer, bid: Bid) -> Timer:
    return timer if bid.source is FeeSource.AGENT else msgspec.structs.replace(timer, fees=NO_FEES)


def close_lane(session: BlockSession, _: Rest) -> None:
    """Count the block's fires and write what the next block finds: lane basefee, median tip, lane burn.

    A fire that used a frame at least counts for its actor, and as a vote for the median tip, 0 without a vote.
    Spec: CIP-1v3 §5, CIP-1v3 §7.1, CIP-1v3 §8. Decision: D-15, D-29, D-106.
    """
    rules = session.context.rules
    fires = [fire for fire in session.fired if fire.cycles_used >= rules.params.costs.frame_base]
    count_fires(session, Counter(counted_for(session, fire.actor) for fire in fires))
    before = rules.market.kept(LaneState)
    state = LaneState(
        basefee=amount_octets(rules.market.next_basefee(session.timer_cycles_used)),
        previous_tip=amount_octets(lower_median(sorted(Counter(fire.tip for fire in fires).items()))),
        burned=amount_octets(amount_of(before.burned) + sum(fired.burned for fired in session.fired)),
    )
    session.overlay.write(LANE_KEY, encode_record(state))


def check_request(rules: Rules, request: TimerRequest) -> None:
    """Refuse the withdrawn argument, which is ignored before the activation. Spec: CIP-1v3 §13.2."""
    if request.has_bid:
        what = f"{WITHDRAWN} is given, which is withdrawn since height {rules.params.lane.activation_height}"
        raise Rejection(RejectionReason.TIMER_ARGUMENT_DEPRECATED, what, argument=WITHDRAWN)


def offer(rules: Rules, request: TimerRequest, has_agent: bool) -> Offered:
    """Return what a timer offers in the lane; refuse a fee beside its own agent, or a cap below the basefee.

    Decision: D-16, D-86, D-106
    """
    if request.gas_bidding_agent is not None:
        return _own_agent(request)
    if _stated(request) is None and (has_agent or rules.params.lane.caps_at_fire):
        return ASK_AGENT if has_agent else NO_FEES, None
    return _freeze(rules.market, request.max_fee_per_cycle, request.max_priority_fee_per_cycle)


def offer_without_lane(rules: Rules, request: TimerRequest, has_agent: bool) -> Offered:
    """Return what a timer offers while no lane is active: its agent, if it has one. Refuse fees. Decision: D-86."""
    if request.gas_bidding_agent is not None:
        return _own_agent(request)
    stated = _stated(request)
    if stated is None:
        return ASK_AGENT if has_agent else NO_FEES, None
    name, value = stated
    begins = rules.params.lane.activation_height
    when = f"it is from height {begins} on" if begins else "no height is set from which it will be"
    what = f"{name} is {value}, but the timer lane is not active: {when}"
    raise invalid(what, field=name, value=str(value), activation_height=begins)


def _own_agent(request: TimerRequest) -> Offered:
    """Return the offer of a timer with an agent of its own, which sets all of its fees."""
    agent, stated = request.gas_bidding_agent or b"", _stated(request)
    if stated is None:
        return ASK_AGENT + agent, None
    name, value = stated
    shown = str(Address(agent))
    raise invalid(
        f"{name} is {value} and gas_bidding_agent is {shown}: a timer has fees of its own, or an agent that prices it",
        field=name,
        value=str(value),
        gas_bidding_agent=shown,
    )


def _freeze(terms: MarketTerms, cap: int | None, priority: int | None) -> Offered:
    """Return the fees as they are kept: a default priority is clamped silently, a stated one with an event."""
    basefee = terms.basefee
    max_fee = 2 * basefee if cap is None else cap
    if max_fee < basefee:
        raise Rejection(
            RejectionReason.TIMER_BELOW_BASEFEE,
            f"max_fee_per_cycle is {max_fee}, below the lane basefee of {basefee}",
            max_fee_per_cycle=str(max_fee),
            basefee_lane_timer=str(basefee),
        )
    stated = terms.previous_tip if priority is None else priority
    kept = min(stated, max_fee - basefee)
    return freeze_fees(max_fee, kept), None if priority is None or kept == stated else (stated, kept)


def _stated(request: TimerRequest) -> tuple[str, int] | None:
    """Return the name and value of the first fee that a request states, or None."""
    if request.max_fee_per_cycle is not None:
        return "max_fee_per_cycle", request.max_fee_per_cycle
    if request.max_priority_fee_per_cycle is not None:
        return "max_priority_fee_per_cycle", request.max_priority_fee_per_cycle
    return None
