"""The `Host` protocol: everything that a running frame can ask of the chain.

A host is bound to one frame: it knows the running actor, whether the frame is read-only, and the frame's meter. It sees
no guest objects: `trailboss.vm.guest_api` has checked every argument's type and charged the call's fixed price. The
host itself charges what only it can know, such as the cells of a payload or of a returned row.

A host refuses by raising `Rejection`, which guest code sees as ``pvm_host.HostError`` and can catch: ``UNSUPPORTED``
for a timer call that the chain's mechanism lacks, ``FORBIDDEN`` for a change in a read-only frame. Exhaustion
(`OutOfGas`) cannot be caught.
"""

from collections.abc import Mapping
from typing import Protocol

from trailboss.model import calls
from trailboss.model.timers import TimerRequest


class Host(Protocol):
    """What a frame can ask. Addresses are 20 bytes, hashes 32; every refusal is a `Rejection`."""

    def context(self) -> Mapping[str, object]:
        """Return the facts of this execution, by the public names.

        Source: cowboy-facts §2.1 (chain_id, chain_instance_id, pvm_version, sender, actor_addr, tx_hash, block_height,
        timestamp_ms, hire_id). A Globalbox fire also has ``deliver_id`` and ``trigger_ctx``. Decision: D-83.
        """

    def height(self) -> int:
        """Return the height of the block."""

    def read_slot(self, slot: bytes) -> bytes | None:
        """Return the value of a slot of the running actor, or None."""

    def write_slot(self, slot: bytes, content: bytes) -> None:
        """Write a slot of the running actor; charges the cells of slot and content."""

    def delete_slot(self, slot: bytes) -> None:
        """Delete a slot of the running actor, if it exists."""

    def scan_slots(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to ``limit`` slots whose name begins with ``prefix``, ascending; charges their cells."""

    def has_call(self, form: str) -> bool:
        """Return whether the chain's mechanism has a timer call, by its form in `trailboss.model.calls`."""

    def schedule_timer(self, request: TimerRequest, form: str = calls.SCHEDULE) -> bytes:
        """Accept a timer of the running actor and return its id, 32 bytes; charges the payload's cells.

        ``form`` names the call in a refusal.
        """

    def extend_timer(self, timer_id: bytes, expires_at: int) -> None:
        """Move the last height of a timer of the running actor, if it exists."""

    def cancel_timer(self, timer_id: bytes) -> None:
        """Cancel a timer of the running actor, if it exists."""

    def market_call(self, form: str, request: object) -> bytes | bool:
        """Make a call about timers that only some mechanisms have; charges the cells of its payload and keys.

        ``form`` is the call, by `trailboss.model.calls`. The answer is the id of a new timer, 32 bytes; for a change or
        a cancellation, whether it took effect.
        """

    def set_agent(self, agent: bytes | None) -> None:
        """Let another actor, or none, price the running actor's timers; ``NOT_FOUND`` if it has no code."""

    def timer_lane(self) -> Mapping[str, object]:
        """Return the timer lane's prices and limits in this block, by the public names, as a new dict.

        These are ``active`` (bool), ``basefee_lane_timer``, ``basefee_cycle``, ``basefee_cell``,
        ``previous_block_p50_priority_tip_per_cycle`` (base units), ``last_block_cycle_usage``,
        ``max_cycles_per_fire`` (cycles), ``priority_tier_multipliers`` (a dict by tier) and ``priority_tier_unit``.
        """

    def emit_event(self, name: str, octets: bytes) -> int:
        """Emit an event of the running actor; return its number in the transaction, from 1; charges cells."""

    def send_message(self, target: bytes, payload: bytes) -> None:
        """Send a message, delivered at the end of the block; charges the payload's cells."""

    def defer_call(self, handler: str, payload: bytes) -> None:
        """Call a handler of the running actor in the next block; charges the cells of name and payload."""

    def call_actor(self, target: bytes, handler: str, payload: bytes, cycles_limit: int) -> bytes:
        """Run a handler of another actor now, and return its answer.

        The callee gets at most ``cycles_limit``, and at most what this frame has left; this frame pays what it uses. If
        it fails, its changes are rolled back and the call is refused.
        """

    def transfer(self, to: bytes, amount: int) -> None:
        """Transfer money of the running actor."""

    def upgrade(self, code: bytes, manifest: bytes | None) -> None:
        """Replace the running actor's code for later frames, and its manifest if one is given; charges their cells.

        It refuses what `Engine.check_source` refuses, too.
        """

    def print_text(self, text: str) -> None:
        """Keep printed text for people; it is free, and no rule depends on it. Decision: D-89."""

    def randomness(self, domain: bytes) -> bytes:
        """Return 32 bytes that depend on the chain's past and the domain alone."""
