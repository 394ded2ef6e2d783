"""The calls of ``pvm_host``, the same for every engine: check the arguments, charge the price, call the `Host`.

An engine looks a call up in `HOST_CALLS` and passes the guest's arguments; the answer is a plain value. A call can
raise `ArgumentFault`, which the guest sees as the Python exception that it names; `Rejection`, which it sees as
``pvm_host.HostError``; and `OutOfGas`, which it cannot catch. Source: cowboy-facts §2.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from trailboss.crypto.digest import keccak256
from trailboss.crypto.signatures import verify_ed25519
from trailboss.primitives.errors import HOST_CODE_BASE, Rejection, RejectionReason
from trailboss.primitives.units import U128_MAX
from trailboss.vm.arguments import (
    ArgumentFault,
    Check,
    address,
    host_call,
    integer,
    octets,
    optional,
    reserved,
    text,
    unreserved,
)
from trailboss.vm.engine import CallSite, HostCall
from trailboss.vm.timer_calls import TIMER_CALLS

ED25519: Final = 2  # the one signature algorithm of ``verify_signature``
SIGNATURE_WIDTH: Final = 64
KEY_WIDTH: Final = 32
SCHEMA_WIDTH: Final = 32
KECCAK_WORD: Final = 32
CALL_ARGUMENTS: Final = 4  # arguments of ``call_actor`` in every version of the SDK; later versions add an access limit
_NAMES: Final = """fork_actor force_unsubscribe_event intent_broadcast intent_broadcast_ex
    intent_deposit intent_withdraw offchain_image_initialize offchain_image_update submit_job subscribe_event
    token_allowance token_approve token_balance_of token_burn token_create token_mint token_total_supply token_transfer
    token_transfer_from topup_subscription unsubscribe_event update_bid upgrade_self"""
UNSUPPORTED: Final = tuple(_NAMES.split())
"""Calls of the public host that the specifications do not need: they exist, and refuse by name."""
_OWN_CODES: Final = {
    RejectionReason.OUT_OF_CYCLES: 1,
    RejectionReason.OUT_OF_CELLS: 1,
    RejectionReason.INVALID_DATA: 2,
    RejectionReason.OVERFLOW: 2,
    RejectionReason.ACTOR_NOT_FOUND: 3,
    RejectionReason.HANDLER_NOT_FOUND: 3,
    RejectionReason.UNAUTHORIZED: 5,
    RejectionReason.UNAUTHORIZED_TIMER: 5,
    RejectionReason.CALL_NOT_PERMITTED: 5,
}
_HOST_CODES: Final = range(1, 9)


def host_code(reason: RejectionReason) -> int:
    """Return ``HostError.code`` of a reason: the public host's 1..=8 if one fits, else the public error code.

    Source: cowboy-facts §2.8
    """
    if reason.code - HOST_CODE_BASE in _HOST_CODES:
        return reason.code - HOST_CODE_BASE
    return _OWN_CODES.get(reason, reason.code)


def _charge_gas(site: CallSite, amount: int) -> None:
    site.meter.charge_cycles(amount)


def _keccak256(site: CallSite, message: bytes) -> bytes:
    words = max(1, -(-len(message) // KECCAK_WORD))
    site.meter.charge_cycles(site.params.costs.keccak_word * words)
    return keccak256(message)


def _verify_signature(_site: CallSite, _algorithm: int, key: bytes, message: bytes, signature: bytes) -> bool:
    return verify_ed25519(key, message, signature)


def _scan_state_prefix(site: CallSite, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    rows = min(limit, site.params.limits.scan_rows_max)
    costs = site.params.costs
    site.meter.charge_cycles(costs.state_scan_base + costs.state_scan_row * rows)
    return site.host.scan_slots(prefix, rows)


def _emit_event(site: CallSite, name: str, content: bytes, _schema: bytes | None) -> dict[str, object]:
    return {"emit_id": site.host.emit_event(name, content), "sync_outcomes": [], "deferred_subs": []}


def _call_actor(
    site: CallSite, target: bytes, method: str, payload: bytes, cycles_limit: int, _access_limit: int | None
) -> bytes | None:
    # A callee without output has answered nothing, which is not an empty encoded value.
    return site.host.call_actor(target, method, payload, cycles_limit) or None


def _unsupported(name: str) -> HostCall:
    def refuse(_site: CallSite, _positional: Sequence[object], _named: Mapping[str, object]) -> object:
        raise Rejection(RejectionReason.UNSUPPORTED, f"pvm_host.{name} is not implemented here", call=name)

    return refuse


def _reading(call: str, answer: Callable[[CallSite], object]) -> HostCall:
    return host_call(call, {}, "context_read", answer)


_BLOCK_HEIGHT: Final = _reading("current_block", lambda site: site.host.context()["block_height"])
_SIGNATURE: Final[Mapping[str, Check]] = {
    "algorithm": partial(integer, maximum=ED25519, minimum=ED25519),
    "public_key": partial(octets, width=KEY_WIDTH),
    "message": octets,
    "signature": partial(octets, width=SIGNATURE_WIDTH),
}
_EVENT: Final[Mapping[str, Check]] = {
    "name": text,
    "data": octets,
    "schema": optional(partial(octets, width=SCHEMA_WIDTH)),
}
_CALL: Final[Mapping[str, Check]] = {
    "target": address,
    "method": text,
    "payload": octets,
    "cycles_limit": integer,
    "access_limit": optional(integer),
}
HOST_CALLS: Final[Mapping[str, HostCall]] = {
    "context": _reading("context", lambda site: site.host.context()),
    "current_block": _BLOCK_HEIGHT,
    "block_height": _BLOCK_HEIGHT,
    "runtime_config": _reading("runtime_config", lambda _: {"continuation_mode": "fsm"}),
    "self_address": _reading("self_address", lambda site: site.frame.actor),
    "actor_owner": _reading("actor_owner", lambda site: site.host.owner()),
    "gas_left": _reading("gas_left", lambda site: site.meter.cycles_left),
    "charge_gas": host_call("charge_gas", {"amount": integer}, None, _charge_gas),
    "randomness": host_call(
        "randomness", {"domain": octets}, "randomness", lambda site, domain: site.host.randomness(domain)
    ),
    "keccak256": host_call("keccak256", {"data": octets}, None, _keccak256),
    "verify_signature": host_call("verify_signature", _SIGNATURE, "signature_check", _verify_signature),
    "get_state": host_call("get_state", {"key": octets}, "state_read", lambda site, key: site.host.read_slot(key)),
    "set_state": host_call(
        "set_state",
        {"key": unreserved, "value": octets},
        "state_write",
        lambda site, key, value: site.host.write_slot(key, value),
    ),
    "delete_state": host_call(
        "delete_state", {"key": unreserved}, "state_delete", lambda site, key: site.host.delete_slot(key)
    ),
    "set_reserved_state": host_call(
        "set_reserved_state",
        {"key": reserved, "value": octets},
        "state_write",
        lambda site, key, value: site.host.write_slot(key, value),
    ),
    "delete_reserved_state": host_call(
        "delete_reserved_state", {"key": reserved}, "state_delete", lambda site, key: site.host.delete_slot(key)
    ),
    "scan_state_prefix": host_call("scan_state_prefix", {"prefix": octets, "limit": integer}, None, _scan_state_prefix),
    **TIMER_CALLS,
    "emit_event": host_call("emit_event", _EVENT, "event_emit", _emit_event, required=2),
    "send_message": host_call(
        "send_message",
        {"target": address, "payload": octets},
        "message_send",
        lambda site, target, payload: site.host.send_message(target, payload),
    ),
    "create_deferred_tx": host_call(
        "create_deferred_tx",
        {"handler": text, "payload": octets},
        "message_send",
        lambda site, handler, payload: site.host.defer_call(handler, payload),
    ),
    "call_actor": host_call("call_actor", _CALL, "actor_call", _call_actor, required=CALL_ARGUMENTS),
    "transfer_balance": host_call(
        "transfer_balance",
        {"to": address, "amount": partial(integer, maximum=U128_MAX)},
        "transfer_balance",
        lambda site, to, amount: site.host.transfer(to, amount),
    ),
    **{name: _unsupported(name) for name in UNSUPPORTED},
}
"""Every call by its public name."""

__all__ = ["HOST_CALLS", "UNSUPPORTED", "ArgumentFault", "CallSite", "HostCall", "host_code"]
