"""A timer's whole life, and why each decision fell as it did."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain as chained
from itertools import dropwhile, takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.history import JOINED_FIX
from trailboss.chain.reader import ChainReader
from trailboss.execution.agents import BUDGET_SPENT
from trailboss.fees import Prices, max_cost
from trailboss.model import events as names
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.decisions import Order
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer, asks_agent
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views.explain.sentences import sentence, step_kind
from trailboss.views.explain.waits import (
    AskedBid,
    Wait,
    Waiting,
    WaitingTimer,
    bid_in,
    bids_words,
    quiet_wait,
    waiting_words,
)
from trailboss.views.labels import labelled, labels_in_use
from trailboss.views.mechanism.base import Occurrence, Outlook, OutlookKind, StepKind, Trial, next_block_for
from trailboss.views.mechanism.registry import views_at, views_for
from trailboss.views.records import Event, block_events, event_view, events_of
from trailboss.views.text import counted, failure_words


class FirePath(Struct, frozen=True, kw_only=True):
    """One fire's path. Heights are those of blocks; None for what has not happened, or not yet."""

    fire_seq: int  # which fire of the timer, from 0
    hit_height: int  # height from which its age counts: the due height, or that of the block whose change hit it
    queued_at: int  # block that put it into Globalbox
    materialized_at: int | None = None  # block that moved it to the mailbox
    deliver_seq: int | None = None  # its number there
    ended_at: int | None = None  # block in which it ran, or its timer ended
    outcome: str = "queued"  # ``queued``, ``in mailbox``, ``ran``, ``reverted``, or ``gone``: its timer ended first
    matched_keys: tuple[bytes, ...] = ()  # watched keys that were modified, as far as its delivery has reported them


def fire_paths(events: Iterable[Event]) -> tuple[FirePath, ...]:
    """Return the path of each fire, in the order in which they were queued, from all events of one timer in order."""
    paths: list[FirePath] = []
    for event in events:
        if event.name == names.TIMER_QUEUED:
            facts = event.data
            paths.append(
                FirePath(fire_seq=facts["fire_seq"], hit_height=facts["hit_height"], queued_at=event.block_height)
            )
        else:
            paths = [_after(path, event) for path in paths]
    return tuple(paths)


def waits_words(paths: Sequence[FirePath], height: int) -> str:
    """Return how long fires have waited by a block, in words; empty if none did."""
    waits = []
    for path in paths:
        # A fire that has not ended waits in the last block too.
        end = height + 1 if path.ended_at is None else path.ended_at
        moved = end if path.materialized_at is None else path.materialized_at
        counts = ((moved - path.queued_at, "Globalbox"), (end - moved, "the mailbox"))
        parts = [f"{counted(count, 'block')} in {where}" for count, where in counts if count]
        if parts:
            waits.append(f"fire {path.fire_seq}: {' and '.join(parts)}")
    return "; ".join(waits)


def _after(path: FirePath, event: Event) -> FirePath:
    facts, height = event.data, event.block_height
    if event.name in names.TIMER_ENDINGS:
        # What is in the mailbox runs without its timer.
        return replace(path, outcome="gone", ended_at=height) if path.outcome == "queued" else path
    if event.name == names.TIMER_MATERIALIZED and path.outcome == "queued" and path.fire_seq == facts["fire_seq"]:
        return replace(path, materialized_at=height, deliver_seq=facts["deliver_seq"], outcome="in mailbox")
    if path.deliver_seq is None or path.deliver_seq != facts.get("deliver_seq") or path.ended_at is not None:
        return path
    if event.name == names.TIMER_FIRE_RECEIPT:
        outcome = "ran" if facts["status"] == "ok" else facts["status"]
        return replace(path, ended_at=height, outcome=outcome, matched_keys=tuple(facts["matched_keys"]))
    return path


LIVE: Final = "live"
BLOCKS_MAX: Final = 1_000  # blocks that are gone through, the latest of those in which a timer waited
FIRED: Final = names.TIMER_ENDINGS[names.TIMER_FIRED]
BEFORE_FIRES: Final = frozenset(
    {names.AGENT_FALLBACK, names.TIMER_DELAYED, names.TIMER_QUEUED, names.TIMER_MATERIALIZED}
)
"""Events of a block itself that come before its fires."""


class LifeStep(Struct, frozen=True):
    """One thing that happened to a timer."""

    block_height: int  # when
    event: Event  # the event
    story: str  # what happened and why, in words
    kind: StepKind = StepKind.PLAIN  # what that means for the timer


class TimerLife(Struct, frozen=True):
    """A timer's life so far."""

    timer_id: Hash32  # its id
    state: str  # ``live``, or how it ended: ``fired``, ``unfunded``, ``expired``, ``cancelled``
    steps: tuple[LifeStep, ...]  # what happened, oldest first
    # How often and why it waited in the timer lane or the auction, or how long its fires did in Globalbox and
    # its mailbox, in words; empty if it did not.
    waited: str
    # In the timer lane and the auction the blocks behind that, ascending, at most the last 1,000.
    waits: tuple[Wait, ...]
    # In the auction what its agent bid, each time that it was asked, in the last 1,000 blocks in which it was
    # due.
    bids: tuple[AskedBid, ...]
    fires: tuple[FirePath, ...]  # in Globalbox the way of each of its fires
    outlook: str  # for a live timer what comes next as things stand, else empty
    outlook_kind: OutlookKind | None = None  # the same in one word; None for a timer that has ended
    has_reverted: bool = False  # whether its last fire has reverted
    # For a live timer what its fire would revert with as things stand; None if it would end well or was not
    # tried.
    failure: ErrorObject | None = None
    # What a forecast of the next blocks has of a live timer, where it says more than the outlook; else empty.
    forecast: str = ""

    def __str__(self) -> str:
        lines = (f"  {label}: {words}" for label, words in self.lines())
        return labelled("\n".join((self.heading(), *lines)))

    def __repr__(self) -> str:
        return f"<TimerLife {labels_in_use().short(self.timer_id)}: {self.state}, {counted(len(self.steps), 'step')}>"

    def heading(self) -> str:
        """Return which timer it is, and how it ended."""
        reverted = " and reverted" if self.has_reverted and self.state == FIRED else ""
        return f"timer {self.timer_id}: {self.state}{reverted}"

    def lines(self) -> list[tuple[str, str]]:
        """Return label and words of each step, wait and outlook, in order."""
        found = [(f"block {step.block_height}", step.story) for step in self.steps]
        waits = [("asked", bids_words(self.bids))] if self.bids else []
        if self.waited:
            waits.append(("waited", self.waited))
        if waits:
            # What a timer waited for comes before what ended it.
            ends = (at for at, step in enumerate(self.steps) if step.event.name in names.TIMER_ENDINGS)
            end = len(found) if self.state == LIVE else next(ends, len(found))
            found[end:end] = waits
        if self.outlook:
            found.append(("next", self.outlook))
        if self.forecast:
            found.append(("forecast", self.forecast))
        return found


class EarlierEvents(Struct, frozen=True, kw_only=True):
    """What the blocks before the one that scheduled a timer come to."""

    scheduled: int = 0  # timers that they scheduled
    agent: bytes = b""  # gas bidding agent that its actor set last, 20 bytes; empty for none


def explain_timer(
    chain: ChainReader,
    timer_id: bytes,
    blocks: Iterable[int] | None = None,
    earlier: EarlierEvents | None = None,
    *,
    attempt: Callable[[Timer], ErrorObject | None] | None = None,
    ahead: Callable[[Timer, Outlook], str] | None = None,
) -> TimerLife:
    """Return a timer's life.

    Complexity: O(blocks that hold something) since it was scheduled for a live timer, since genesis for another, or
    only the blocks that hold its events if they are given; and the last 1,000 blocks in which it waited in the timer
    lane or in the auction. Of an ended timer that waited there, the blocks before it are searched unless what they
    come to is given too.

    ``blocks`` are the heights of the blocks that hold its events, ``earlier`` what came before them, if they are known;
    other heights do no harm. ``attempt`` tries a live timer's handler, as `try_timer` does; without it the outlook
    promises nothing of that. ``ahead`` returns what a forecast has of it beside its outlook, as `forecast_beside` does.

    Raises:
        Rejection: ``NOT_FOUND`` if no block of this chain ever scheduled it, or one did that the chain does not have.
    """
    timer = chain.timer(timer_id)
    history = _TimerHistory(timer_id)
    first, base = 0 if timer is None else timer.schedule_block, chain.blocks.base
    if timer is not None and base and first <= base:
        history.begin_with(timer, base)
    for block in chain.blocks.eventful(first) if blocks is None else _blocks_of(chain, timer_id, blocks, first):
        history.follow(block)
    if not history.owner:
        what = f"no block of this chain scheduled timer 0x{timer_id.hex()}"
        if base:
            what = f"no block above {base}, where this node joined the network, scheduled timer 0x{timer_id.hex()}"
        raise Rejection(RejectionReason.NOT_FOUND, what, JOINED_FIX if base else "", timer_id=timer_id.hex())
    last = chain.height if history.state == LIVE else history.ended_at - 1
    if blocks is None or timer is not None:
        # All blocks that count have been followed.
        earlier = EarlierEvents()
    elif earlier is None:
        waited = waiting_heights(chain, history.height, last)
        earlier = _find_earlier(chain, history) if waited else EarlierEvents()
    waiting_timer = history.waiting_timer(timer, earlier)
    waiting = find_waiting(chain, waiting_timer, last)
    trial = None if timer is None or attempt is None else Trial(attempt(timer))
    told = None if timer is None else outlook(chain, timer, trial)
    fires = fire_paths(step.event for step in history.steps)
    return TimerLife(
        timer_id=Hash32(timer_id),
        state=history.state,
        steps=tuple(history.steps),
        waited=waiting_words(waiting) or waits_words(fires, chain.height),
        waits=waiting.waits,
        bids=find_bids(chain, waiting_timer, chain.height if history.state == LIVE else history.ended_at),
        fires=fires,
        outlook="" if told is None else told.text,
        outlook_kind=None if told is None else told.kind,
        has_reverted=history.has_reverted,
        failure=None if trial is None else trial.failure,
        forecast="" if timer is None or told is None or ahead is None else ahead(timer, told),
    )


def find_waiting(chain: ChainReader, timer: WaitingTimer, last: int) -> Waiting:
    """Return where a due timer waited up to a height, if blocks record that: O(blocks), at most ``BLOCKS_MAX``."""
    rules, views = chain.rules(), views_for(chain)
    heights = waiting_heights(chain, timer.height, last)
    if not heights or views.wait_reader is None:
        return Waiting(0, ())
    first, read = max(heights.start, last - BLOCKS_MAX + 1), views.wait_reader(rules, timer)
    blocks = chain.blocks[first : last + 1]
    waits = (
        quiet_wait(rules, views.cycles_per_fire(rules), block.height)
        if block.decisions is None
        else read(block, block.decisions)
        for block in blocks
    )
    return Waiting(len(heights), tuple(waits))


def waiting_heights(chain: ChainReader, due: int, last: int) -> range:
    """Return the heights at which a timer due at one waits, up to the last; none where blocks do not record it."""
    first = views_for(chain).waits_from(chain.rules(), due)
    return range(0) if first is None else range(first, last + 1)


def find_bids(chain: ChainReader, timer: WaitingTimer, last: int) -> tuple[AskedBid, ...]:
    """Return what a timer bid up to a height, each time that its agent was asked.

    Complexity: O(blocks gone through), at most ``BLOCKS_MAX``, and none where blocks do not ask agents.
    """
    first = max(timer.height, last - BLOCKS_MAX + 1)
    if not views_for(chain).asks_agents or first > last:
        return ()
    blocks = chain.blocks[first : last + 1]
    return tuple(filter(None, (bid_in(block, timer.timer_id) for block in blocks)))


def _blocks_of(chain: ChainReader, timer_id: bytes, heights: Iterable[int], first: int) -> Iterator[Block]:
    """Yield the blocks that hold a timer's events, and the one that activates the lane if it comes later."""
    # Before the activation, that height is 0 or above the head.
    wanted = sorted({*heights, chain.rules().params.lane.activation_height})
    first = max(first, chain.blocks.base)
    blocks = (chain.blocks[height] for height in wanted if first <= height <= chain.height)
    return dropwhile(lambda block: all(record.timer_id != timer_id for record in block_events(block)), blocks)


def _find_earlier(chain: ChainReader, history: "_TimerHistory") -> EarlierEvents:
    scheduled, agent, owner = 0, b"", history.owner
    before = takewhile(lambda block: block.height < history.steps[0].block_height, chain.blocks.eventful())
    for record in chained.from_iterable(map(block_events, before)):
        if record.name == names.TIMER_SCHEDULED:
            scheduled += 1
        elif record.name == names.AGENT_SET and record.emitter == owner:
            agent = _agent_of(record)
    return EarlierEvents(scheduled=scheduled, agent=agent)


class _TimerHistory:
    """A timer's events as they are come upon, and what its waiting follows from."""

    def __init__(self, timer_id: bytes) -> None:
        self.steps: list[LifeStep] = []
        self.state = LIVE
        self.ended_at = 0
        self.height = 0
        self.owner = b""  # its actor, 20 bytes, once it is scheduled
        self.has_reverted = False
        self._timer_id = timer_id
        self._agents: dict[bytes, bytes] = {}
        self._scheduled = 0
        self._fell_back_at: int | None = None
        self._expiries: list[tuple[int, int]] = []

    def begin_with(self, timer: Timer, base: int) -> None:
        """Take in a live timer that a block up to the chain's first one scheduled: its record has what the event had.

        Decision: D-105
        """
        facts: dict[str, int | str | bytes] = {
            "height": timer.height,
            "handler": timer.handler,
            "fee_payer": timer.fee_payer,
            "gas_limit": timer.gas_limit,
            "expires_at": timer.expires_at,
        }
        frozen = timer.frozen_fees() if timer.terms is None else None
        if frozen is not None:
            facts["max_fee_per_cycle"], facts["max_priority_fee_per_cycle"] = frozen
        height, owner = timer.schedule_block, Address(timer.actor)
        event = Event(names.TIMER_SCHEDULED, owner, facts, b"", height, Hash32(timer.timer_id))
        story = f"was scheduled; this node joined the network at block {base} and does not have the block's events"
        self.steps.append(LifeStep(height, event, story))
        self.height, self.owner = timer.height, timer.actor
        self._expiries.append((height, timer.expires_at))

    def follow(self, block: Block) -> None:
        """Take in the events of the next block that holds something."""
        for record in block.events:
            if record.name == names.LANE_ACTIVATED and self.steps and self.state == LIVE:
                self._add(record, block, None)
        # What comes before the fires, whose events are in their receipts, is read before them.
        begin = _first_fire(block)
        self._read_receipts(block, block.receipts[:begin])
        for record in block.events:
            if record.name in BEFORE_FIRES:
                self._read(record, block, None)
        self._read_receipts(block, block.receipts[begin:])
        for record in block.events:
            if record.name not in BEFORE_FIRES:
                self._read(record, block, None)

    def _read_receipts(self, block: Block, receipts: Iterable[ReceiptRecord]) -> None:
        for receipt in receipts:
            for record in receipt.events:
                self._read(record, block, receipt)

    def waiting_timer(self, timer: Timer | None, earlier: EarlierEvents) -> WaitingTimer:
        """Return what its waiting follows from; a live timer's own record knows it best."""
        facts = self.steps[0].event.data
        is_frozen = "max_fee_per_cycle" in facts
        frozen = (facts["max_fee_per_cycle"], facts["max_priority_fee_per_cycle"]) if is_frozen else None
        asked_until = 0
        if self._fell_back_at is not None:
            # From that block on it offers what the default agent does.
            asked_until = self._fell_back_at - 1
        elif frozen is None and ("gba" in facts or self._agents.get(self.owner, earlier.agent)):
            asked_until = U64_MAX
        if timer is not None and asks_agent(timer.fees):
            asked_until = U64_MAX
        return WaitingTimer(
            timer_id=self._timer_id,
            height=self.height,
            sequence=earlier.scheduled + self._scheduled if timer is None else timer.sequence,
            schedule_block=self.steps[0].block_height,
            gas_limit=facts["gas_limit"],
            frozen=frozen,
            asked_until=asked_until,
            expiries=tuple(self._expiries),
        )

    def _read(self, record: EventRecord, block: Block, receipt: ReceiptRecord | None) -> None:
        if record.timer_id == self._timer_id:
            self._add(record, block, receipt)
        elif record.name == names.TIMER_SCHEDULED and not self.steps:
            self._scheduled += 1
        elif record.name == names.AGENT_SET and not self.steps:
            self._agents[record.emitter] = _agent_of(record)

    def _add(self, record: EventRecord, block: Block, receipt: ReceiptRecord | None) -> None:
        it = Occurrence(event_view(record, block.height), block, receipt)
        facts = it.facts
        self.steps.append(LifeStep(block.height, it.event, sentence(it), step_kind(it)))
        if record.name in names.TIMER_ENDINGS:
            self.state, self.ended_at = names.TIMER_ENDINGS[record.name], block.height
        match record.name:
            case names.TIMER_SCHEDULED:
                # In Globalbox the id of a timer that has been forgotten can be that of another.
                self.state = LIVE
                self.height, self.owner = facts["height"], record.emitter
                self._expiries.append((block.height, facts["expires_at"]))
            case names.TIMER_FIRED:
                self.has_reverted = facts["reverted"]
            case names.TIMER_MOVED:
                self.height = facts["height"]
            case names.TIMER_EXTENDED | names.TIMER_EXTENDED_BY_GOVERNANCE:
                self._expiries.append((block.height, facts["expires_at"]))
            case names.AGENT_FALLBACK if facts["reason"] != BUDGET_SPENT:
                self._fell_back_at = block.height


def _first_fire(block: Block) -> int:
    """Return before which receipt of a block its deliveries begin. Spec: CIP-5 §5.1, CIP-1v1 §3."""
    if block.decisions is not None and block.decisions.order is Order.TIP:
        return 0
    origins = [receipt.origin for receipt in block.receipts]
    return next((at for at, origin in enumerate(origins) if origin is not Origin.TRANSACTION), len(origins))


def _agent_of(record: EventRecord) -> bytes:
    return bytes(event_view(record, 0).data["agent"])


def latest_events(
    chain: ChainReader, since: int = 0, name: str | None = None, emitter: bytes | None = None
) -> Iterator[Event]:
    """Yield events, the last one first, down to block ``since``; with a name or an emitter only those.

    Complexity: O(blocks that hold something) back to the last event that is asked for.
    """
    for block in chain.blocks.latest_eventful(since):
        for record in reversed(list(block_events(block))):
            if name in (None, record.name) and emitter in (None, record.emitter):
                yield event_view(record, block.height)


def events_since(chain: ChainReader, since: int = 0, name: str | None = None) -> Iterator[Event]:
    """Yield events from block ``since`` on, inclusive, oldest first; with a name only those."""
    for block in chain.blocks.eventful(since):
        yield from events_of(block, name)


def outlook(chain: ChainReader, timer: Timer, trial: Trial | None) -> Outlook:
    """Return what comes next for a live timer, as things stand. Decision: D-96."""
    found = views_at(chain, next_block_for(chain, timer)).outlook(chain, timer, trial)
    if trial is None or trial.failure is None:
        return found
    text = f"{found.text}; run as things stand, its handler reverts: {failure_words(trial.failure)}"
    return Outlook(OutlookKind.REVERTS, text)


def reserve_of(chain: ChainReader, timer: Timer) -> int:
    """Return what the next fire of a live timer reserves at the present basefees without a tip, base units.

    A fire that waits in the mailbox of Globalbox reserves nothing: it has been paid for.
    """
    rules, views = chain.rules(), views_for(chain)
    if views.is_paid(timer):
        return 0
    prices = Prices(*rules.timer_basefees(), lane_basefee=rules.market.surcharge)
    return max_cost(views.next_fire(rules, timer).gas_limit, rules.timer.max_cells_per_fire, prices)


def unpaid_words(chain: ChainReader, timer: Timer) -> str:
    """Return that the payer of a live timer holds less than its fire reserves, and how much; empty if it does not."""
    cost, balance = reserve_of(chain, timer), chain.balance(timer.fee_payer)
    if balance >= cost:
        return ""
    return (
        f"timer {Hash32(timer.timer_id)} cannot be paid as things stand: a fire costs up to {format_cby(cost)} CBY, "
        f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    )
