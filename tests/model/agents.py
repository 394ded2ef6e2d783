"""What timers offer in the slow model of the lane: frozen fees, the default agent's, or their actor's own agent's."""

from typing import Any, NamedTuple

import cbor2

from tests.model.fifo import FifoBlocks
from tests.model.language import Frame
from tests.model.world import ASK, NAMED, Meter, Timer

PRICE_MAX = 2**127 - 1
ANSWER = {"max_fee_per_cycle", "max_priority_fee_per_cycle"}
CELL_ANSWER = {"max_fee_per_cell", "max_priority_fee_per_cell"}
FAILURES = {1005: "out_of_cycles", 1006: "out_of_cells"}


class Offer(NamedTuple):
    """What a timer offers in a block: fees per cycle, where they come from, what asking has used, fees per cell."""

    max_fee: int
    priority: int
    source: str
    asked: int = 0
    cells: tuple[int, int] | None = None


def cell_tip(fees: tuple[int, int] | None, basefee: int) -> int:
    """Return what is left of a cap for a cell, at most the tip; negative if it is too little. Decision: D-86."""
    return 0 if fees is None else min(fees[1], fees[0] - basefee)


def asks(timer: Timer) -> bool:
    """Return whether an agent prices a timer."""
    return timer.fees == ASK or isinstance(timer.fees, NAMED)


class AskingBlocks(FifoBlocks):
    """What due timers offer in a block. Spec: CIP-1v3 §7."""

    def _default(self, source: str, asked: int = 0) -> Offer:
        """Return what the default agent offers. Spec: CIP-1v3 §7.1."""
        return Offer(2 * self.terms.basefee, self.terms.previous_tip, source, asked)

    def _budget(self) -> int:
        """Return the cycles of all questions of the block. Decision: D-17."""
        return self.rules["lane"]["gba_cycles_per_block"]

    def offers(self, timers: list[Timer]) -> list[tuple[Timer, Offer]]:
        """Return what each timer offers in this block. Decision: D-16, D-17."""
        offers = []
        left = self._budget()
        for timer in sorted(timers, key=self._asking_order):
            if asks(timer) and left >= self.rules["lane"]["gba_cycles_max"]:
                offers.append(self._ask(timer))
                left -= offers[-1][1].asked
            elif asks(timer):
                offers.append((timer, self._default("fallback")))
            elif timer.fees == ():
                offers.append((timer, self._default("default")))
            else:
                offers.append((timer, Offer(*timer.fees, "frozen")))
        self.shown["agent_cycles"] = sum(offer.asked for _, offer in offers)
        return offers

    def _asking_order(self, timer: Timer) -> Any:
        """The timers of the block's own height are asked about first, and then the oldest."""
        return timer.height != self.height, timer.height, timer.sequence

    def _ask(self, timer: Timer) -> tuple[Timer, Offer]:
        """Ask the agent of a timer's actor; nothing that it does remains. Spec: CIP-1v3 §7.2."""
        meter = Meter(self.rules["lane"]["gba_cycles_max"], self.rules["timers"]["max_cells_per_fire"])
        owner = self.world.account(timer.actor)
        agent = timer.fees if isinstance(timer.fees, NAMED) else owner.agent
        self.occurred.append("own agent asked" if agent == timer.fees else "agent of the actor asked")
        if not agent:
            meter.use(self.rules["costs"]["frame_base"])
            return self._fall_back(timer, b"", "no_agent", meter)
        facts = {
            "trigger_block_height": timer.height,
            "current_block_height": self.height,
            "basefee_cycle": self.terms.cycle_price,
            "basefee_cell": self.terms.cell_price,
            "basefee_lane_timer": self.terms.basefee,
            "last_block_cycle_usage": self.terms.last_used,
            "previous_block_p50_priority_tip_per_cycle": self.terms.previous_tip,
            "owner_actor_balance": owner.balance,
        }
        context = cbor2.dumps(facts, canonical=True)
        frame = Frame(agent, "get_gas_bid", context, timer.actor, timer.actor, read_only=True)
        before = self.world.copy()
        ending = self.interpreter.run(frame, meter)
        self.world.become(before)
        if ending.code is not None:
            return self._fall_back(timer, agent, FAILURES.get(ending.code, "failed"), meter)
        fees = self._read_answer(ending.value)
        if fees is None:
            return self._fall_back(timer, agent, "malformed", meter)
        return timer, Offer(*fees[:2], "agent", meter.used()[0], fees[2])

    def _fall_back(self, timer: Timer, agent: bytes, reason: str, meter: Meter) -> tuple[Timer, Offer]:
        """Let the default agent price a timer for good."""
        fallen = timer._replace(fees=())
        self.world.replace_timer(timer, fallen)
        self.announce("gba.fallback", timer, agent=agent, reason=reason)
        return fallen, self._default("fallback", meter.used()[0])

    def _read_answer(self, octets: bytes) -> tuple[int, int, tuple[int, int] | None] | None:
        """Return the fees of an answer, or None if it is malformed."""
        try:
            answer = cbor2.loads(octets)
            is_canonical = cbor2.dumps(answer, canonical=True) == octets
        except (cbor2.CBORError, ValueError, TypeError):
            return None
        if not is_canonical or not isinstance(answer, dict) or not set(answer) >= ANSWER:
            return None
        if not set(answer) <= ANSWER | CELL_ANSWER:
            return None
        if any(type(price) is not int or not 0 <= price <= PRICE_MAX for price in answer.values()):
            return None
        max_fee, priority = answer["max_fee_per_cycle"], answer["max_priority_fee_per_cycle"]
        cells = answer.get("max_fee_per_cell", 0), answer.get("max_priority_fee_per_cell", 0)
        if priority > max_fee or cells[1] > cells[0]:
            return None
        return max_fee, priority, cells if "max_fee_per_cell" in answer else None
