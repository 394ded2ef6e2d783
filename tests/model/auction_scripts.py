"""What actors ask of the auction in the slow model, and what it answers. Spec: CIP-1v1 §3, §4.1."""

from typing import Any, NamedTuple

from tests.model.envelopes import routed
from tests.model.language import Frame, enveloped
from tests.model.other_calls import OtherCalls
from tests.model.timer_scripts import check_writable
from tests.model.world import ASK, Meter, Refused, Timer, keccak256

NEVER = 2**64 - 1


class AuctionTerms(NamedTuple):
    """What a timer of the auction has besides."""

    agent: bytes
    asked_at: int = 0
    is_late: bool = False


class AuctionInterpreter(OtherCalls):
    """Sets timers of the auction."""

    has_weights = True

    def _op_timeout(self, frame: Frame, meter: Meter, *request: Any) -> None:
        """Set a timer. Spec: CIP-1v1 §3, §4.1."""
        delay, envelope, who, gas_limit = request
        payload, agent, height = enveloped(envelope), self._who(frame, who), self.height + delay
        meter.use(self.costs["context_read"] + self.costs["timer_schedule"])
        check_writable(frame)
        gas_limit = self.timers["max_cycles_per_fire"] if gas_limit is None else gas_limit
        live = sum(timer.actor == frame.actor for timer in self.world.timers)
        checks = (
            (1202, self.height < height <= NEVER),
            (1202, len(payload) <= self.timers["payload_bytes_max"]),
            (1203, self.world.account(agent).source is not None),
            (1202, self.costs["frame_base"] <= gas_limit <= self.timers["max_cycles_per_fire"]),
            (1501, live < self.timers["max_timers_per_actor"]),
        )
        for code, holds in checks:
            if not holds:
                raise Refused(code)
        meter.use(cells=len(payload) + self.costs["timer_index_cells"])
        nonce = self.count_nonce(frame.actor)
        timer = Timer(
            actor=frame.actor,
            height=height,
            timer_id=keccak256(frame.actor + height.to_bytes(8, "big") + payload + nonce.to_bytes(8, "big")),
            sequence=self.world.totals["scheduled"],
            handler=routed(payload)[0],
            payload=routed(payload)[1],
            fee_payer=frame.actor,
            gas_limit=gas_limit,
            expires_at=NEVER,
            schedule_block=self.height,
            fees=ASK,
            terms=AuctionTerms(agent),
        )
        self.add(timer, gba=agent)
        self.keep_id(frame, meter, timer.timer_id)
