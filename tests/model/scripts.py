"""The model's own interpreter of scripts: control, state, money and messages."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.model.language import LOOP_CYCLES, Ending, Failed, Frame, Returned, answered
from tests.model.timer_scripts import FORBIDDEN, TimerScripts, check_writable
from tests.model.world import Deferred, Event, Exhausted, Message, Meter, Refused


class Interpreter(TimerScripts):
    """Runs frames on a world. One for each block, since rules hold for a block."""

    def run(self, frame: Frame, meter: Meter) -> Ending:
        """Run a handler; the world keeps what it did only if it ends well."""
        before = self.world.copy()
        try:
            value = self._enter(frame, meter)
        except Refused as refusal:
            code = refusal.code
        except Failed:
            code = 1210
        except Exhausted:
            code = meter.code()
        else:
            return Ending(value, None)
        self.world.become(before)
        return Ending(b"", code)

    def _enter(self, frame: Frame, meter: Meter) -> bytes:
        meter.use(self.costs["frame_base"])
        source = self.world.account(frame.actor).source
        if source is None:
            raise Refused(1220)
        operations = json.loads(source).get(frame.handler)
        if operations is None:
            raise Refused(1223)
        try:
            self._operations(operations, frame, meter)
        except Returned as returned:
            return returned.value
        return b""

    def _operations(self, operations: list[list[Any]], frame: Frame, meter: Meter) -> None:
        for name, *args in operations:
            operation: Callable[..., None] = getattr(self, f"_op_{name}")
            operation(frame, meter, *args)

    # Control

    def _op_charge(self, _: Frame, meter: Meter, cycles: int) -> None:
        meter.use(cycles)

    def _op_loop(self, _: Frame, meter: Meter) -> None:
        while True:
            meter.use(LOOP_CYCLES)

    def _op_fail(self, *_: object) -> None:
        raise Failed

    def _op_return(self, _: Frame, __: Meter, value: str) -> None:
        raise Returned(bytes.fromhex(value))

    def _op_answer(self, frame: Frame, _: Meter, prices: dict[str, Any]) -> None:
        raise Returned(answered(prices, frame.payload, frame.sender))

    def _op_try(self, frame: Frame, meter: Meter, operations: list[list[Any]]) -> None:
        with suppress(Refused):
            self._operations(operations, frame, meter)

    def _op_repeat(self, frame: Frame, meter: Meter, times: int, operations: list[list[Any]]) -> None:
        for _ in range(times):
            self._operations(operations, frame, meter)

    # State and money

    def _op_set(self, frame: Frame, meter: Meter, slot: str, value: str) -> None:
        self._write(frame, meter, slot.encode(), bytes.fromhex(value))

    def _op_delete(self, frame: Frame, meter: Meter, slot: str) -> None:
        meter.use(self.costs["state_delete"])
        check_writable(frame)
        self.world.slots.pop((frame.actor, slot.encode()), None)

    def _op_transfer(self, frame: Frame, meter: Meter, who: str, amount: int) -> None:
        meter.use(self.costs["transfer_balance"])
        check_writable(frame)
        self.world.move(frame.actor, self._who(frame, who), amount)

    def _op_emit(self, frame: Frame, meter: Meter, name: str, value: str) -> None:
        octets = bytes.fromhex(value)
        meter.use(self.costs["event_emit"])
        check_writable(frame)
        meter.use(cells=len(name.encode()) + len(octets))
        self.world.events.append(Event(name, frame.actor, octets))

    def _op_send(self, frame: Frame, meter: Meter, who: str, value: str) -> None:
        payload = bytes.fromhex(value)
        meter.use(self.costs["message_send"])
        check_writable(frame)
        target = self._who(frame, who)
        if sum(message.target == target for message in self.world.messages) >= self.limits["messages_pending_max"]:
            raise Refused(1226)
        meter.use(cells=len(payload))
        self.world.messages.append(Message(frame.actor, target, payload))
        self.world.events.append(Event("message.sent", frame.actor, {"target": target, "size": len(payload)}))

    def _op_defer(self, frame: Frame, meter: Meter, handler: str, value: str) -> None:
        """Call oneself in the next block, on what is left of the gas then. Decision: D-88."""
        payload = bytes.fromhex(value)
        meter.use(self.costs["message_send"])
        check_writable(frame)
        if sum(waiting.actor == frame.actor for waiting in self.world.deferred) >= self.limits["messages_pending_max"]:
            raise Refused(1226)
        if meter.limits[0] - meter.cycles < self.costs["frame_base"]:
            raise Refused(1502)
        meter.use(cells=len(handler) + len(payload))
        self.world.deferred.append(Deferred(frame.actor, handler, payload, self.height))
        self.world.events.append(Event("deferred.created", frame.actor, {"handler": handler, "size": len(payload)}))

    def _op_call(self, frame: Frame, meter: Meter, who: str, *request: Any) -> None:
        handler, value, cycles = request
        meter.use(self.costs["actor_call"])
        if frame.depth + 1 > self.limits["call_depth_max"]:
            raise Refused(FORBIDDEN)
        left = [limit - used for limit, used in zip(meter.limits, (meter.cycles, meter.cells), strict=True)]
        inner = Meter(min(cycles, left[0]), left[1])
        target = self._who(frame, who)
        sender = frame.sender if target == frame.actor else frame.actor
        callee = frame._replace(
            actor=target, handler=handler, payload=bytes.fromhex(value), sender=sender, depth=frame.depth + 1
        )
        ending = self.run(callee, inner)
        meter.use(*inner.used())
        if ending.code is not None:
            raise Refused(1203 if ending.code == 1220 else 1210)
