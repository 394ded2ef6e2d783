"""The little language of actors in these histories, and the model's own interpreter of it.

A source is JSON: ``{handler name: [operation, ...]}``. An operation is a list whose first item names it:

```text
["charge", cycles]                  ["set", slot, value]           ["delete", slot]
["schedule", delay, envelope, payer, gas limit or null, TTL or null]
["extend", which, TTL]              ["cancel", which]              which: a place in the actor's own list of ids,
["transfer", who, amount]           ["emit", name, value]                 or "payload": the id in the payload
["send", who, value]                ["call", who, handler, value, cycles]
["try", [operation, ...]]           ["repeat", times, [operation, ...]]
["return", value]                   ["fail"]                       ["loop"]
```

Values are hexadecimal. An envelope is ``["raw", value]``, ``["cbor", handler, value]`` or ``["json", handler, value]``.
``who`` is "self", "sender" (the immediate caller), "zero", "system", or "@name" of an account. A payer may be null.
An actor keeps the ids of its latest timers in the slot ``ids``.
"""

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import cbor2

from tests.model.envelopes import routed
from tests.model.world import Event, Exhausted, Finder, Message, Meter, Refused, Timer, World, keccak256

IDS_SLOT = b"ids"
IDS_KEPT = 4
ID_WIDTH = 32
LOOP_CYCLES = 1_000
NO_TIMER = bytes(ID_WIDTH)


class Failed(Exception):
    """The operation "fail": an exception leaves the handler."""


class Returned(Exception):
    """The operation "return"."""

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self.value = value


class Frame(NamedTuple):
    """One execution of one handler."""

    actor: bytes
    handler: str
    payload: bytes
    sender: bytes
    signer: bytes
    depth: int = 0


class Ending(NamedTuple):
    """How a frame ended."""

    value: bytes
    code: int | None


def enveloped(envelope: list[str]) -> bytes:
    """Return the payload that an operation "schedule" hands to the chain."""
    kind, *rest = envelope
    if kind == "raw":
        return bytes.fromhex(rest[0])
    handler, value = rest[0], bytes.fromhex(rest[1])
    if kind == "cbor":
        return cbor2.dumps({"_handler": handler, "_payload": value}, canonical=True)
    return json.dumps({"_handler": handler, "_payload": base64.b64encode(value).decode()}).encode()


def id_at(ids: bytes, place: int) -> bytes:
    """Return the id at a place, counted modulo their number; an id of nobody's if there are none."""
    count = len(ids) // ID_WIDTH
    if not count:
        return NO_TIMER
    start = place % count * ID_WIDTH
    return ids[start : start + ID_WIDTH]


def with_id(ids: bytes, timer_id: bytes) -> bytes:
    """Return the list of ids with one more; the oldest make room."""
    return (ids + timer_id)[-IDS_KEPT * ID_WIDTH :]


class Interpreter:
    """Runs frames on a world. One for each block, since rules hold for a block."""

    def __init__(self, world: World, height: int, params: dict[str, dict[str, int]], find: Finder) -> None:
        self.world = world
        self.height = height
        self.costs = params["costs"]
        self.limits = params["limits"]
        self.timers = params["timers"]
        self.band = params["governance"]["reserved_band_max"]
        self.governance = params["governance"]["governance_actor"].to_bytes(20, "big")
        self.find = find

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

    def _op_try(self, frame: Frame, meter: Meter, operations: list[list[Any]]) -> None:
        with suppress(Refused):
            self._operations(operations, frame, meter)

    def _op_repeat(self, frame: Frame, meter: Meter, times: int, operations: list[list[Any]]) -> None:
        for _ in range(times):
            self._operations(operations, frame, meter)

    # State and money

    def _write(self, frame: Frame, meter: Meter, slot: bytes, value: bytes) -> None:
        meter.use(self.costs["state_write"])
        meter.use(cells=len(slot) + len(value))
        self.world.slots[frame.actor, slot] = value

    def _ids(self, frame: Frame, meter: Meter) -> bytes:
        meter.use(self.costs["state_read"])
        return self.world.slots.get((frame.actor, IDS_SLOT), b"")

    def _op_set(self, frame: Frame, meter: Meter, slot: str, value: str) -> None:
        self._write(frame, meter, slot.encode(), bytes.fromhex(value))

    def _op_delete(self, frame: Frame, meter: Meter, slot: str) -> None:
        meter.use(self.costs["state_delete"])
        self.world.slots.pop((frame.actor, slot.encode()), None)

    def _op_transfer(self, frame: Frame, meter: Meter, who: str, amount: int) -> None:
        meter.use(self.costs["transfer_balance"])
        self.world.move(frame.actor, self._who(frame, who), amount)

    def _op_emit(self, frame: Frame, meter: Meter, name: str, value: str) -> None:
        octets = bytes.fromhex(value)
        meter.use(self.costs["event_emit"])
        meter.use(cells=len(name.encode()) + len(octets))
        self.world.events.append(Event(name, frame.actor, octets))

    def _op_send(self, frame: Frame, meter: Meter, who: str, value: str) -> None:
        payload = bytes.fromhex(value)
        meter.use(self.costs["message_send"])
        target = self._who(frame, who)
        if sum(message.target == target for message in self.world.messages) >= self.limits["messages_pending_max"]:
            raise Refused(1226)
        meter.use(cells=len(payload))
        self.world.messages.append(Message(frame.actor, target, payload))
        self.world.events.append(Event("message.sent", frame.actor, {"target": target, "size": len(payload)}))

    def _op_call(self, frame: Frame, meter: Meter, who: str, *request: Any) -> None:
        handler, value, cycles = request
        meter.use(self.costs["actor_call"])
        if frame.depth + 1 > self.limits["call_depth_max"]:
            raise Refused(1205)
        left = [limit - used for limit, used in zip(meter.limits, (meter.cycles, meter.cells), strict=True)]
        inner = Meter(min(cycles, left[0]), left[1])
        target = self._who(frame, who)
        sender = frame.sender if target == frame.actor else frame.actor
        callee = Frame(target, handler, bytes.fromhex(value), sender, frame.signer, frame.depth + 1)
        ending = self.run(callee, inner)
        meter.use(*inner.used())
        if ending.code is not None:
            raise Refused(1203 if ending.code == 1220 else 1210)

    def _who(self, frame: Frame, who: str) -> bytes:
        fixed = {"self": frame.actor, "sender": frame.sender, "zero": bytes(20), "system": bytes(19) + b"\x09"}
        return fixed[who] if who in fixed else self.find(who)

    # Timers

    def _op_schedule(self, frame: Frame, meter: Meter, *request: Any) -> None:
        delay, envelope, payer, gas_limit, life = request
        payload = enveloped(envelope)
        meter.use(self.costs["context_read"])
        meter.use(self.costs["timer_schedule"])
        timer = self._accepted(
            frame,
            meter,
            self.height + delay,
            payload,
            payer=frame.actor if payer is None else self._who(frame, payer),
            gas_limit=self.timers["max_cycles_per_fire"] if gas_limit is None else gas_limit,
            expires_at=self.height + (self.timers["max_ttl_blocks"] if life is None else life),
        )
        self.world.timers.append(timer)
        self.world.totals["scheduled"] += 1
        told = ("height", "handler", "fee_payer", "gas_limit", "expires_at")
        self._tell("timer.scheduled", timer, **{name: getattr(timer, name) for name in told})
        ids = self._ids(frame, meter)
        self._write(frame, meter, IDS_SLOT, with_id(ids, timer.timer_id))

    def _accepted(
        self, frame: Frame, meter: Meter, height: int, payload: bytes, *, payer: bytes, gas_limit: int, expires_at: int
    ) -> Timer:
        """Return the timer if every rule of CIP-5 §4.2 allows it."""
        fits = (
            height > self.height,
            len(payload) <= self.timers["payload_bytes_max"],
            payer in (frame.actor, frame.signer),
            not 0 <= int.from_bytes(payer, "big") <= self.band,
            0 < gas_limit <= self.timers["max_cycles_per_fire"],
            self.height < expires_at <= self.height + self.timers["max_ttl_blocks"],
        )
        if not all(fits):
            raise Refused(1202)
        if sum(timer.actor == frame.actor for timer in self.world.timers) >= self.timers["max_timers_per_actor"]:
            raise Refused(1501)
        meter.use(cells=len(payload) + self.costs["timer_index_cells"])
        nonce = self.world.account(frame.actor).timer_nonce
        self.world.change(frame.actor, timer_nonce=nonce + 1)
        timer_id = keccak256(frame.actor + height.to_bytes(8, "big") + payload + nonce.to_bytes(8, "big"))
        handler, inner = routed(payload)
        sequence = self.world.totals["scheduled"]
        return Timer(frame.actor, height, timer_id, sequence, handler, inner, payer, gas_limit, expires_at, self.height)

    def _tell(self, name: str, timer: Timer, **fields: Any) -> None:
        emitter = self.governance if name.endswith("_by_governance") else timer.actor
        self.world.events.append(Event(name, emitter, {"timer_id": timer.timer_id, **fields}, timer.timer_id))

    def _which(self, frame: Frame, meter: Meter, which: int | str) -> bytes:
        return frame.payload if which == "payload" else id_at(self._ids(frame, meter), int(which))

    def _op_extend(self, frame: Frame, meter: Meter, which: int | str, life: int) -> None:
        timer_id = self._which(frame, meter, which)
        meter.use(self.costs["context_read"])
        meter.use(self.costs["timer_extend"])
        self.extend(timer_id, self.height + life, frame.actor)

    def extend(self, timer_id: bytes, expires_at: int, actor: bytes | None) -> None:
        """Move a timer's expiry, for its owner or, without an actor, for governance. Spec: CIP-5 §5.4."""
        if expires_at <= self.height:
            raise Refused(1202)
        for timer in self.world.timers:
            if timer.timer_id == timer_id:
                if max(timer.height, timer.expires_at + 1) < self.height:
                    return  # The block before found it due and expired: still expired is still expired.
                if actor is not None and timer.actor != actor:
                    raise Refused(1503)
                ceiling = self.height + self.timers["max_ttl_blocks"]
                extended = timer._replace(expires_at=min(expires_at, ceiling))
                self.world.replace_timer(timer, extended)
                name = "timer.extended" if actor is not None else "timer.extended_by_governance"
                self._tell(name, timer, expires_at=extended.expires_at)
                return

    def _op_cancel(self, frame: Frame, meter: Meter, which: int | str) -> None:
        timer_id = self._which(frame, meter, which)
        meter.use(self.costs["timer_cancel"])
        self.cancel(timer_id, frame.actor)

    def cancel(self, timer_id: bytes, actor: bytes | None) -> None:
        """Cancel a timer, for its owner or, without an actor, for governance. Spec: CIP-5 §5.4. Decision: D-07."""
        waiting = [(timer, 0) for timer in self.world.timers] + self.world.paid
        for timer, paid in waiting:
            if timer.timer_id == timer_id:
                if actor is not None and timer.actor != actor:
                    raise Refused(1503)
                self.world.timers = [other for other in self.world.timers if other != timer]
                self.world.paid = [other for other in self.world.paid if other[0] != timer]
                self.world.owed.append((timer.fee_payer, paid))
                self.world.totals["cancelled"] += 1
                name = "timer.cancelled" if actor is not None else "timer.cancelled_by_governance"
                self._tell(name, timer, refund=paid)
                return
