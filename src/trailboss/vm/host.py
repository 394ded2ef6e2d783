"""The `Host` protocol: all that a running frame may ask of the chain.

A host is bound to one frame: it knows the actor that runs, whether the frame is read-only, and where the frame's
meter is. It never sees guest objects; `trailboss.vm.guest_api` has checked every argument's type and charged the
call's fixed price before it gets here. What depends on values only the chain knows (a payload's cells, a returned
row's cells) the host charges itself through the frame's meter.

Which calls about timers a chain has, its mechanism decides; the host refuses the others with ``UNSUPPORTED``.

A host refuses by raising `Rejection`; guest code sees ``pvm_host.HostError`` and may catch it. A host call that
would change something in a read-only frame is refused with ``FORBIDDEN``. Exhaustion (`OutOfGas`) is not catchable.
"""

from collections.abc import Mapping
from typing import Protocol

from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate
from trailboss.model.timers import TimerRequest


class Host(Protocol):
    """What a frame may ask. Addresses are 20 bytes, hashes 32; every refusal is a `Rejection`."""

    def context(self) -> Mapping[str, object]:
        """Return the facts of this execution, by the public names.

        Source: cowboy-facts §2.1 (chain_id, chain_instance_id, pvm_version, sender, actor_addr, tx_hash,
        block_height, timestamp_ms, hire_id). A fire of Globalbox has ``deliver_id`` and ``trigger_ctx`` too.
        Decision: D-83.
        """

    def owner(self) -> bytes:
        """Return the deployer of the running actor; ``FORBIDDEN`` if it has none."""

    def read_slot(self, slot: bytes) -> bytes | None:
        """Return the value of a slot of the running actor, or None."""

    def write_slot(self, slot: bytes, content: bytes) -> None:
        """Write a slot of the running actor; charges the cells of slot and content."""

    def delete_slot(self, slot: bytes) -> None:
        """Delete a slot of the running actor; nothing happens if it is not there."""

    def scan_slots(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to ``limit`` slots whose name begins with ``prefix``, ascending; charges their cells."""

    def has_call(self, form: str) -> bool:
        """Return whether the chain's mechanism has a call about timers, by its form in `trailboss.model.calls`."""

    def schedule_timer(self, request: TimerRequest, form: str = calls.SCHEDULE) -> bytes:
        """Accept a timer of the running actor and return its id, 32 bytes; charges the payload's cells.

        The form is that of the call as the guest made it, for a refusal.
        """

    def extend_timer(self, timer_id: bytes, expires_at: int) -> None:
        """Move the last height of a timer of the running actor; nothing happens if it is gone."""

    def cancel_timer(self, timer_id: bytes) -> None:
        """Cancel a timer of the running actor; nothing happens if it is gone."""

    def set_auction_timer(self, request: AuctionRequest) -> bytes:
        """Accept a timer of the running actor in the auction and return its id, 32 bytes; charges its cells."""

    def set_globalbox_timer(self, request: GlobalboxRequest) -> bytes:
        """Accept a timer or a watch of the running actor in Globalbox and return its id; charges its cells."""

    def update_timer(self, update: GlobalboxUpdate) -> bool:
        """Change a timer of the running actor in Globalbox, and return whether a later fire will show it."""

    def cancel_globalbox_timer(self, target: bytes, timer_id: bytes) -> bool:
        """Cancel a timer of the running actor in Globalbox, and return whether it was still there to cancel."""

    def set_agent(self, agent: bytes | None) -> None:
        """Have another actor, or nobody, price the running actor's timers; ``NOT_FOUND`` if it has no code."""

    def timer_lane(self) -> Mapping[str, object]:
        """Return the timer lane's prices and limits in this block, by the public names, as a new dict.

        These are ``active`` (bool), ``basefee_lane_timer``, ``basefee_cycle``, ``basefee_cell``,
        ``previous_block_p50_priority_tip_per_cycle`` (base units), ``last_block_cycle_usage``,
        ``max_cycles_per_fire`` (cycles), ``priority_tier_multipliers`` (a dict by tier) and ``priority_tier_unit``.
        """

    def emit_event(self, name: str, octets: bytes) -> int:
        """Emit an event of the running actor and return its number in the transaction, from 1; charges cells."""

    def send_message(self, target: bytes, payload: bytes) -> None:
        """Send a message, delivered at the end of the block; charges the payload's cells."""

    def defer_call(self, handler: str, payload: bytes) -> None:
        """Have a handler of the running actor called in the next block; charges the cells of name and payload."""

    def call_actor(self, target: bytes, handler: str, payload: bytes, cycles_limit: int) -> bytes:
        """Run a handler of another actor now, and return what it returns.

        The callee gets at most ``cycles_limit``, and at most what this frame has left. What it used is charged to
        this frame. If it fails, its changes are rolled back and the call is refused.
        """

    def transfer(self, to: bytes, amount: int) -> None:
        """Move money of the running actor."""

    def print_text(self, text: str) -> None:
        """Keep what the running actor prints, for people: it is free, and no rule depends on it. Decision: D-89."""

    def randomness(self, domain: bytes) -> bytes:
        """Return 32 bytes that depend on the chain's past and the domain alone."""
