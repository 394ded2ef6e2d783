"""What people see under FIFO: timers by height and insertion, without prices of their own."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.execution.decision_recorder import CANCELLED
from trailboss.fees import Prices
from trailboss.governance.markets import is_active
from trailboss.governance.rules import Rules
from trailboss.mechanisms import fifo
from trailboss.mechanisms.base import Verdict
from trailboss.model.actors import Account
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params.loader import PRICE_MAX
from trailboss.views.mechanism import base
from trailboss.views.mechanism.lane_records import LaneStatus
from trailboss.views.recent_blocks import Offer, Quoting, RecentBlock, refused
from trailboss.views.records import DecisionRow


def _decision_cells(row: DecisionRow) -> tuple[base.Value, ...]:
    return row.rank, row.timer_id, row.actor, *base.limit_cells(row)


def _status_facts(lane: LaneStatus) -> Iterator[base.Fact]:
    begins = lane.activation_height
    words = f"begins at height {begins}" if begins else "no height is set at which it begins"
    yield base.Fact("timer_lane", "timer lane", words)


def _outlook(chain: ChainReader, timer: Timer, trial: base.Trial | None) -> base.Outlook:
    when = base.next_block_for(chain, timer)
    expires = base.expiry_outlook(timer, when)
    if expires is not None:
        return expires
    money = base.money_for(chain, timer, timer.gas_limit, Prices(*chain.rules().timer_basefees()))
    if money.is_short:
        text = f"removed unfunded at height {when} as things stand: {money.words}"
        return base.Outlook(base.OutlookKind.UNFUNDED, text)
    waits = f"; it waits because of {timer.deferred_for}" if timer.deferred_for else ""
    fires = "is due" if trial is None else "fires" if trial.failure is None else "fires and reverts"
    return base.Outlook(base.OutlookKind.RUNS, f"{fires} at height {when} as things stand: {money.words}{waits}")


def _priority(_: Rules, tip: int | None) -> int:
    if tip is None:
        return 0
    if not 0 <= tip <= PRICE_MAX:
        raise refused("tip", tip, "within 0..=2**127 - 1")
    raise refused("tip", tip, "none while the timer lane is not active: scheduling refuses one")


def _why_not(recent: RecentBlock, offer: Offer) -> DeferralReason | None:
    record = recent.block.decisions
    if record is None:
        return None
    if _cycles_left(record) < offer.gas_limit:
        return DeferralReason.LANE_FULL
    waited = any(timer.reason == DeferralReason.CELLS_FULL for timer in record.examined)
    return DeferralReason.CELLS_FULL if waited else None


def _cycles_left(record: DecisionRecord) -> int:
    """Return the cycles that a block had left, reserved ones taken off; 0 if the record does not name all timers."""
    if record.examined_count > len(record.examined) or record.stopped is Stop.EXAMINED_MAX:
        return 0
    took = sum(timer.gas_limit for timer in record.examined if timer.outcome in (Verdict.FIRE.value, CANCELLED))
    return record.lane_cycles_max - took


def _quote_notes(rules: Rules, height: int, _tip: int | None, _account: Account | None) -> Iterator[str]:
    begins = rules.params.lane.activation_height
    if is_active(rules.params, height):
        yield (
            f"the timer lane begins at height {begins}: the price is what it would begin with now, the chances are "
            "those of blocks under FIFO, and timers that offer more go first from then on"
        )
    elif begins:
        yield f"the timer lane begins at height {begins}: a timer that still waits then competes in it"


VIEWS: Final = base.MechanismViews(
    name=fifo.NAME,
    title="Lane",
    gives_way=True,
    decision_columns=(base.RANK, base.TIMER, replace(base.ACTOR, extra=False), *base.LIMITS),
    decision_cells=_decision_cells,
    outranked=partial(base.outranked_words, place="further back in the order"),
    outlook=_outlook,
    quoting=Quoting(
        lane_basefee=lambda _: 0,
        charged_cycles=lambda _, gas_limit: gas_limit,
        has_cap=False,
        priority=_priority,
        weight=lambda *_: 0,
        why_not=_why_not,
        notes=_quote_notes,
    ),
    status_field="lane",
    status_facts=_status_facts,
)
