"""The slow model of the first CIP-1: in each block all due timers are looked at, asked, sorted and gone through.

Deferrals are counted one by one: after each block, one for every timer that waits.
"""

from collections import Counter
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import cbor2

from tests.model.agents import FAILURES, PRICE_MAX, cell_tip
from tests.model.auction_scripts import AuctionInterpreter
from tests.model.auction_weights import Sums, WeighingBlocks
from tests.model.blocks import Examined
from tests.model.joining import due_order
from tests.model.language import Frame
from tests.model.world import ASK, Meter, Receipt, Terms, Timer

EVENT, FRONT, CANCEL = range(3)
ACTIONS = ("event", "front", "cancel")
ANSWER = {"max_fee_per_cycle", "tip_per_cycle"}
CELL_ANSWER = {"max_fee_per_cell", "tip_per_cell"}


class Ranked(NamedTuple):
    """A timer in the order of the auction."""

    timer: Timer
    tip: int
    max_fee: int
    weight: int
    source: str
    asked: int


class AuctionBlocks(WeighingBlocks):
    """A chain under the auction."""

    interpreter_class = AuctionInterpreter
    delivers_first = True

    def next_terms(self) -> Terms:
        """Return what the next block finds: there is no lane."""
        return Terms(False, self.basefees[0], 0, 2**64, *self._prices("timer", self.next_rules()), self.used[0])

    def next_payer(self) -> tuple[bytes, int]:
        """Return who pays a fire that comes soon, and what that account lacks for it at the next block's prices."""
        rules, terms = self.next_rules(), self.next_terms()
        timer = min(self.world.timers, key=lambda timer: (-self._bid(timer)[1], *due_order(timer)))
        price = terms.cycle_price + self._bid(timer)[1]
        required = timer.gas_limit * price + rules["timers"]["max_cells_per_fire"] * terms.cell_price
        return timer.actor, required - self.world.account(timer.actor).balance

    # The beginning of a block

    def deliver_timers(self) -> list[Receipt]:
        """Deliver the due timers, before the transactions. Spec: CIP-1v1 §3."""
        self.own = self.rules["auction"]
        self.epoch = self.height // self.rules["calendar"]["epoch_length"]
        self.waited = Counter(timer.actor for timer in self.joined_timers())
        joining = {timer.actor for timer in self.join()}
        joining = {actor for actor in joining if self.waiting(actor) > self.waited[actor]}
        self._freshen_some(joining)
        for actor in joining:
            state = self.actors[actor]._replace(takes_part=True)
            if not self.waited[actor]:
                state = state._replace(quiet_since=max(state.quiet_since, self.height - 1))
            self.actors[actor] = state
        self._handle_late()
        asked = self._ask_all()
        self._pass_over_unfunded(asked)
        return self._walk(self._rank(asked))

    def close(self) -> None:
        """Count one deferral for every timer that has joined and waits. Decision: D-58."""
        for timer in self.joined_timers():
            state = self.actors[timer.actor]
            longest = max(state.longest_wait, self.height - state.quiet_since)
            state = state._replace(deferrals=state.deferrals + 1, longest_wait=longest, takes_part=True)
            self.actors[timer.actor] = state

    # Late timers. Decision: D-19.

    def _handle_late(self) -> None:
        action = self.own["delay_action"]
        late = [timer for timer in self.joined_timers() if self.height - timer.height > self.own["delays_max"]]
        told = [timer for timer in late if action == CANCEL or not timer.terms.is_late]
        for timer in told[: self.own["joined_max"]]:
            if action == CANCEL:
                self._cancel_late(timer)
                continue
            self.world.replace_timer(timer, timer._replace(terms=timer.terms._replace(is_late=True)))
            self.announce("timer.delayed", timer, delay_count=self.height - timer.height, action=ACTIONS[action])

    def _cancel_late(self, timer: Timer) -> None:
        self.world.timers.remove(timer)
        self.world.totals["cancelled"] += 1
        balance = self.world.account(timer.actor).balance
        penalty = min(balance, self.own["delay_penalty_cycles"] * self.terms.cycle_price)
        self.world.credit(timer.actor, -penalty)
        self.world.burned += penalty
        self.announce("timer.cancelled_by_delay", timer, refund=0, penalty=penalty)

    # Questions. Spec: CIP-1v1 §4.2. Decision: D-57.

    def _ask_all(self) -> dict[bytes, tuple[str, int]]:
        """Ask as many agents as the block has cycles for; return whose bid each of these timers has, and its cycles."""
        asked: dict[bytes, tuple[str, int]] = {}
        left = self.own["gba_cycles_per_block"]
        for timer in sorted(self.joined_timers(), key=self._asking_order):
            if left < self.own["gba_cycles_max"]:
                break
            asked[timer.timer_id] = self._ask(timer)
            left -= asked[timer.timer_id][1]
        self.agent_cycles = sum(used for _, used in asked.values())
        return asked

    def _asking_order(self, timer: Timer) -> Any:
        """Those never asked come first, of them the block's own; then those asked longest ago."""
        was_asked = timer.fees != ASK
        own = not was_asked and timer.height == self.height
        return was_asked, not own, timer.terms.asked_at if was_asked else 0, timer.height, timer.sequence

    def _ask(self, timer: Timer) -> tuple[str, int]:
        meter = Meter(self.own["gba_cycles_max"], self.rules["timers"]["max_cells_per_fire"])
        facts = {
            "trigger_block_height": timer.height,
            "current_block_height": self.height,
            "basefee_cycle": self.terms.cycle_price,
            "basefee_cell": self.terms.cell_price,
            "last_block_cycle_usage": self.terms.last_used,
            "owner_actor_balance": self.world.account(timer.actor).balance,
        }
        context = cbor2.dumps(facts, canonical=True)
        frame = Frame(timer.terms.agent, "get_gas_bid", context, timer.actor, timer.actor, read_only=True)
        before = self.world.copy()
        ending = self.interpreter.run(frame, meter)
        self.world.become(before)
        bid = None if ending.code is not None else self._read_answer(ending.value)
        fees = self._default_bid() if bid is None else bid
        terms = timer.terms._replace(asked_at=self.height)
        self.world.replace_timer(timer, timer._replace(fees=fees, terms=terms))
        if bid is None:
            reason = "malformed" if ending.code is None else FAILURES.get(ending.code, "failed")
            self.announce("gba.fallback", timer, agent=timer.terms.agent, reason=reason)
        used = max(self.rules["costs"]["frame_base"], meter.used()[0])
        return ("agent" if bid is not None else "fallback"), used

    def _pass_over_unfunded(self, asked: dict[bytes, tuple[str, int]]) -> None:
        """Tell the timers whose bids of just now cannot run, in the order of the questions. Decision: D-60, D-86."""
        self.refused = set()
        live = {timer.timer_id: timer for timer in self.world.timers}
        for timer in [live[timer_id] for timer_id in asked]:
            if timer.fees[0] >= self.terms.cycle_price and self._why_not(timer):
                self.refused.add(timer.timer_id)
                self.defer(timer, self._why_not(timer))

    def _why_not(self, timer: Timer) -> str:
        """Return why a bid that covers the cycle basefee cannot run: too little for a cell, or too little money."""
        if self._cell_tip(timer) < 0:
            return "priced_out"
        return "" if self.world.account(timer.actor).balance >= self._cost(timer) else "unfunded"

    def _cell_tip(self, timer: Timer) -> int:
        states_cells = timer.fees != ASK and len(timer.fees) > len(self._default_bid())
        return cell_tip(timer.fees[2:] if states_cells else None, self.terms.cell_price)

    def _cost(self, timer: Timer) -> int:
        """Return the most that a fire may cost at its bid."""
        max_fee, tip = self._default_bid() if timer.fees == ASK else timer.fees[:2]
        price = self.terms.cycle_price + min(tip, max_fee - self.terms.cycle_price)
        cell_price = self.terms.cell_price + self._cell_tip(timer)
        return int(timer.gas_limit * price + self.rules["timers"]["max_cells_per_fire"] * cell_price)

    def _default_bid(self) -> tuple[int, int]:
        return 2 * self.terms.cycle_price, 0

    def _bid(self, timer: Timer) -> tuple[int, int]:
        return (2 * self.basefees[0], 0) if timer.fees == ASK else timer.fees[:2]

    def _read_answer(self, octets: bytes) -> tuple[int, ...] | None:
        """Return the two or four fees of an answer, or None if it is malformed."""
        try:
            answer = cbor2.loads(octets)
            is_canonical = cbor2.dumps(answer, canonical=True) == octets
        except (cbor2.CBORError, ValueError, TypeError):
            return None
        if not is_canonical or not isinstance(answer, dict) or not ANSWER <= set(answer) <= ANSWER | CELL_ANSWER:
            return None
        if any(type(price) is not int or not 0 <= price <= PRICE_MAX for price in answer.values()):
            return None
        max_fee, tip = answer["max_fee_per_cycle"], answer["tip_per_cycle"]
        cells = answer.get("max_fee_per_cell", 0), answer.get("tip_per_cell", 0)
        if tip > max_fee or cells[1] > cells[0]:
            return None
        return (max_fee, tip, *cells) if "max_fee_per_cell" in answer else (max_fee, tip)

    # Order. Spec: CIP-1v1 §3.

    def _rank(self, asked: dict[bytes, tuple[str, int]]) -> list[Ranked]:
        """Sort all that bid at least the basefee and are not set aside."""
        ranked = []
        for timer in self.joined_timers():
            max_fee, tip = self._default_bid() if timer.fees == ASK else timer.fees[:2]
            source, used = asked.get(timer.timer_id, ("fallback" if timer.fees == ASK else "frozen", 0))
            if max_fee < self.terms.cycle_price or self._is_set_aside(timer, asked):
                self.occurred.append("set aside" if max_fee >= self.terms.cycle_price else "priced out")
                continue
            tip = min(tip, max_fee - self.terms.cycle_price)
            ranked.append(Ranked(timer, tip, max_fee, self.actors[timer.actor].weight, source, used))
        return sorted(ranked, key=self._order)

    def _is_set_aside(self, timer: Timer, asked: dict[bytes, tuple[str, int]]) -> bool:
        """Return whether its bid cannot run, or could not and its agent was not asked since. Decision: D-60, D-86."""
        if timer.timer_id in self.refused:
            return True
        return timer.deferred_for in ("unfunded", "priced_out") and timer.timer_id not in asked

    def _order(self, each: Ranked) -> Any:
        if self.own["delay_action"] == FRONT and each.timer.terms.is_late:
            return 0, 0, 0, *due_order(each.timer)
        return 1, -each.tip, -each.weight, *due_order(each.timer)

    # The walk. Decision: D-68.

    def _walk(self, ranked: list[Ranked]) -> list[Receipt]:
        """Go through the ranking twice: within each actor's slice, and then within what is left."""
        self.budget, self.cells = self.own["budget_cycles"], self.cells_max()
        weights = {timer.actor: self.actors[timer.actor].weight for timer in self.joined_timers()}
        self.slices = {actor: self._slice(weight, sum(weights.values())) for actor, weight in weights.items()}
        self.run_so_far: list[Receipt] = []
        self.passed_over = self.examined = 0
        self.dead_left = self.rules["timers"]["dead_examined_max"]
        self.out: set[bytes] = set()
        self.stopped = "none_left"
        self.to_come = Counter(each.timer.actor for each in ranked)
        self.smallest = {actor: min(self._gas_limits(actor)) for actor in weights}
        ranking = enumerate((each for each in ranked if each.timer.actor not in self.out), start=1)
        first, kept = islice(ranking, self.rules["timers"]["due_examined_max"]), []
        while any(map(self._has_turn, weights)):
            rank, each = next(first, (0, None))
            if each is None:
                break
            self.to_come[each.timer.actor] -= 1
            if self._present(each) is None:
                self.occurred.append("ranked timer cancelled")
            elif self._stops() or not self._examine(rank, each, within_slice=True):
                kept.append((rank, each))
        for rank, each in chain(kept, ranking):
            if each.timer.actor not in self.out and self._present(each) is not None and not self._stops():
                before = len(self.ranked)
                self._examine(rank, each, within_slice=False)
                self.occurred += [f"from the pool {found.outcome}" for found in self.ranked[before:]]
        self._note(ranked)
        return self.run_so_far

    def _gas_limits(self, actor: bytes) -> list[int]:
        return [timer.gas_limit for timer in self.joined_timers() if timer.actor == actor]

    def _has_turn(self, actor: bytes) -> bool:
        """Return whether an actor's slice may hold one of its timers to come; else the first walk is over."""
        return self.to_come[actor] > 0 and actor not in self.out and self.slices[actor] >= self.smallest[actor]

    def _note(self, ranked: list[Ranked]) -> None:
        self.occurred.append(f"stopped {self.stopped}")
        for before, after in pairwise(ranked):
            if before.tip == after.tip and before.weight > after.weight:
                self.occurred.append("tie broken by weight")
            if before.timer.terms.is_late and before.tip < after.tip:
                self.occurred.append("late before a higher tip")
        for each in self.ranked:
            self.occurred.append(f"bid {each.fee_source} {each.outcome}")

    def _slice(self, weight: int, total: int) -> int:
        return self.budget * weight // total

    def _present(self, each: Ranked) -> Timer | None:
        """Return the record, unless a fire of this block has cancelled it."""
        return next((timer for timer in self.world.timers if timer.timer_id == each.timer.timer_id), None)

    def _stops(self) -> bool:
        smallest = min((timer.gas_limit for timer in self.joined_timers()), default=0)
        if self.budget < smallest and not self._is_whole():
            self.stopped = "lane_full"
        elif self.cells < self.rules["timers"]["max_cells_per_fire"]:
            self.stopped = "cells_full"
        elif self.passed_over == self.own["passed_over_max"]:
            self.stopped = "passed_over_max"
        elif self.examined == self.rules["timers"]["due_examined_max"]:
            self.stopped = "examined_max"
        return self.stopped != "none_left"

    def _is_whole(self) -> bool:
        """Return whether no fire of the block has used anything: then its budget is there for any timer."""
        return bool(self.budget == self.own["budget_cycles"])

    def _examine(self, rank: int, each: Ranked, *, within_slice: bool) -> bool:
        """Fire or defer a timer; return False if it only does not fit its slice."""
        timer = self._present(each)
        if within_slice and timer.gas_limit > self.slices[timer.actor]:
            return False
        required = self._cost(timer)
        why = self._why_not(timer)
        if why == "unfunded" and not self.dead_left:
            self.occurred.append("owner left out")
            self.out.add(timer.actor)
            return True
        self.dead_left -= why == "unfunded"
        self.examined += why != "unfunded"
        if why:
            self._pass_over(rank, each, timer, why)
        elif timer.gas_limit > self.budget and not self._is_whole():
            self._pass_over(rank, each, timer, "lane_full")
        else:
            self._fire(rank, each, timer, required)
        return True

    def _pass_over(self, rank: int, each: Ranked, timer: Timer, reason: str) -> None:
        self.passed_over += reason == "lane_full"
        self.defer(timer, reason)
        self.ranked.append(self._examined(rank, each, "defer", reason, 0))

    def _fire(self, rank: int, each: Ranked, timer: Timer, required: int) -> None:
        self.actors[timer.actor] = self.actors[timer.actor]._replace(quiet_since=self.height)
        self.world.credit(timer.actor, -required)
        self.world.timers.remove(timer)
        if timer.fees == ASK:
            self.announce("gba.fallback", timer, agent=timer.terms.agent, reason="budget")
        receipt = self.fire(
            timer, timer.gas_limit, required, tip=each.tip, cell_tip=self._cell_tip(timer), asked=each.asked
        )
        self.run_so_far.append(receipt)
        self.occurred.append("tip for cells" if self._cell_tip(timer) else "no tip for cells")
        used = receipt.cycles_used
        self.budget -= used
        self.cells -= receipt.cells_used
        self.slices[timer.actor] -= used
        # Whose weight is behind counts in the epoch that its weight is of.
        state = self.actors[timer.actor]
        sums = self.sums.get(state.epoch, Sums())
        self.actors[timer.actor] = state._replace(
            fires=state.fires + 1,
            highest_tip=max(state.highest_tip, each.tip),
            cycles_used=state.cycles_used + used,
            takes_part=True,
        )
        self.sums[state.epoch] = Sums(max(sums.highest_tip, each.tip), sums.cycles_used + used)
        self.ranked.append(self._examined(rank, each, "fire", "", used))

    def _examined(self, rank: int, each: Ranked, outcome: str, reason: str, cycles: int) -> Examined:
        timer = each.timer
        facts = (timer.gas_limit, cycles, each.tip, each.weight, each.max_fee, each.source)
        return Examined(timer.timer_id, rank, outcome, reason, *facts)
