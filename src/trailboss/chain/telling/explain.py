"""A timer's whole life, and why each decision fell as it did."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from trailboss.chain.chain import Chain
from trailboss.chain.telling.outlook import outlook
from trailboss.chain.telling.stories import story
from trailboss.chain.telling.waiting import Wait, Waiter, find_waiting, waiting_words
from trailboss.chain.views import Event, block_events, event_view
from trailboss.execution.agents import BUDGET_SPENT
from trailboss.model import events as names
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.events import EventRecord
from trailboss.model.timers import ASK_AGENT, Timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX

LIVE: Final = "live"


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One thing that happened to a timer.

    Attributes:
        block_height: When.
        event: The event that tells of it.
        story: What happened and why, in words.
    """

    block_height: int
    event: Event
    story: str


@dataclass(frozen=True, slots=True)
class TimerLife:
    """A timer's life so far.

    Attributes:
        timer_id: Its id.
        state: ``live``, or how it ended: ``fired``, ``unfunded``, ``expired``, ``cancelled``.
        steps: What happened, oldest first.
        waited: How often and why it waited in the timer lane, in words; empty if it did not.
        waits: The blocks behind that, ascending, at most the last 1,000.
        outlook: For a live timer what comes next as things stand, else empty.
    """

    timer_id: Hash32
    state: str
    steps: tuple[LifeStep, ...]
    waited: str
    waits: tuple[Wait, ...]
    outlook: str

    def __str__(self) -> str:
        told = (f"  {label}: {words}" for label, words in self.lines())
        return "\n".join((f"timer {self.timer_id}: {self.state}", *told))

    def lines(self) -> list[tuple[str, str]]:
        """Return what to tell, in order: what to call it, and the words."""
        found = [(f"block {step.block_height}", step.story) for step in self.steps]
        if self.waited:
            # What a timer waited for comes before what ended it.
            found.insert(len(found) - (self.state != LIVE), ("waited", self.waited))
        if self.outlook:
            found.append(("next", self.outlook))
        return found


def explain_timer(chain: Chain, timer_id: bytes) -> TimerLife:
    """Tell a timer's life.

    Complexity: O(blocks that hold something) since it was scheduled for a live timer, since genesis for another; and
    the last 1,000 blocks in which it waited in the timer lane.

    Raises:
        Rejection: ``NOT_FOUND`` if no block of this chain ever scheduled it.
    """
    timer = chain.timer(timer_id)
    course = _Course(timer_id)
    for block in chain.blocks.eventful(0 if timer is None else timer.schedule_block):
        course.follow(block)
    if not course.steps:
        raise Rejection(
            RejectionReason.NOT_FOUND,
            f"no block of this chain scheduled timer 0x{timer_id.hex()}",
            timer_id=timer_id.hex(),
        )
    last = chain.height if course.state == LIVE else course.steps[-1].block_height - 1
    waiting = find_waiting(chain, course.waiter(timer), last)
    following = "" if timer is None else outlook(chain, timer)
    return TimerLife(
        Hash32(timer_id), course.state, tuple(course.steps), waiting_words(waiting), waiting.waits, following
    )


class _Course:
    """A timer's events as they are come upon, and what its waiting follows from.

    Attributes:
        steps: Its life so far.
        state: ``live``, or how it ended.
    """

    def __init__(self, timer_id: bytes) -> None:
        self.steps: list[LifeStep] = []
        self.state = LIVE
        self._timer_id = timer_id
        self._agents: dict[bytes, bytes] = {}
        self._scheduled = 0
        self._asked_until = 0
        self._expiries: list[tuple[int, int]] = []

    def follow(self, block: Block) -> None:
        """Take in the events of the next block that holds something."""
        # The lane begins, and agents are asked, before anything fires, whose events stand in the receipts.
        for record in block.events:
            if record.name == names.LANE_ACTIVATED and self.steps and self.state == LIVE:
                self._add(record, block, None)
            elif record.name == names.AGENT_FALLBACK:
                self._hear(record, block, None)
        for receipt in block.receipts:
            for record in receipt.events:
                self._hear(record, block, receipt)
        for record in block.events:
            if record.name != names.AGENT_FALLBACK:
                self._hear(record, block, None)

    def waiter(self, timer: Timer | None) -> Waiter:
        """Return what its waiting follows from; a live timer's own record knows it best."""
        facts = self.steps[0].event.data
        frozen = (facts["max_fee_per_cycle"], facts["max_priority_fee_per_cycle"]) if _is_frozen(facts) else None
        asked_until = self._asked_until
        if timer is not None and timer.fees == ASK_AGENT:
            asked_until = U64_MAX
        return Waiter(
            timer_id=self._timer_id,
            height=facts["height"],
            sequence=self._scheduled if timer is None else timer.sequence,
            schedule_block=self.steps[0].block_height,
            gas_limit=facts["gas_limit"],
            frozen=frozen,
            asked_until=asked_until,
            expiries=tuple(self._expiries),
        )

    def _hear(self, record: EventRecord, block: Block, receipt: ReceiptRecord | None) -> None:
        if record.timer_id == self._timer_id:
            self._add(record, block, receipt)
        elif record.name == names.TIMER_SCHEDULED and not self.steps:
            self._scheduled += 1
        elif record.name == names.AGENT_SET and not self.steps:
            self._agents[record.emitter] = event_view(record, block.height).data["agent"]

    def _add(self, record: EventRecord, block: Block, receipt: ReceiptRecord | None) -> None:
        event = event_view(record, block.height)
        facts = event.data
        self.steps.append(LifeStep(block.height, event, story(event.name, facts, block, receipt)))
        self.state = names.TIMER_ENDINGS.get(record.name, self.state)
        match record.name:
            case names.TIMER_SCHEDULED:
                self._expiries.append((block.height, facts["expires_at"]))
                if self._agents.get(record.emitter) and not _is_frozen(facts):
                    self._asked_until = U64_MAX
            case names.TIMER_EXTENDED | names.TIMER_EXTENDED_BY_GOVERNANCE:
                self._expiries.append((block.height, facts["expires_at"]))
            case names.AGENT_FALLBACK if facts["reason"] != BUDGET_SPENT:
                # From this block on it offers what the default agent does.
                self._asked_until = block.height - 1


def _is_frozen(facts: dict[str, Any]) -> bool:
    return "max_fee_per_cycle" in facts


def events_since(chain: Chain, since: int = 0, name: str | None = None) -> Iterator[Event]:
    """Yield events from block ``since`` on, inclusive, oldest first; with a name only those."""
    for block in chain.blocks.eventful(since):
        for record in block_events(block):
            if name is None or record.name == name:
                yield event_view(record, block.height)
