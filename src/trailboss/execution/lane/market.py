"""The timer lane's end of block, around the deliveries: what it opens with, and what it leaves for the next block.

Spec: CIP-1v3 §3, CIP-1v3 §5, CIP-1v3 §13.2
"""

from collections import Counter
from functools import partial
from typing import Final

import msgspec

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.agents import BidCollector, BidTerms
from trailboss.execution.hooks import OpenMarket
from trailboss.execution.lane.fairness import count_fires, leave_window
from trailboss.execution.session import BlockSession
from trailboss.execution.timers import load_timer
from trailboss.governance.markets import LANE_KEY, MarketTerms
from trailboss.mechanisms.base import Rest
from trailboss.mechanisms.context import Bid, LaneMarket
from trailboss.mechanisms.fee_lane.weight import lower_median
from trailboss.model.configs import LaneState, amount_octets, amount_of, encode_record
from trailboss.model.decisions import FeeSource
from trailboss.model.events import LANE_ACTIVATED, EventRecord
from trailboss.model.timers import NO_FEES, Timer
from trailboss.params import LaneParams
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import Height, Price

TIP: Final = "max_priority_fee"
"""What an agent's answer calls the tip. Spec: CIP-1v3 §7.1."""


def open_lane(session: BlockSession) -> OpenMarket:
    """Open the lane's market: blocks leave the window, the median is read. Spec: CIP-1v3 §3 steps 5, 6 and 10."""
    rules, lane = session.context.rules, session.context.rules.params.lane
    terms = rules.market
    if terms.is_new:
        facts = {"height": session.context.height, "basefee": terms.basefee}
        emitter = system_address(rules.params.governance.basefee_actor)
        session.events.append(EventRecord(LANE_ACTIVATED, emitter, encode_canonical(facts)))
    totals = leave_window(session)
    collector = BidCollector(session, _bid_terms(lane, terms))
    market = LaneMarket(
        basefee=terms.basefee,
        previous_tip=terms.previous_tip,
        max_cycles_per_fire=terms.max_cycles_per_fire,
        clamps_before=Height(lane.activation_height if lane.clamps_gas_limit else 0),
        median_fires=lower_median(totals.counts),
        weight_min=lane.weight_min,
        weight_max=lane.weight_max,
        fires_of=lambda actor: session.ledger.account(actor).recent_fires,
        ask=collector.collect,
        timer_of=partial(load_timer, session),
    )
    return OpenMarket(market, partial(close_lane, session), collector.collected)


def _bid_terms(lane: LaneParams, terms: MarketTerms) -> BidTerms:
    """Return how agents bid in the lane; one that fails is not called for its timer again.

    Spec: CIP-1v3 §7.2. Decision: D-17
    """
    return BidTerms(
        cycles_max=lane.gba_cycles_max,
        cycles_per_block=lane.gba_cycles_per_block,
        facts={"basefee_lane_timer": terms.basefee, "previous_block_p50_priority_tip_per_cycle": terms.previous_tip},
        tip=TIP,
        default_fees=(Price(2 * terms.basefee), terms.previous_tip),
        answered=_answered,
    )


def _answered(timer: Timer, bid: Bid) -> Timer:
    return timer if bid.source is FeeSource.AGENT else msgspec.structs.replace(timer, fees=NO_FEES)


def close_lane(session: BlockSession, _: Rest) -> None:
    """Count the block's fires and write what the next block finds: lane basefee, median tip, lane burn.

    A fire that used a frame at least counts for its actor, and as a vote for the median tip.

    Spec: CIP-1v3 §5, CIP-1v3 §7.1, CIP-1v3 §8. Decision: D-15, D-29
    """
    rules = session.context.rules
    fires = [fire for fire in session.fired if fire.cycles_used >= rules.params.costs.frame_base]
    count_fires(session, Counter(fire.actor for fire in fires))
    before = rules.market.kept(LaneState)
    state = LaneState(
        basefee=amount_octets(rules.market.next_basefee(session.timer_cycles_used)),
        previous_tip=amount_octets(median_tip([fire.tip for fire in fires])),
        burned=amount_octets(amount_of(before.burned) + sum(fired.burned for fired in session.fired)),
    )
    session.overlay.write(LANE_KEY, encode_record(state))


def median_tip(tips: list[int]) -> int:
    """Return the lower median of the tips per cycle, one a fire; 0 of none.

    Spec: CIP-1v3 §7.1. Decision: D-29

    >>> median_tip([]), median_tip([5]), median_tip([9, 1]), median_tip([3, 1, 2])
    (0, 5, 1, 2)
    """
    return sorted(tips)[(len(tips) - 1) // 2] if tips else 0
