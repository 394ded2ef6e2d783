"""The timer lane's end of block, around the deliveries: what it opens with, and what it leaves for the next block.

Spec: CIP-1v3 §3, CIP-1v3 §5, CIP-1v3 §13.2
"""

from functools import partial

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.agents import AgentDesk
from trailboss.execution.fairness import count_fires, leave_window
from trailboss.execution.session import BlockSession
from trailboss.execution.timers import load_timer
from trailboss.governance.rules import LANE_KEY
from trailboss.mechanisms.base import LaneMarket
from trailboss.mechanisms.lane.weight import lower_median
from trailboss.model.configs import LaneState, amount_octets, amount_of, encode_record
from trailboss.model.events import LANE_ACTIVATED, EventRecord
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import Height


def open_market(session: BlockSession) -> tuple[LaneMarket, AgentDesk] | None:
    """Open the lane's market: blocks leave the window, the median is read. None while the lane is not active.

    Spec: CIP-1v3 §3 steps 5, 6 and 10
    """
    rules = session.context.rules
    terms, lane = rules.lane, rules.params.lane
    if terms is None:
        return None
    if terms.is_new:
        facts = {"height": session.context.height, "basefee": terms.basefee}
        emitter = system_address(rules.params.governance.basefee_actor)
        session.events.append(EventRecord(LANE_ACTIVATED, emitter, encode_canonical(facts)))
    totals = leave_window(session)
    desk = AgentDesk(session, terms)
    market = LaneMarket(
        basefee=terms.basefee,
        previous_tip=terms.previous_tip,
        max_cycles_per_fire=terms.max_cycles_per_fire,
        clamps_before=Height(lane.activation_height if lane.clamps_gas_limit else 0),
        median_fires=lower_median(totals.counts),
        weight_min=lane.weight_min,
        weight_max=lane.weight_max,
        fires_of=lambda actor: session.ledger.account(actor).recent_fires,
        ask=desk.ask,
        timer_of=partial(load_timer, session),
    )
    return market, desk


def close_market(session: BlockSession) -> None:
    """Count the block's fires and write what the next block finds: lane basefee, median tip, lane burn.

    Spec: CIP-1v3 §5, CIP-1v3 §7.1, CIP-1v3 §8
    Decision: D-15, D-29
    """
    rules = session.context.rules
    if rules.lane is None:
        return
    count_fires(session)
    before = rules.lane.state
    state = LaneState(
        basefee=amount_octets(rules.next_lane_basefee(session.timer_cycles_used)),
        previous_tip=amount_octets(median_tip(session.tips)),
        burned=amount_octets(amount_of(before.burned) + session.lane_burned),
        gaps=session.gaps,
    )
    session.overlay.write(LANE_KEY, encode_record(state))


def median_tip(tips: list[int]) -> int:
    """Return the lower median of the tips per cycle, one a fire; 0 of none.

    Spec: CIP-1v3 §7.1
    Decision: D-29

    >>> median_tip([]), median_tip([5]), median_tip([9, 1]), median_tip([3, 1, 2])
    (0, 5, 1, 2)
    """
    return sorted(tips)[(len(tips) - 1) // 2] if tips else 0
