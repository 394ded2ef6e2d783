"""An engine that runs scripts instead of Python: every price is known beforehand, and no interpreter is involved.

It does, through the real host, what `tests.model.scripts` does on the model's dictionaries. Fixed prices are charged
here, as every engine does; what depends on values, the host charges.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tests.model.language import (
    IDS_SLOT,
    LOOP_CYCLES,
    Failed,
    Returned,
    answered,
    asks_facts,
    delivered,
    enveloped,
    id_at,
    priced,
    told,
    with_id,
)
from tests.model.world import Finder
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate
from trailboss.model.timers import TimerRequest
from trailboss.params import CostParams
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_ADDRESS, system_address
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.failures import exhaustion
from trailboss.vm.host import Host


class ScriptedEngine:
    """Runs sources in the language of `tests.model.scripts`."""

    def __init__(self, costs: CostParams, find: Finder) -> None:
        self._costs = costs
        self._find = find

    def version(self) -> str:
        """Return the engine's name and version."""
        return "scripted 1"

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Refuse what is not JSON."""
        try:
            json.loads(source)
        except ValueError as error:
            raise Rejection(RejectionReason.INVALID_DATA, f"the script is not JSON: {error}") from None

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names of the script's handlers."""
        return frozenset(json.loads(source))

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a handler to its end."""
        operations = json.loads(frame.source).get(frame.handler)
        if operations is None:
            return _failure(RejectionReason.HANDLER_NOT_FOUND, f"there is no handler {frame.handler}")
        try:
            _Run(self._costs, self._find, frame, host, meter).operations(operations)
        except Returned as returned:
            return FrameOutcome(returned.value, None)
        except Rejection as rejection:
            return FrameOutcome(b"", rejection.error())
        except Failed:
            return _failure(RejectionReason.PVM_ERROR, "the script fails")
        except OutOfGas:
            return FrameOutcome(b"", exhaustion(meter))
        return FrameOutcome(b"", None)

    def perform(self, action: Callable[[], Any]) -> Any:
        """Run an action here."""
        return action()

    def prepare(self) -> None:
        """Load nothing."""

    def close(self) -> None:
        """Release nothing."""


def _failure(reason: RejectionReason, what: str) -> FrameOutcome:
    error: ErrorObject = Rejection(reason, what).error()
    return FrameOutcome(b"", error)


class _Run:
    """One running frame."""

    def __init__(self, costs: CostParams, find: Finder, frame: Frame, host: Host, meter: Meter) -> None:
        self._costs = costs
        self._find = find
        self._frame = frame
        self._host = host
        self._meter = meter

    def operations(self, operations: list[list[Any]]) -> None:
        """Carry out operations in order."""
        for name, *args in operations:
            operation: Callable[..., None] = getattr(self, f"_op_{name}")
            operation(*args)

    def _op_charge(self, cycles: int) -> None:
        self._meter.charge_cycles(cycles)

    def _op_loop(self) -> None:
        while True:
            self._meter.charge_cycles(LOOP_CYCLES)

    def _op_fail(self) -> None:
        raise Failed

    def _op_return(self, value: str) -> None:
        raise Returned(bytes.fromhex(value))

    def _op_try(self, operations: list[list[Any]]) -> None:
        with suppress(Rejection):
            self.operations(operations)

    def _op_repeat(self, times: int, operations: list[list[Any]]) -> None:
        for _ in range(times):
            self.operations(operations)

    def _write(self, slot: bytes, value: bytes) -> None:
        self._meter.charge_cycles(self._costs.state_write)
        self._host.write_slot(slot, value)

    def _ids(self) -> bytes:
        self._meter.charge_cycles(self._costs.state_read)
        return self._host.read_slot(IDS_SLOT) or b""

    def _op_set(self, slot: str, value: str) -> None:
        self._write(slot.encode(), bytes.fromhex(value))

    def _op_delete(self, slot: str) -> None:
        self._meter.charge_cycles(self._costs.state_delete)
        self._host.delete_slot(slot.encode())

    def _op_transfer(self, who: str, amount: int) -> None:
        self._meter.charge_cycles(self._costs.transfer_balance)
        self._host.transfer(self._who(who), amount)

    def _op_emit(self, name: str, value: str) -> None:
        self._meter.charge_cycles(self._costs.event_emit)
        self._host.emit_event(name, bytes.fromhex(value))

    def _op_send(self, who: str, value: str) -> None:
        self._meter.charge_cycles(self._costs.message_send)
        self._host.send_message(self._who(who), bytes.fromhex(value))

    def _op_defer(self, handler: str, value: str) -> None:
        self._meter.charge_cycles(self._costs.message_send)
        self._host.defer_call(handler, bytes.fromhex(value))

    def _op_call(self, who: str, handler: str, value: str, cycles: int) -> None:
        self._meter.charge_cycles(self._costs.actor_call)
        self._host.call_actor(self._who(who), handler, bytes.fromhex(value), cycles)

    def _who(self, who: str) -> bytes:
        match who:
            case "self":
                return self._frame.actor
            case "sender":
                return self._sender()
            case "zero":
                return ZERO_ADDRESS
            case "system":
                return system_address(9)
        return self._find(who)

    def _sender(self) -> bytes:
        sender = self._host.context()["sender"]
        assert isinstance(sender, bytes)
        return sender

    def _op_answer(self, prices: dict[str, Any]) -> None:
        raise Returned(answered(prices, self._frame.payload, self._sender()))

    def _op_agent(self, who: str | None) -> None:
        self._meter.charge_cycles(self._costs.state_write)
        self._host.set_agent(None if who is None else self._who(who))

    def _lane(self) -> Mapping[str, object]:
        self._meter.charge_cycles(self._costs.context_read)
        return self._host.timer_lane()

    def _op_lane(self) -> None:
        octets = told(self._lane())
        self._meter.charge_cycles(self._costs.event_emit)
        self._host.emit_event("note", octets)

    def _height(self) -> int:
        self._meter.charge_cycles(self._costs.context_read)
        height = self._host.context()["block_height"]
        assert isinstance(height, int)
        return height

    def _op_schedule(self, delay: int, envelope: list[str], *request: Any) -> None:
        payer, gas_limit, life, *rest = request
        height = self._height()
        offer = rest[0] if rest else {}
        facts = self._lane() if asks_facts(offer) else {}
        prices = {name: priced(price, facts) for name, price in offer.items()}
        self._meter.charge_cycles(self._costs.timer_schedule)
        request = TimerRequest(
            height=height + delay,
            payload=enveloped(envelope),
            fee_payer=None if payer is None else self._who(payer),
            gas_limit=gas_limit,
            expires_at=None if life is None else height + life,
            max_fee_per_cycle=prices.get("max_fee"),
            max_priority_fee_per_cycle=prices.get("priority"),
            gas_bidding_agent=self._who(offer["gba"]) if "gba" in offer else None,
            has_bid="bid" in prices,
        )
        self._keep_id(self._host.schedule_timer(request))

    def _keep_id(self, timer_id: bytes) -> None:
        ids = self._ids()
        self._write(IDS_SLOT, with_id(ids, timer_id))

    def _which(self, which: int | str) -> bytes:
        return self._frame.payload if which == "payload" else id_at(self._ids(), int(which))

    def _op_extend(self, which: int | str, life: int) -> None:
        timer_id = self._which(which)
        height = self._height()
        self._meter.charge_cycles(self._costs.timer_extend)
        self._host.extend_timer(timer_id, height + life)

    def _op_cancel(self, which: int | str) -> None:
        timer_id = self._which(which)
        self._meter.charge_cycles(self._costs.timer_cancel)
        self._host.cancel_timer(timer_id)

    # The calls of the auction and of Globalbox

    def _op_timeout(self, delay: int, envelope: list[str], who: str, gas_limit: int | None) -> None:
        height = self._height()
        self._meter.charge_cycles(self._costs.timer_schedule)
        request = AuctionRequest(height + delay, enveloped(envelope), self._who(who), gas_limit)
        self._keep_id(self._host.market_call(calls.SET_TIMEOUT_AUCTION, request))

    def _op_aim(self, who: str, delay: int, *request: Any) -> None:
        height = self._height()
        self._set(request, height, target=self._who(who), due_height=height + delay)

    def _op_watch(self, who: str, keys: list[list[str]], *request: Any) -> None:
        watched = tuple(self._who(owner)[: int(width)] + bytes.fromhex(slot) for owner, slot, width in keys)
        self._set(request, self._height(), target=self._who(who), watch_keys=watched)

    def _set(self, request: tuple[Any, ...], height: int, **trigger: Any) -> None:
        envelope, gas_limit, bid, life, nonce = request
        self._meter.charge_cycles(self._costs.timer_schedule)
        wanted = GlobalboxRequest(
            **trigger,
            payload=enveloped(envelope),
            gas_limit=gas_limit,
            bid=bid,
            expiry_height=None if life is None else height + life,
            client_nonce=bytes.fromhex(nonce),
        )
        self._keep_id(
            self._host.market_call(
                calls.SET_STATE_WATCH if "watch_keys" in trigger else calls.SET_TIMEOUT_GLOBALBOX, wanted
            )
        )

    def _op_update(self, who: str, which: int | str, changes: dict[str, Any]) -> None:
        timer_id = self._which(which)
        self._meter.charge_cycles(self._costs.timer_extend)
        payload = enveloped(changes["envelope"]) if "envelope" in changes else None
        update = GlobalboxUpdate(self._who(who), timer_id, payload, changes.get("gas"), changes.get("bid"))
        self._note(self._host.market_call(calls.UPDATE, update))

    def _op_drop(self, who: str, which: int | str) -> None:
        timer_id = self._which(which)
        self._meter.charge_cycles(self._costs.timer_cancel)
        self._note(self._host.market_call(calls.CANCEL_GLOBALBOX, (self._who(who), timer_id)))

    def _op_delivery(self) -> None:
        self._meter.charge_cycles(self._costs.context_read)
        self._op_emit("delivery", delivered(self._host.context()).hex())

    def _note(self, answer: bool) -> None:
        self._op_emit("note", bytes([answer]).hex())
