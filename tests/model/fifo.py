"""The slow model of CIP-5 §§1-8: one list of timers, looked through from the front in every block."""

from typing import Any

from tests.model.blocks import Blocks
from tests.model.language import Ending, Frame
from tests.model.world import NO_CAP, Event, Meter, Receipt, Timer


def by_expiry(timer: Timer) -> tuple[int, int, int]:
    """Who expires first, and then in due order."""
    return timer.expires_at, timer.height, timer.sequence


class FifoBlocks(Blocks):
    """What FIFO makes of the due timers; classified all at once, charged, and then run.

    Attributes:
        gc_left: Cycles that the block has for removals.
        dead_left: Dead timers that the block may still defer one by one.
    """

    gc_left = 0
    dead_left = 0

    def _max_cost(self, timer: Timer) -> int:
        """Return the worst case of a fire. Spec: CIP-5 §6.3."""
        cells = self.rules["timers"]["max_cells_per_fire"]
        return timer.gas_limit * self.terms.cycle_price + cells * self.terms.cell_price

    def _deliver_in_order(self) -> list[Receipt]:
        self._classify()
        receipts = []
        while self.world.paid:
            timer, paid = self.world.paid.pop(0)
            receipts.append(self.fire(timer, timer.gas_limit, paid))
        return receipts

    def _classify(self) -> None:
        """Go through the due timers once: removed, deferred, or paid and queued."""
        rules = self.rules["timers"]
        due = sorted(
            (timer for timer in self.world.timers if timer.height <= self.height),
            key=lambda timer: (timer.height, timer.sequence),
        )
        self.gc_left, self.dead_left = rules["gc_cycles_per_block"], rules["dead_examined_max"]
        expired = sorted((timer for timer in due if timer.expires_at < self.height), key=by_expiry)
        removed = [timer for timer in expired if self.can_remove()]
        kept = expired[len(removed) :][: self.dead_left]
        self.dead_left -= len(kept)
        cells = self.cells_max()
        lane, examined = rules["lane_cycles_per_block"], 0
        out: set[bytes] = set()
        for timer in due:
            required = self._max_cost(timer)
            if timer in removed:
                self.expire(timer)
            elif timer in kept:
                self.defer(timer, "gc_exhausted")
            elif timer in expired or timer.fee_payer in out:
                continue
            elif examined == rules["due_examined_max"]:
                out = {each.fee_payer for each in due}
            elif self.world.account(timer.fee_payer).balance < required:
                if not self.end_unfunded(timer, required):
                    out.add(timer.fee_payer)
            elif timer.gas_limit > lane:
                examined += 1
                self.defer(timer, "lane_full")
            elif rules["max_cells_per_fire"] > cells:
                examined += 1
                self.defer(timer, "cells_full")
            else:
                examined += 1
                lane -= timer.gas_limit
                cells -= rules["max_cells_per_fire"]
                self.world.credit(timer.fee_payer, -required)
                self.world.timers.remove(timer)
                self.world.paid.append((timer, required))

    def can_remove(self) -> bool:
        """Take what one removal costs from the budget of the block. Spec: CIP-1v3 §9. Decision: D-23."""
        price = self.rules["timers"]["gc_cycles_per_timer"]
        if self.gc_left < price:
            return False
        self.gc_left -= price
        return True

    def end_unfunded(self, timer: Timer, required: int) -> bool:
        """Remove a timer that its payer cannot pay for, or defer it; return False if it is left. Decision: D-78."""
        if self.can_remove():
            self.unfund(timer, required)
        elif self.dead_left:
            self.dead_left -= 1
            self.defer(timer, "gc_exhausted")
        else:
            self.occurred.append("payer left out")
            return False
        return True

    # What all mechanisms do

    def cells_max(self) -> int:
        """Return the cells that fires may use in a block. Decision: D-80."""
        return self.rules["timers"]["lane_cells_per_block"] or NO_CAP

    def expire(self, timer: Timer) -> None:
        """Remove a timer whose last height has passed. Spec: CIP-5 §5.4."""
        self._remove(timer, "expired")
        self.announce("TimerExpired", timer, expires_at=timer.expires_at, current_height=self.height)

    def unfund(self, timer: Timer, required: int) -> None:
        """Remove a timer that its payer cannot pay for. Spec: CIP-5 §5.4."""
        self._remove(timer, "unfunded")
        facts = {"fee_payer": timer.fee_payer, "required": required}
        available = self.world.account(timer.fee_payer).balance
        self.announce("TimerCancelledInsufficientFunds", timer, **facts, available=available)

    def _remove(self, timer: Timer, end: str) -> None:
        self.world.timers.remove(timer)
        self.world.totals[end] += 1

    def defer(self, timer: Timer, reason: str) -> None:
        """Let a timer wait; written and told when it begins or its reason changes. Decision: D-44."""
        if timer.deferred_for != reason:
            self.world.replace_timer(timer, timer._replace(deferred_for=reason))
            self.announce("timer.deferred", timer, reason=reason, gas_limit=timer.gas_limit, height=timer.height)

    def announce(self, name: str, timer: Timer, **fields: Any) -> None:
        """Let the block tell something of a timer."""
        self.block_events.append(Event(name, timer.actor, {"timer_id": timer.timer_id, **fields}, timer.timer_id))

    def fire(
        self,
        timer: Timer,
        gas_limit: int,
        paid: int,
        *,
        tip: int = 0,
        cell_tip: int = 0,
        lane_price: int = 0,
        asked: int = 0,
    ) -> Receipt:
        """Run a timer that is paid for. Spec: CIP-5 §5.2, §6.3. CIP-1v3 §3.

        Args:
            timer: The timer.
            gas_limit: Cycles it may use.
            paid: What its payer has given.
            tip: To the proposer per cycle.
            cell_tip: To the proposer per cell.
            lane_price: What the lane burns per cycle.
            asked: Cycles that its agent has used.
        """
        meter = Meter(gas_limit, self.rules["timers"]["max_cells_per_fire"])
        frame = Frame(timer.actor, timer.handler, timer.payload, timer.actor, timer.actor)

        def run() -> Ending:
            meter.use(asked)
            return self.interpreter.run(frame, meter)

        self.world.totals["fired"] += 1
        receipt = self.settle(
            "timer",
            run,
            meter,
            sender=timer.actor,
            payer=timer.fee_payer,
            reserved=paid,
            prices=(self.terms.cycle_price + lane_price, self.terms.cell_price),
            tips=(tip, cell_tip),
            pool_prices=(self.terms.cycle_price, self.terms.cell_price),
            timer_id=timer.timer_id,
        )
        return receipt._replace(events=(*receipt.events, self.fired(timer, receipt, lane_price)))

    def fired(self, timer: Timer, receipt: Receipt, lane_price: int = 0) -> Event:
        """Return the event of a fire."""
        fields = {
            "timer_id": timer.timer_id,
            "reverted": receipt.status == "reverted",
            "cycles_used": receipt.cycles_used,
            "cells_used": receipt.cells_used,
            "fee_payer": timer.fee_payer,
            "fee_paid": receipt.reserved - receipt.refund,
            "refund": receipt.refund,
            "tip": receipt.tip,
            "lane_burned": receipt.cycles_used * lane_price,
            "blocks_deferred": self.height - timer.height,
        }
        return Event("timer.fired", timer.actor, fields, timer.timer_id)
