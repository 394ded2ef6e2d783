"""What people see under the timer lane of CIP-1 v3: max fee and tip, W(actor), the lane basefee."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.execution.lane.fairness import next_median, whole_fires
from trailboss.fees import Prices, offered_tip
from trailboss.governance.markets import is_active
from trailboss.governance.rules import Rules
from trailboss.mechanisms import fee_lane
from trailboss.mechanisms.fee_lane.weight import weight_of
from trailboss.model.actors import Account
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.timers import DeferralReason, Timer, asks_agent
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX, Cycles, Price, clamp, format_cby
from trailboss.views.explain import waits
from trailboss.views.mechanism import base
from trailboss.views.mechanism.lane_records import LaneStatus, lane_cap, lane_gas_limit
from trailboss.views.recent_blocks import Offer, Quoting, RecentBlock, refused
from trailboss.views.records import AGENT_FEES, DecisionRow, DecisionView, TimerView
from trailboss.views.text import counted, decimal_text

DECISION_COLUMNS: Final = (
    base.RANK,
    base.TIMER,
    base.ACTOR,
    base.TIP,
    base.Column("weight", "W", base.ValueKind.NUMBER),
    base.Column("effective_priority", "tip × W", base.ValueKind.NUMBER),
    base.MAX_FEE,
    base.Column("fees", "fees", extra=True),
    *base.LIMITS,
)
WEIGHT_COLUMNS: Final = (
    base.Column("actor", "actor", base.ValueKind.ADDRESS),
    base.Column("fires", "fires in the window", base.ValueKind.NUMBER),
    base.Column("weight", "W", base.ValueKind.NUMBER),
)
DECISION_FIELDS: Final = ("lane_basefee", "next_lane_basefee", "previous_tip", "median_fires")


def _decision_cells(row: DecisionRow) -> tuple[base.Value, ...]:
    priority = row.effective_priority
    return (
        row.rank,
        row.timer_id,
        row.actor,
        None if priority is None else row.tip,
        row.weight,
        None if priority is None else f"{Decimal(priority):,}",
        row.max_fee,
        row.fees,
        *base.limit_cells(row),
    )


def _decision_facts(view: DecisionView) -> Iterator[base.Fact]:
    burned = f"it burned {format_cby(view.lane_burned)} CBY"
    prices = f"{view.lane_basefee:,} a cycle, next {view.next_lane_basefee:,}; {burned}"
    yield base.Fact("lane_basefee", "lane basefee", prices)
    fires = counted(view.median_fires or 0, "fire")
    yield base.Fact("medians", "medians", f"tip {view.previous_tip:,} in the block before, {fires} in the window")


def _status_facts(lane: LaneStatus) -> Iterator[base.Fact]:
    if lane.basefee is None:
        return
    yield base.Fact("lane_basefee", "lane basefee", f"{lane.basefee:,} base units a cycle")
    yield base.Fact("median_tip", "median tip", f"{lane.previous_tip:,} a cycle in the last block")
    yield base.Fact("lane_burned", "burned by the lane", f"{format_cby(lane.burned)} CBY")


def _timer_facts(live: TimerView) -> Iterator[base.Fact]:
    if live.fees == AGENT_FEES and live.gas_bidding_agent is not None:
        yield base.Fact("agent", "agent", live.gas_bidding_agent, base.ValueKind.ADDRESS)


def _outlook(chain: ChainReader, timer: Timer, _: base.Trial | None) -> base.Outlook:
    """Return what comes next under the lane, which may begin only later. Spec: CIP-1v3 §3."""
    when, rules = base.next_block_for(chain, timer), chain.rules()
    expires = base.expiry_outlook(timer, when)
    if expires is not None:
        return expires
    cap, gas_limit = lane_cap(rules), lane_gas_limit(rules, timer.gas_limit, timer.schedule_block)
    if gas_limit > cap:
        text = (
            f"waits until it expires after height {timer.expires_at}: its gas limit of {gas_limit:,} is above the "
            f"{cap:,} cycles that one fire may use in the timer lane; cancel it and schedule it again with less"
        )
        return base.Outlook(base.OutlookKind.WAITS, text)
    basefee = rules.market.basefee
    max_fee, priority = timer.frozen_fees() or (2 * basefee, rules.market.previous_tip)
    if max_fee < basefee:
        text = (
            f"priced out as things stand: its max_fee of {max_fee:,} is below the lane basefee of {basefee:,}; it "
            f"waits for a lower one until it expires after height {timer.expires_at}"
        )
        return base.Outlook(base.OutlookKind.WAITS, text)
    account = chain.account(timer.actor)
    agent = timer.own_agent or (b"" if account is None else account.agent)
    is_asked = asks_agent(timer.fees) and bool(agent)
    tip = Price(0 if is_asked else min(priority, max_fee - basefee))
    cycle_basefee, cell_basefee = rules.timer_basefees()
    prices = Prices(cycle_basefee, cell_basefee, cycle_tip=tip, lane_basefee=basefee)
    money = base.money_for(chain, timer, gas_limit, prices, " and the tip" if is_asked else "")
    if money.is_short:
        text = f"removed unfunded at its turn, at height {when} or later, as things stand: {money.words}"
        return base.Outlook(base.OutlookKind.UNFUNDED, text)
    offer = "what its agent answers" if is_asked else f"a tip of {tip:,} a cycle"
    price = f"a cycle costs {cycle_basefee:,} + {basefee:,} for the lane + {'the tip' if is_asked else f'{tip:,} tip'}"
    text = f"competes at height {when} with {offer}, as things stand: {price}, {money.words}"
    return base.Outlook(base.OutlookKind.RUNS, text)


def _is_over_cap(rules: Rules, timer: Timer) -> bool:
    return lane_gas_limit(rules, timer.gas_limit, timer.schedule_block) > lane_cap(rules)


def _next_fire(rules: Rules, timer: Timer) -> Timer:
    gas_limit = lane_gas_limit(rules, timer.gas_limit, timer.schedule_block)
    return replace(timer, gas_limit=Cycles(gas_limit))


def _wait_reader(rules: Rules, timer: waits.WaitingTimer) -> waits.WaitReader:
    gas_limit = lane_gas_limit(rules, timer.gas_limit, timer.schedule_block)
    return lambda block, record: _wait(timer, gas_limit, block.height, record)


def _wait(timer: waits.WaitingTimer, gas_limit: int, height: int, record: DecisionRecord) -> waits.Wait:
    named = waits.named_in(record, timer.timer_id)
    offer = timer.offer(height, record)
    bid = waits.recorded_bid(record, timer.timer_id)
    cell_cap = bid.cell_fees[0] if bid is not None and bid.cell_fees is not None else None
    if named is not None and named.rank:
        offer = named.max_fee, named.tip
    max_fee, priority = offer or (None, None)
    tip = None
    if max_fee is not None and priority is not None and max_fee >= record.lane_basefee:
        tip = min(priority, max_fee - record.lane_basefee)
    if named is None and cell_cap is not None and cell_cap < record.cell_basefee:
        reason = waits.CELL_OFFER
    elif named is None:
        reason = _derived(timer, gas_limit, height, record, max_fee)
    else:
        # A runner-up was ranked and not examined, whatever would have become of it.
        reason = DeferralReason.OUTRANKED if named in record.runners_up else named.reason
    return waits.make_wait(height, record, str(reason), named, (max_fee, tip, cell_cap))


def _derived(
    timer: waits.WaitingTimer, gas_limit: int, height: int, record: DecisionRecord, max_fee: int | None
) -> str:
    """Return why a timer waited in a block whose record does not name it, in the order in which the lane sorts."""
    if not record.has_joined(timer.height, timer.sequence):
        return DeferralReason.NOT_JOINED
    if timer.expires_at(height) < height:
        return DeferralReason.GC_EXHAUSTED
    if gas_limit > record.max_cycles_per_fire:
        return DeferralReason.OVER_CAP
    if max_fee is None:
        return waits.AGENT_OFFER
    return DeferralReason.PRICED_OUT if max_fee < record.lane_basefee else DeferralReason.OUTRANKED


def _starting_basefee(rules: Rules) -> int:
    """Return the lane basefee; before the activation what the lane would begin with now. Decision: D-15."""
    if is_active(rules.params, rules.height):
        return rules.market.basefee
    lane = rules.params.lane
    return clamp(rules.cycle_basefee, lane.basefee_min, lane.basefee_max)


def _charged_cycles(rules: Rules, gas_limit: int) -> int:
    cap, charged = lane_cap(rules), lane_gas_limit(rules, gas_limit, rules.height)
    if charged > cap:
        begins = rules.params.lane.activation_height
        rule = f"at most {cap}: the timer lane, active from height {begins} on, sets aside what may use more"
        raise refused("gas_limit", gas_limit, rule)
    return charged


def _priority(rules: Rules, tip: int | None) -> int:
    """Return the priority that scheduling stores; the default cap leaves room for as much as the basefee."""
    if tip is not None and not 0 <= tip <= PRICE_MAX:
        raise refused("tip", tip, "within 0..=2**127 - 1")
    market = rules.market
    return offered_tip(2 * market.basefee, market.previous_tip if tip is None else tip, market.basefee)


def _weight(chain: ChainReader, account: Account | None) -> int:
    """Return W(actor) as of now. Spec: CIP-1v3 §8."""
    lane = chain.rules().params.lane
    if account is not None and account.owner and lane.weight_per_deployer:
        account = chain.account(Address(account.owner))
    median = whole_fires(next_median(lane, chain.store.read))
    return weight_of(0 if account is None else account.recent_fires, median, lane.weight_min, lane.weight_max)


def _tables(chain: ChainReader) -> tuple[base.Table, ...]:
    """Return the actors whose fires count in the fairness window, the most first. Complexity: O(accounts)."""
    found = [(address, account) for address, account in chain.accounts() if account.code_hash and account.recent_fires]
    found.sort(key=lambda item: (-item[1].recent_fires, item[0]))
    rows = [(Address(address), each.recent_fires, decimal_text(_weight(chain, each), 1)) for address, each in found]
    empty = "No timer has fired within the fairness window: every actor has the greatest weight."
    return (base.Table("weights", "Weights", WEIGHT_COLUMNS, rows, empty),)


def _why_not(recent: RecentBlock, offer: Offer) -> DeferralReason | None:
    basefee, record = Price(recent.lane_basefee or 0), recent.block.decisions
    if offer.max_fee < basefee:
        return DeferralReason.PRICED_OUT
    if record is None:
        return None
    if not record.has_joined(recent.block.height, U64_MAX):
        return DeferralReason.NOT_JOINED
    tip = offered_tip(offer.max_fee, offer.priority, basefee)
    return DeferralReason.OUTRANKED if _lane_left(record, tip * offer.weight) < offer.gas_limit else None


def _lane_left(record: DecisionRecord, effective_priority: int) -> int:
    """Return the cycles that a block of the lane had left for a timer of that effective priority, at its turn.

    Fires with an equal priority come before it, as ids are not known beforehand.
    """
    ranked = [timer for timer in record.decided if timer.rank]
    if not any(timer.effective_priority < effective_priority for timer in ranked):
        # Its turn comes after all that are named, and after those that the record has no room for.
        is_cut = record.stopped in (Stop.EXAMINED_MAX, Stop.PASSED_OVER_MAX, Stop.CELLS_FULL)
        return 0 if is_cut else record.lane_cycles_max - record.lane_cycles_used
    before = sum(timer.cycles_used for timer in ranked if timer.effective_priority >= effective_priority)
    return record.lane_cycles_max - before


def _quote_notes(rules: Rules, _: int, tip: int | None, account: Account | None) -> Iterator[str]:
    basefee = rules.market.basefee
    if tip is not None and tip > basefee:
        yield (
            f"the default cap of {2 * basefee:,} leaves room for a tip of {basefee:,}: "
            f"{tip:,} is stored as that, unless max_fee_per_cycle is at least {basefee + tip:,}"
        )
    if tip is None and account is not None and account.agent:
        yield f"its gas bidding agent {Address(account.agent)} decides when it is due; these are the default's fees"


def _tip_at(rules: Rules, timer: Timer, _: int, lane_basefee: int) -> int | None:
    """Return what a timer tips, by its own fees or by the default agent's. Decision: D-14, D-16."""
    max_fee, priority = timer.frozen_fees() or (2 * lane_basefee, rules.market.previous_tip)
    return None if max_fee < lane_basefee else offered_tip(max_fee, priority, Price(lane_basefee))


def _runway_notes(_: Rules, timers: Sequence[Timer]) -> Iterator[str]:
    if any(asks_agent(timer.fees) for timer in timers):
        yield "gas bidding agents decide on some of its timers: they are counted at the default's fees"


VIEWS: Final = base.MechanismViews(
    name=fee_lane.NAME,
    title="Lane",
    timer_columns=base.FEE_COLUMNS,
    timer_cells=base.fee_cells,
    timer_states={
        "over-cap": base.TimerState("over cap", lambda entry: entry.over_cap),
        "priced-out": base.TimerState("priced out", lambda entry: entry.priced_out),
    },
    timer_facts=_timer_facts,
    decision_columns=DECISION_COLUMNS,
    decision_cells=_decision_cells,
    decision_facts=_decision_facts,
    decision_fields=lambda record: {name: getattr(record, name) for name in DECISION_FIELDS},
    ranks_by_priority=True,
    fee_floor=lambda rules: rules.market.basefee,
    is_over_cap=_is_over_cap,
    next_fire=_next_fire,
    outlook=_outlook,
    waits_from=lambda rules, due: max(due, rules.params.lane.activation_height),
    wait_reader=_wait_reader,
    tip_at=_tip_at,
    runway_notes=_runway_notes,
    tables=_tables,
    quoting=Quoting(
        lane_basefee=_starting_basefee,
        charged_cycles=_charged_cycles,
        price_parts=(("lane basefee", "lane_basefee"), ("tip", "tip")),
        has_cap=True,
        priority=_priority,
        weight=_weight,
        why_not=_why_not,
        notes=_quote_notes,
    ),
    status_field="lane",
    status_facts=_status_facts,
    cycles_per_fire=lane_cap,
)
