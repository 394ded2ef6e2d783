"""The slow model of CIP-1 v3: in each block all due timers are looked at, asked, sorted and gone through.

It remembers little between blocks: the lane basefee, the median tip, the timers that have joined, and the fairness
window as it is told, the fires of each actor in each block.
"""

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

from tests.model.agents import AskingBlocks, Offer, asks, cell_tip
from tests.model.blocks import Examined
from tests.model.joining import JoiningBlocks, due_order
from tests.model.world import ASK, NO_CAP, Event, Receipt, Terms, Timer

WHOLE = 10**9
"""W(actor) = 1. Decision: D-11."""
LEAST_RISE = 1
RUNNERS_UP_MAX = 16
PRECISE = Context(prec=80)


class Lane(NamedTuple):
    """The lane between two blocks.

    Attributes:
        basefee: Of the next block, base units per cycle.
        previous_tip: Median of the last block's tips per cycle.
        burned: What the lane basefee has burned so far.
    """

    basefee: int
    previous_tip: int = 0
    burned: int = 0


class Ranked(NamedTuple):
    """A timer in the order of the lane, with what it offers, its tip and its weight."""

    timer: Timer
    offer: Offer
    tip: int
    weight: int


def lower_median(numbers: list[int]) -> int:
    """Return the lower of the two middle numbers, or the middle one; 0 if there are none. Decision: D-11, D-29."""
    return sorted(numbers)[(len(numbers) - 1) // 2] if numbers else 0


class Model(AskingBlocks, JoiningBlocks):
    """A chain whose timers are delivered under FIFO until the lane's activation, and under the lane from it on.

    Attributes:
        lane: The lane, once there is one.
        window: Height to the fires of each actor in that block.
        votes: Height to the tips of the fires of that block.
        smoothed: Median of fires as smoothed over many blocks, in parts of 10⁻⁹.
        purses: Balances as the last block's walk began.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lane: Lane | None = None
        self.window: dict[int, dict[bytes, int]] = {}
        self.smoothed = 0
        self.purses: dict[bytes, int] = {}

    def copy(self) -> "Model":
        """Return a model that goes on from here without touching this one."""
        twin = super().copy()
        twin.window = {height: dict(fires) for height, fires in self.window.items()}
        return twin

    # What a block finds

    def next_terms(self) -> Terms:
        """Return what the next block finds of the lane. Spec: CIP-1v3 §13.2."""
        rules = self.next_rules()
        own = rules["lane"]
        basefee, tip, cap = self.basefees[0], 0, NO_CAP
        active = 1 <= own["activation_height"] <= self.height + 1
        if active:
            cap = min(own["max_cycles_per_fire"], rules["timers"]["lane_cycles_per_block"])
            basefee = min(max(basefee, own["basefee_min"]), own["basefee_max"])
            if self.lane is not None:
                basefee, tip = self.lane.basefee, self.lane.previous_tip
        return Terms(active, basefee, tip, cap, *self._prices("timer", rules), self.used[0])

    def next_payer(self) -> tuple[bytes, int]:
        """Return who pays a fire that comes soon, and what that account lacks for it at the next block's prices.

        Under FIFO it is the oldest timer's; in the lane that with the highest tip among those that may run next and
        whose payers lack anything.
        """
        rules, terms = self.next_rules(), self.next_terms()
        rows = []
        for timer in sorted(self.world.timers, key=due_order):
            tip, price = 0, terms.cycle_price
            if terms.active:
                is_open = timer.fees == () or asks(timer)
                max_fee, priority = (2 * terms.basefee, terms.previous_tip) if is_open else timer.fees
                tip = max(0, min(priority, max_fee - terms.basefee))
                price += terms.basefee + tip
            required = timer.gas_limit * price + rules["timers"]["max_cells_per_fire"] * terms.cell_price
            lacks = required - self.world.account(timer.fee_payer).balance
            is_next = timer.height <= self.height + 1 <= timer.expires_at and timer.gas_limit <= terms.cap
            rows.append((terms.active and is_next and lacks > 0, tip, timer.fee_payer, lacks))
        return max(rows, key=lambda row: row[:2])[2:] if terms.active else rows[0][2:]

    def recent_fires(self) -> dict[bytes, int]:
        """Return the fires within the window of every actor that has one. Spec: CIP-1v3 §8."""
        fires: dict[bytes, int] = {}
        for of_block in self.window.values():
            for actor, count in of_block.items():
                fires[actor] = fires.get(actor, 0) + count
        return fires

    # The end of a block. Spec: CIP-1v3 §3

    def deliver_timers(self) -> list[Receipt]:
        """Deliver the due timers."""
        if not self.terms.active:
            return self._deliver_in_order()
        if self.lane is None:
            self.lane = Lane(self.terms.basefee)
            emitter = self.params["governance"]["basefee_actor"].to_bytes(20, "big")
            facts = {"height": self.height, "basefee": self.terms.basefee}
            self.block_events.append(Event("lane.activated", emitter, facts))
        self.gc_left = self.rules["timers"]["gc_cycles_per_block"]
        self.dead_left = self.rules["timers"]["dead_examined_max"]
        self._let_blocks_leave()
        joined = self.join()
        self.remove_expired([timer for timer in self.world.timers if timer.height <= self.height])
        self.remove_barred()
        fit = self._set_aside(joined)
        offers = self.offers(fit)
        receipts = self._walk(self._rank(offers))
        self._show({timer.timer_id: offer.max_fee if self._pays(offer) else -1 for timer, offer in offers})
        return receipts

    def _let_blocks_leave(self) -> None:
        """Let the oldest blocks leave the window. Spec: CIP-1v3 §8. Decision: D-52."""
        own = self.rules["lane"]
        left = [height for height in sorted(self.window) if height <= self.height - own["fairness_window_blocks"]]
        for height in left[: own["window_blocks_left_max"]]:
            del self.window[height]

    def _gas(self, timer: Timer) -> int:
        """Return what a fire may use. Decision: D-13."""
        own = self.rules["lane"]
        if own["clamps_gas_limit"] and timer.schedule_block < own["activation_height"]:
            return min(timer.gas_limit, self.terms.cap)
        return timer.gas_limit

    def _set_aside(self, alive: list[Timer]) -> list[Timer]:
        """Return those that may fire at all, and tell the others once. Spec: CIP-1v3 §10. Decision: D-13."""
        over = [timer for timer in alive if self._gas(timer) > self.terms.cap]
        untold = [timer for timer in over if timer.deferred_for != "over_cap"]
        for timer in untold[: self.rules["lane"]["joined_max"]]:
            self.defer(timer, "over_cap")
        return [timer for timer in alive if timer not in over]

    # Who comes first

    def _weight(self, fires: int, median: int) -> int:
        """Return W(actor) of an actor with so many fires, rounded down. Spec: CIP-1v3 §8. Decision: D-11."""
        own = self.rules["lane"]
        numerator, denominator = fires * WHOLE, max(1, median)
        ratio = -(-numerator // denominator)
        return min(max(2 * WHOLE - ratio, own["weight_min"]), own["weight_max"])

    def _median_fires(self, fires: list[int]) -> int:
        return lower_median(fires)

    def _median_tip(self, tips: list[int]) -> int:
        return lower_median(tips)

    def _tie(self, timer: Timer) -> Any:
        """Return what decides between equals. Spec: CIP-1v3 §3. Decision: D-30."""
        return timer.timer_id, timer.schedule_block

    def _pays(self, offer: Offer) -> bool:
        """Return whether an offer covers the lane basefee and the cell basefee. Decision: D-14, D-86."""
        return offer.max_fee >= self.terms.basefee and cell_tip(offer.cells, self.terms.cell_price) >= 0

    def _rank(self, offers: list[tuple[Timer, Offer]]) -> list[Ranked]:
        """Sort all that can pay the basefees. Spec: CIP-1v3 §3."""
        short = [offer for _, offer in offers if cell_tip(offer.cells, self.terms.cell_price) < 0]
        self.occurred += ["too little for a cell"] * len(short)
        fires = self.recent_fires()
        median = self._smooth(self._median_fires(list(fires.values())))
        self.shown["median_fires"] = median
        ranked = [
            Ranked(
                timer,
                offer,
                min(offer.priority, offer.max_fee - self.terms.basefee),
                self._weight(fires.get(self._counted(timer.actor), 0), median) + self._gained(timer),
            )
            for timer, offer in offers
            if self._pays(offer)
        ]
        ranked.sort(key=lambda each: self._tie(each.timer))
        return sorted(ranked, key=lambda each: each.tip * each.weight, reverse=True)

    # Rules that are off unless a chain turns them on. Decision: D-106

    def _counted(self, actor: bytes) -> bytes:
        """Return whose fires an actor's are."""
        return self.world.account(actor).owner if self.rules["lane"]["weight_per_deployer"] else actor

    def _smooth(self, median: int) -> int:
        """Return the median of fires after another block, to the nearest whole."""
        blocks = self.rules["lane"]["fires_median_blocks"]
        self.smoothed += (median * WHOLE - self.smoothed) // blocks
        return (2 * self.smoothed + WHOLE) // (2 * WHOLE)

    def _gained(self, timer: Timer) -> int:
        """Return what waiting has added to the weight of a timer."""
        blocks = self.rules["lane"]["weight_age_blocks"]
        if not blocks:
            return 0
        start = timer.height
        while start % max(1, blocks // 16):
            start += 1
        return max(0, self.height - start) * WHOLE // blocks

    # The walk

    def _smallest(self) -> int:
        """Return the smallest gas limit of all that have joined and are not above the cap."""
        joined = [self._gas(timer) for timer in self.joined_timers()]
        return min((gas for gas in joined if gas <= self.terms.cap), default=NO_CAP)

    def _walk(self, ranked: list[Ranked]) -> list[Receipt]:
        """Go through the ranked timers, fire what fits, and leave the lane to the next block."""
        lane_cycles, most = self.rules["timers"]["lane_cycles_per_block"], self.rules["timers"]["due_examined_max"]
        self.purses = {address: account.balance for address, account in self.world.accounts.items()}
        receipts: list[Receipt] = []
        tips = []
        used, cells = 0, self.cells_max()
        runners_up: list[Examined] = []
        stopped = "none_left"
        rank = examined = 0
        out: set[bytes] = set()
        for each in ranked:
            if each.timer.fee_payer in out:
                continue
            rank += 1
            present = [timer for timer in self.world.timers if timer.timer_id == each.timer.timer_id]
            if not present:
                continue  # A fire before it has cancelled it.
            if stopped == "none_left" and lane_cycles - used < self._smallest():
                stopped = "lane_full"
            elif stopped == "none_left" and cells < self.rules["timers"]["max_cells_per_fire"]:
                stopped = "cells_full"
            elif stopped == "none_left" and self._passed_over() == self.rules["lane"]["passed_over_max"]:
                stopped = "passed_over_max"
            elif stopped == "none_left" and examined == most:
                stopped = "examined_max"
            if stopped != "none_left":
                runners_up.append(self._examined(rank, each, "defer", "outranked", 0))
                continue
            outcome, reason, receipt = self._examine(present[0], each, lane_cycles - used)
            if outcome == "leave":
                out.add(each.timer.fee_payer)
                continue
            examined += outcome == "fire" or reason == "lane_full"
            if receipt is not None:
                receipts.append(receipt)
                tips += [each.tip] * self._counts(receipt)
                used += receipt.cycles_used
                cells -= receipt.cells_used
            cycles = 0 if receipt is None else receipt.cycles_used
            self.ranked.append(self._examined(rank, each, outcome, reason, cycles))
        self._close(receipts, tips)
        self.shown |= {"lane_cycles_max": lane_cycles, "lane_cycles_used": used, "stopped": stopped}
        self.runners_up = runners_up[:RUNNERS_UP_MAX]
        return receipts

    def _passed_over(self) -> int:
        return sum(each.reason == "lane_full" for each in self.ranked)

    def _examined(self, rank: int, each: Ranked, outcome: str, reason: str, cycles: int) -> Examined:
        timer, offer = each.timer, each.offer
        facts = (self._gas(timer), cycles, each.tip, each.weight, offer.max_fee, offer.source)
        return Examined(timer.timer_id, rank, outcome, reason, *facts)

    def _counts(self, receipt: Receipt) -> bool:
        """Return whether a fire has a vote and a place in the window: it has used a frame at least. Decision: D-29."""
        return receipt.cycles_used >= self.rules["costs"]["frame_base"]

    def _close(self, receipts: list[Receipt], tips: list[int]) -> None:
        """Count the fires and leave the lane to the next block. Spec: CIP-1v3 §3, §5, §7.1."""
        for receipt in filter(self._counts, receipts):
            of_block = self.window.setdefault(self.height, {})
            counted = self._counted(receipt.sender)
            of_block[counted] = of_block.get(counted, 0) + 1
        used = sum(receipt.cycles_used for receipt in receipts)
        burned = used * self._lane_price()
        self.shown |= {"previous_tip": self.lane.previous_tip, "lane_burned": burned}
        self.lane = Lane(self._next_basefee(used), self._median_tip(tips), self.lane.burned + burned)

    def _show(self, offered: dict[bytes, int]) -> None:
        """Say how many of those that still wait do so for what. Decision: D-53."""
        due, joined = self.due_timers(), self.joined_timers()
        fit = [timer for timer in joined if self._gas(timer) <= self.terms.cap]
        fees = {timer.timer_id: timer.fees[0] for timer in fit if timer.fees and not asks(timer)} | offered
        can_pay = [timer for timer in fit if fees.get(timer.timer_id, self.terms.basefee) >= self.terms.basefee]
        deferred = {timer.timer_id for timer in self.ranked if timer.outcome == "defer"}
        stopped = self.shown["stopped"] != "none_left"
        self.shown |= {
            "cycle_basefee": self.terms.cycle_price,
            "cell_basefee": self.terms.cell_price,
            "lane_basefee": self.terms.basefee,
            "next_lane_basefee": self.lane.basefee,
            "max_cycles_per_fire": self.terms.cap,
            "cut_off": max((timer.rank for timer in self.ranked if timer.outcome == "fire"), default=0),
            "not_joined": len(due) - len(joined),
            "over_cap": len(joined) - len(fit),
            "priced_out": len(fit) - len(can_pay),
            "outranked": sum(timer.timer_id not in deferred for timer in can_pay),
            "smallest_gas": self._smallest() if stopped else 0,
        }

    def least_cost(self, timer: Timer) -> int:
        """Return the least that a fire is pre-charged for, whatever it tips. Decision: D-79."""
        price = self.terms.cycle_price + self._lane_price()
        cells = self.rules["timers"]["max_cells_per_fire"]
        return min(timer.gas_limit, self.terms.cap) * price + cells * self.terms.cell_price

    def _lane_price(self) -> int:
        """Return what a cycle of a fire costs besides the cycle basefee and the tip. Decision: D-14."""
        return self.terms.basefee

    def _examine(self, timer: Timer, each: Ranked, lane_left: int) -> tuple[str, str, Receipt | None]:
        """Remove, defer or fire one timer; return which, why it waits, and the receipt."""
        gas = self._gas(timer)
        price = self.terms.cycle_price + self._lane_price() + each.tip
        tip = cell_tip(each.offer.cells, self.terms.cell_price)
        required = gas * price + self.rules["timers"]["max_cells_per_fire"] * (self.terms.cell_price + tip)
        if self.world.account(timer.fee_payer).balance < required:
            if not self.end_unfunded(timer, required):
                return "leave", "", None
            is_gone = timer.timer_id not in {each.timer_id for each in self.world.timers}
            return ("unfund", "", None) if is_gone else ("defer", "gc_exhausted", None)
        if gas > lane_left:
            self.defer(timer, "lane_full")
            return "defer", "lane_full", None
        self.world.credit(timer.fee_payer, -required)
        self.world.timers.remove(timer)
        self.occurred.append("tip for cells" if tip else "no tip for cells")
        if asks(timer) and each.offer.source == "fallback":
            agent = self.world.account(timer.actor).agent if timer.fees == ASK else timer.fees
            self.announce("gba.fallback", timer, agent=agent, reason="budget")
        facts = {"tip": each.tip, "cell_tip": tip, "lane_price": self._lane_price(), "asked": each.offer.asked}
        return "fire", "", self.fire(timer, gas, required, **facts)

    def _next_basefee(self, used: int) -> int:
        """Return the lane basefee of the next block. Spec: CIP-1v3 §5. Decision: D-15."""
        own, basefee = self.rules["lane"], self.terms.basefee
        target = self.rules["timers"]["lane_cycles_per_block"] // own["elasticity"]
        most = own["max_change_denominator"]
        if own["basefee_rule"] == 2:
            factor = PRECISE.exp(PRECISE.divide(Decimal(used - target), Decimal(target * most)))
            step = abs(int(PRECISE.multiply(basefee, factor).to_integral_value(ROUND_HALF_UP)) - basefee)
        elif own["basefee_rule"] == 1:
            step = basefee * abs(used - target) // target // most
        else:
            step = min(basefee * abs(used - target) // target // own["alpha"], basefee // most)
        moved = basefee + max(step, LEAST_RISE) if used > target else basefee - step
        return min(max(moved, own["basefee_min"]), own["basefee_max"])
