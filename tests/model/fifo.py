"""The slow model of CIP-5 §§1-8: one list of timers, looked through from the front in every block."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.model.blocks import Blocks
from tests.model.language import Ending, Frame
from tests.model.world import Event, Meter, Receipt, Timer


class FifoBlocks(Blocks):
    """What FIFO makes of the due timers; classified all at once, charged, and then run."""

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
        lane, gc = rules["lane_cycles_per_block"], rules["gc_cycles_per_block"]
        for timer in due[: rules["due_examined_max"]]:
            required = self._max_cost(timer)
            available = self.world.account(timer.fee_payer).balance
            if self.height > timer.expires_at:
                end: Callable[[Timer], None] = self.expire
            elif available < required:
                end = partial(self.unfund, required=required)
            elif timer.gas_limit > lane:
                self.defer(timer, "lane_full")
                continue
            else:
                lane -= timer.gas_limit
                self.world.credit(timer.fee_payer, -required)
                self.world.timers.remove(timer)
                self.world.paid.append((timer, required))
                continue
            if gc < rules["gc_cycles_per_timer"]:
                self.defer(timer, "gc_exhausted")
                continue
            gc -= rules["gc_cycles_per_timer"]
            end(timer)

    # What both mechanisms do with a timer

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
