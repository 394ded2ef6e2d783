"""Frames: running a handler of an actor, and `ChainHost`, the answers that the chain gives to the running frame."""

from collections.abc import Mapping
from typing import Final

import msgspec

from trailboss.codec.canonical import encode_canonical
from trailboss.crypto.digest import domain_digest
from trailboss.execution import timers
from trailboss.execution.checks import check_agent, check_entitled, check_size, gas_limit_bounds, invalid, no_actor
from trailboss.execution.development import mocked_outcome
from trailboss.execution.mailbox import defer_call, send_message
from trailboss.execution.session import Scope
from trailboss.execution.upgrades import replace_code
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import calls
from trailboss.model.actors import SELF_UPGRADE
from trailboss.model.events import AGENT_SET, PROTOCOL_TOPICS, EventRecord
from trailboss.model.timers import TimerRequest
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.state.keys import storage_key
from trailboss.state.slots import decode_slot, encode_slot
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.failures import exhaustion, traceback_of


class ChainHost(msgspec.Struct, frozen=True, gc=False):
    """The `trailboss.vm.host.Host` of one frame."""

    scope: Scope
    frame: Frame
    sender: bytes  # immediate caller, 20 bytes
    meter: Meter

    def context(self) -> Mapping[str, object]:
        """Return the facts of this execution. Source: cowboy-facts §2.1. Spec: CIP-5old §9.1. Decision: D-83."""
        session = self.scope.session
        block = session.context
        return {
            "chain_id": block.chain_id,
            "chain_instance_id": block.chain_instance_id,
            "pvm_version": session.engine.version(),
            "sender": bytes(self.sender),
            "actor_addr": bytes(self.frame.actor),
            "tx_hash": bytes(self.scope.envelope.origin_hash),
            "block_height": block.height,
            "timestamp_ms": block.timestamp_ms,
            "hire_id": None,
            **self.scope.envelope.facts(),
        }

    def height(self) -> int:
        """Return the height of the block."""
        return self.scope.session.context.height

    def read_slot(self, slot: bytes) -> bytes | None:
        """Return the value of a slot of the running actor, or None."""
        record = self.scope.session.overlay.read(storage_key(self.frame.actor, slot))
        return None if record is None else decode_slot(record)[1]

    def write_slot(self, slot: bytes, content: bytes) -> None:
        """Write a slot; every byte of name and value is a cell. Spec: CIP-5 §6.1."""
        # CHECK
        self._check_writable("set_state")
        limits = self.scope.session.context.rules.params.limits
        check_size("slot name", len(slot), limits.slot_bytes_max)
        check_size("slot value", len(content), limits.slot_value_bytes_max, least=0)
        # CHARGE
        self.meter.charge_cells(len(slot) + len(content))
        # RUN
        self.scope.session.overlay.write(storage_key(self.frame.actor, slot), encode_slot(slot, content))

    def delete_slot(self, slot: bytes) -> None:
        """Delete a slot; nothing happens if it is not there."""
        self._check_writable("delete_state")
        self.scope.session.overlay.delete(storage_key(self.frame.actor, slot))

    def scan_slots(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return slots by prefix; every byte returned is a cell. Source: cowboy-facts §2.2."""
        rows = self.scope.session.overlay.scan(self.frame.actor, prefix, limit)
        self.meter.charge_cells(sum(len(slot) + len(content) for slot, content in rows))
        return rows

    def has_call(self, form: str) -> bool:
        """Return whether the chain's mechanism has a call about timers. Decision: D-56."""
        return calls.is_had(form, self.scope.session.context.calls)

    def schedule_timer(self, request: TimerRequest, form: str = calls.SCHEDULE) -> bytes:
        """Accept a timer. Spec: CIP-5 §4.1."""
        self._check_change(form)
        check_entitled(self.scope, self.frame)
        return timers.schedule_timer(self.scope, self.frame.actor, request, self.meter)

    def extend_timer(self, timer_id: bytes, expires_at: int) -> None:
        """Move a timer's last height. Spec: CIP-5 §4.1."""
        self._check_change(calls.EXTEND)
        timers.extend_timer(self.scope, timer_id, expires_at, self.frame.actor)

    def cancel_timer(self, timer_id: bytes) -> None:
        """Cancel a timer. Spec: CIP-5 §4.1."""
        self._check_change(calls.CANCEL)
        timers.cancel_timer(self.scope, timer_id, self.frame.actor)

    def market_call(self, form: str, request: object) -> bytes | bool:
        """Make a call that only some markets have. Decision: D-56."""
        self._check_change(form)
        if form in calls.SETTING:
            check_entitled(self.scope, self.frame)
        return self.scope.session.hooks.calls[form](self.scope, self.frame.actor, request, self.meter)

    def set_agent(self, agent: bytes | None) -> None:
        """Set the actor that prices this actor's timers from now on, or none. Spec: CIP-1v3 §7. Decision: D-17."""
        # CHECK
        self._check_change(calls.SET_AGENT)
        ledger = self.scope.session.ledger
        if agent is not None:
            check_agent(ledger, agent)
        # RUN
        stated = b"" if agent is None else agent
        ledger.put(self.frame.actor, msgspec.structs.replace(ledger.account(self.frame.actor), agent=stated))
        data = encode_canonical({"agent": stated})
        self.scope.effects.append(EventRecord(AGENT_SET, self.frame.actor, data))

    def timer_lane(self) -> Mapping[str, object]:
        """Return the timer lane's prices and limits in this block. Spec: CIP-1v3 §7.2, CIP-1v3 §7.3."""
        block = self.scope.session.context
        rules, lane = block.rules, block.rules.params.lane
        cycle_basefee, cell_basefee = rules.timer_basefees()
        return {
            "active": rules.market.rule is not None,
            "basefee_lane_timer": rules.market.basefee,
            "basefee_cycle": cycle_basefee,
            "basefee_cell": cell_basefee,
            "previous_block_p50_priority_tip_per_cycle": rules.market.previous_tip,
            "last_block_cycle_usage": block.parent_cycles_used,
            "max_cycles_per_fire": gas_limit_bounds(rules)[1],
            "priority_tier_multipliers": {
                "economy": lane.tier_economy,
                "standard": lane.tier_standard,
                "fast": lane.tier_fast,
                "urgent": lane.tier_urgent,
            },
            "priority_tier_unit": rules.params.fees.lane_multiplier_unit,
        }

    def emit_event(self, name: str, octets: bytes) -> int:
        """Emit an event; every byte of name and data is a cell. Source: cowboy-facts §2.5."""
        # CHECK
        self._check_writable("emit_event")
        limits = self.scope.session.context.rules.params.limits
        topic = name.encode()
        check_size("event name", len(topic), limits.event_name_bytes_max)
        if name in PROTOCOL_TOPICS:
            raise invalid(f"event name {name} is the chain's own; an actor's has another", name=name)
        check_size("event data", len(octets), limits.event_bytes_max, least=0)
        # CHARGE
        self.meter.charge_cells(len(topic) + len(octets))
        # RUN
        self.scope.effects.append(EventRecord(name, self.frame.actor, octets))
        self.scope.emitted += 1
        return self.scope.emitted

    def send_message(self, target: bytes, payload: bytes) -> None:
        """Send a message. Decision: D-42."""
        self._check_writable("send_message")
        send_message(self.scope, self.frame.actor, target, payload, self.meter)

    def defer_call(self, handler: str, payload: bytes) -> None:
        """Call a handler of the running actor in the next block. Decision: D-88."""
        self._check_writable("create_deferred_tx")
        defer_call(self.scope, self.frame.actor, handler, payload, self.meter)

    def call_actor(self, target: bytes, handler: str, payload: bytes, cycles_limit: int) -> bytes:
        """Run a handler of another actor within this frame, and return what it returns.

        A call of an actor to itself keeps the outer sender; every other callee sees the calling actor.
        Source: cowboy-facts §2.3, §3.

        Raises:
            Rejection: ``FORBIDDEN`` beyond the greatest depth, ``NOT_FOUND`` without such an actor, else ``PVM_ERROR``
                with the callee's failure; its changes are rolled back, what it used is charged.
            OutOfGas: If what the callee used exhausts this frame.
        """
        scope, frame = self.scope, self.frame
        # CHECK
        depth, limit = frame.depth + 1, scope.session.context.rules.params.limits.call_depth_max
        if depth > limit:
            raise Rejection(RejectionReason.FORBIDDEN, f"call depth {depth} is over the limit of {limit}", depth=depth)
        # CHARGE
        meter = Meter(min(cycles_limit, self.meter.cycles_left), self.meter.cells_left)
        # RUN
        outcome = mocked_outcome(scope, target, handler, payload, caller=frame.actor, meter=meter)
        mark = scope.mark()
        if outcome is None:
            sender = self.sender if target == frame.actor else frame.actor
            outcome = run_handler(
                scope, target, handler, payload, sender=sender, meter=meter, depth=depth, read_only=frame.read_only
            )
        # SETTLE
        error = outcome.error
        if error is not None:
            scope.revert(mark)
        cycles, cells = meter.charged()
        self.meter.charge_cells(cells)
        self.meter.charge_cycles(cycles)
        if error is None:
            return outcome.return_value
        is_missing, callee = error.code == RejectionReason.ACTOR_NOT_FOUND.code, str(Address(target))
        raise Rejection(
            RejectionReason.NOT_FOUND if is_missing else RejectionReason.PVM_ERROR,
            f"call of {handler} on {callee} failed: E{error.code} {error.slug}: {error.what}",
            target=callee,
            handler=handler,
            callee_code=error.code,
            callee_traceback="\n".join((f"in {handler} of {callee}:", *traceback_of(error))),
        )

    def transfer(self, to: bytes, amount: int) -> None:
        """Move money of the running actor."""
        self._check_writable("transfer_balance")
        self.scope.session.ledger.transfer(self.frame.actor, to, amount)

    def upgrade(self, code: bytes, manifest: bytes | None) -> None:
        """Replace the actor's code for later frames; a cell a byte. Source: cowboy-facts §2.3. Decision: D-119."""
        # CHECK
        self._check_writable("upgrade_self")
        check_entitled(self.scope, self.frame, SELF_UPGRADE)
        # CHARGE
        self.meter.charge_cells(len(code) + len(manifest or b""))
        # RUN
        account = self.scope.session.ledger.account(self.frame.actor)
        self.scope.effects.append(replace_code(self.scope, bytes(self.frame.actor), account, code, manifest))

    def print_text(self, text: str) -> None:
        """Keep what the running actor prints, of frames that fail as well. Decision: D-89."""
        self.scope.printing.write(self.frame.actor, self.frame.handler, text)

    def randomness(self, domain: bytes) -> bytes:
        """Return 32 bytes from the parent's hash, the execution's origin, the actor and the domain.

        Decision: D-43 (known before the block: fit for spreading, not for lotteries)
        """
        block, envelope = self.scope.session.context, self.scope.envelope
        height = block.height.to_bytes(8, "big")
        origin = envelope.origin_hash + envelope.timer_id
        return domain_digest(b"cowboy-randomness-v1", block.parent, height, origin, self.frame.actor, domain)

    def _check_writable(self, call: str) -> None:
        if self.frame.read_only:
            raise Rejection(
                RejectionReason.FORBIDDEN, f"{call} in a read-only frame of {Address(self.frame.actor)}", call=call
            )

    def _check_change(self, form: str) -> None:
        """Refuse a call about timers in a read-only frame, and one that the mechanism does not have. Decision: D-56."""
        if self.frame.read_only:
            self._check_writable(calls.name_of(form))
        block = self.scope.session.context
        calls.check_call(form, block.calls, block.mechanism)


CREATION_HANDLERS: Final = ("init", "deploy")
"""What the creation call runs if the transaction names no handler: the first that the source has. Decision: D-36."""


def run_handler(
    scope: Scope,
    actor: bytes,
    handler: str,
    payload: bytes,
    *,
    sender: bytes,
    meter: Meter,
    depth: int = 0,
    read_only: bool = False,
    creation: bool = False,
) -> FrameOutcome:
    """Run one handler in a frame of its own. Its changes stay: the caller reverts them if the outcome has an error.

    Only the creation call may run `CREATION_HANDLERS`. The meter pays for the frame's base.
    Spec: CIP-5 §5.2. Decision: D-24 (a missing actor or handler is a failure that costs the frame's base), D-32, D-36.
    """
    ledger = scope.session.ledger
    # CHARGE
    try:
        meter.charge_cycles(scope.session.context.rules.params.costs.frame_base)
    except OutOfGas:
        return FrameOutcome(b"", exhaustion(meter))
    # CHECK
    if handler in CREATION_HANDLERS and not creation:
        what = f"{handler} of {Address(actor)} is called after its creation"
        return FrameOutcome(b"", Rejection(RejectionReason.CALL_NOT_PERMITTED, what, handler=handler).error())
    account = ledger.find(actor)
    if account is None or not account.code_hash:
        return FrameOutcome(b"", no_actor(actor).error())
    # RUN
    frame = Frame(
        source=ledger.code(account),
        code_hash=account.code_hash,
        actor=actor,
        deployer=account.owner,
        handler=handler,
        payload=payload,
        read_only=read_only,
        depth=depth,
    )
    host = ChainHost(scope=scope, frame=frame, sender=sender, meter=meter)
    return scope.session.engine.run(frame, host, meter)
