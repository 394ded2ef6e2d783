"""What occurs in random histories, counted by name, so that a test can ask whether everything did."""

from collections import Counter
from itertools import pairwise

import cbor2

from tests.model.blocks import Report
from tests.model.lane import WHOLE, Model
from tests.model.world import Event, Terms


class Outcomes:
    """Counts outcomes of blocks; it looks at the model only.

    Attributes:
        seen: How often each outcome occurred, by a name.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._told: set[bytes] = set()
        self._gas: dict[bytes, int] = {}
        self._expiry: dict[bytes, int] = {}
        self._window: set[int] = set()

    def count(self, model: Model, report: Report) -> None:
        """Count what a block has done."""
        events = [*(event for receipt in report.receipts for event in receipt.events), *report.events]
        for receipt in report.receipts:
            self.seen[f"{receipt.origin} {receipt.status}"] += 1
            if receipt.code is not None:
                self.seen[f"{receipt.origin} reverted {receipt.code}"] += 1
        for event in events:
            self._count_event(event, model.height)
        for _, code in report.refused:
            self.seen[f"refused {code}"] += 1
        self.seen.update(model.occurred)
        # A due timer that nothing defers was not looked at: the block had examined as many as it may.
        if not model.terms.active:
            waiting = [timer for timer in model.world.timers if timer.height <= model.height and not timer.deferred_for]
            self.seen["due timer not examined"] += len(waiting)
        else:
            self._count_lane(model, report)

    def _count_event(self, event: Event, height: int) -> None:
        self.seen[event.name] += 1
        match event.name:
            case "timer.scheduled":
                self._gas[event.timer_id] = event.fields["gas_limit"]
                self._expiry[event.timer_id] = event.fields["expires_at"]
            case "timer.extended":
                self.seen["expired timer extended"] += self._expiry.get(event.timer_id, height) < height
                self._expiry[event.timer_id] = event.fields["expires_at"]
            case "timer.cancelled" if event.fields["refund"]:
                self.seen["timer.cancelled after charge"] += 1
            case "timer.deferred":
                self.seen[f"timer.deferred {event.fields['reason']}"] += 1
                self.seen["timer.deferred for another reason"] += event.timer_id in self._told
                self._told.add(event.timer_id)
            case "TimerCancelledInsufficientFunds":
                self.seen["unfunded by one unit"] += event.fields["available"] == event.fields["required"] - 1
            case "timer.fired":
                self.seen["timer.fired after deferral"] += event.timer_id in self._told
            case "parameter.set" if event.fields["key"] == b"system:cip1:activation_height":
                self.seen["activation moved"] += 1
            case "timer.delayed":
                self.seen[f"timer.delayed {event.fields['action']}"] += 1
            case "TimerFireReceipt":
                self.seen[f"fire of {event.fields['kind']} {event.fields['status']}"] += 1
            case "note" if event.fields in (b"\x00", b"\x01"):
                self.seen[f"answer {bool(event.fields[0])}"] += 1
            case "delivery":
                self.seen[f"delivery of {cbor2.loads(event.fields).get('trigger_ctx', {}).get('kind', 'nothing')}"] += 1
            case "gba.fallback":
                self.seen[f"gba.fallback {event.fields['reason']}"] += 1

    def _count_lane(self, model: Model, report: Report) -> None:
        terms, own, lane = model.terms, model.rules["lane"], model.lane
        seen = self.seen
        for event in report.events:
            seen[f"lane {event.name}"] += 1
            if event.name == "timer.deferred":
                seen[f"lane timer.deferred {event.fields['reason']}"] += 1
            if event.name == "TimerCancelledInsufficientFunds":
                seen["payer runs dry before the turn"] += (
                    model.purses.get(event.fields["fee_payer"], 0) >= event.fields["required"]
                )
        for timer in report.ranked:
            seen[f"ranked {timer.outcome} {timer.reason}".strip()] += 1
            seen[f"fees {timer.fee_source}"] += 1
            seen["W between its bounds"] += WHOLE < timer.weight < 2 * WHOLE
            seen["gas limit clamped"] += timer.gas_limit < self._gas.get(timer.timer_id, 0)
        seen["tie broken by id"] += sum(
            before.tip * before.weight == after.tip * after.weight > 0 for before, after in pairwise(report.ranked)
        )
        seen["ranked timer cancelled"] += [timer.rank for timer in report.ranked] != [*range(1, len(report.ranked) + 1)]
        seen[f"lane stopped {report.shown['stopped']}"] += 1
        seen["lane basefee rises"] += lane.basefee > terms.basefee
        seen["lane basefee rises by the least step"] += (
            lane.basefee == terms.basefee + 1 and terms.basefee < own["max_change_denominator"]
        )
        seen["lane basefee falls to its floor"] += own["basefee_min"] == lane.basefee < terms.basefee
        seen["tip above zero"] += lane.previous_tip > 0
        left = self._window - set(model.window)
        seen["block leaves the window"] += len(left)
        seen["block waits to leave the window"] += any(
            height <= model.height - own["fairness_window_blocks"] for height in model.window
        )
        self._window = set(model.window)
        self._count_waiting(model, report, terms)

    def _count_waiting(self, model: Model, report: Report, terms: Terms) -> None:
        due = [timer for timer in model.world.timers if timer.height <= model.height]
        joined = [timer for timer in due if timer.timer_id in model.joined]
        self.seen["due timer not joined"] += len(due) - len(joined)
        self.seen["expired timer not removed"] += sum(timer.expires_at < model.height for timer in joined)
        self.seen["priced out"] += sum(
            isinstance(timer.fees, tuple) and len(timer.fees) == 2 and timer.fees[0] < terms.basefee for timer in joined
        )
        if any(event.name == "lane.activated" for event in report.events):
            self.seen["activation with a backlog"] += any(timer.deferred_for for timer in due)
