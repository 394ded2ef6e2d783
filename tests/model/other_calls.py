"""The model's interpreter for chains whose actors have other calls than CIP-5's. Decision: D-56."""

from typing import Any

from tests.model.language import IDS_SLOT, Frame, asks_facts, with_id
from tests.model.scripts import Interpreter
from tests.model.world import Meter, Refused, Timer

UNSUPPORTED = 1209
UNSUPPORTED_INSTRUCTION = 1212
NOTE = "note"


class OtherCalls(Interpreter):
    """Charges the calls of CIP-5 and refuses them; what stays is to cancel."""

    is_succeeded_by_lane = False

    def _op_schedule(self, _: Frame, meter: Meter, *request: Any) -> None:
        meter.use(self.costs["context_read"])
        if request[6:] and asks_facts(request[6]):
            self._lane(meter)
        meter.use(self.costs["timer_schedule"])
        raise Refused(UNSUPPORTED)

    def _op_extend(self, frame: Frame, meter: Meter, which: int | str, _: int) -> None:
        self._which(frame, meter, which)
        meter.use(self.costs["context_read"] + self.costs["timer_extend"])
        raise Refused(UNSUPPORTED)

    def _op_agent(self, _: Frame, meter: Meter, __: str | None) -> None:
        meter.use(self.costs["state_write"])
        raise Refused(UNSUPPORTED)

    def extend(self, timer_id: bytes, expires_at: int, actor: bytes | None) -> None:
        """Refuse governance, too: these timers end when it was said, or never."""
        raise Refused(UNSUPPORTED_INSTRUCTION)

    def count_nonce(self, actor: bytes) -> int:
        """Count one more timer that an actor has set, and return how many there were."""
        nonce = self.world.account(actor).timer_nonce
        self.world.change(actor, timer_nonce=nonce + 1)
        return nonce

    def add(self, timer: Timer, **more: Any) -> None:
        """Let a timer live, and tell it."""
        self.world.timers.append(timer)
        self.world.totals["scheduled"] += 1
        shown = {name: getattr(timer, name) for name in ("height", "handler", "fee_payer", "gas_limit", "expires_at")}
        self._tell("timer.scheduled", timer, **shown, **more)

    def keep_id(self, frame: Frame, meter: Meter, timer_id: bytes) -> None:
        """Put an id on the actor's own list."""
        ids = self._ids(frame, meter)
        self._write(frame, meter, IDS_SLOT, with_id(ids, timer_id))

    def note(self, frame: Frame, meter: Meter, *, answer: bool) -> None:
        """Emit what a call has answered."""
        self._op_emit(frame, meter, NOTE, bytes([answer]).hex())
