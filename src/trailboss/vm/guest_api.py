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
from trailboss.params import deployment_price
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
from trailboss.vm.readings import READINGS
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
    token_transfer_from topup_subscription unsubscribe_event update_bid"""
UNSUPPORTED: Final = tuple(_NAMES.split())
"""Calls of the public host that the specifications do not need: they exist, and refuse by name."""
_OWN_CODES: Final = {
    **dict.fromkeys((RejectionReason.OUT_OF_CYCLES, RejectionReason.OUT_OF_CELLS), 1),
    **dict.fromkeys((RejectionReason.INVALID_DATA, RejectionReason.OVERFLOW), 2),
    **dict.fromkeys((RejectionReason.ACTOR_NOT_FOUND, RejectionReason.HANDLER_NOT_FOUND), 3),
    **dict.fromkeys(
        (RejectionReason.UNAUTHORIZED, RejectionReason.UNAUTHORIZED_TIMER, RejectionReason.CALL_NOT_PERMITTED), 5
    ),
}
_HOST_CODES: Final = range(1, 9)


def host_code(reason: RejectionReason) -> int:
    """Return ``HostError.code`` of a reason: the public host's 1..=8 if one fits, else the public error code.

    Source: cowboy-facts §2.8
    """
    own = reason.code - HOST_CODE_BASE
    return own if own in _HOST_CODES else _OWN_CODES.get(reason, reason.code)


def _keccak256(site: CallSite, message: bytes) -> bytes:
    words = max(1, -(-len(message) // KECCAK_WORD))
    site.meter.charge_cycles(site.params.costs.keccak_word * words)
    return keccak256(message)


def _write_slot(site: CallSite, key: bytes, value: bytes) -> None:
    site.host.write_slot(key, value)


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


def _upgrade_self(
    site: CallSite, code: bytes, manifest: bytes | None, routes: bytes | None, route_sponsorship: bytes | None
) -> None:
    for name, given in (("routes", routes), ("route_sponsorship", route_sponsorship)):
        if given is not None:
            what = f"upgrade_self(): {name} must be None: gateway routes are not implemented here"
            raise Rejection(RejectionReason.UNSUPPORTED, what, call="upgrade_self", argument=name)
    site.meter.charge_cycles(deployment_price(len(code), site.params.costs))
    site.host.upgrade(code, manifest)


def _unsupported(name: str) -> HostCall:
    def refuse(_site: CallSite, _positional: Sequence[object], _named: Mapping[str, object]) -> object:
        raise Rejection(RejectionReason.UNSUPPORTED, f"pvm_host.{name} is not implemented here", call=name)

    return refuse


_SIGNATURE: Final[Mapping[str, Check]] = {
    "algorithm": partial(integer, maximum=ED25519, minimum=ED25519),
    "public_key": partial(octets, width=KEY_WIDTH),
    "message": octets,
    "signature": partial(octets, width=SIGNATURE_WIDTH),
}
_EVENT: Final[Mapping[str, Check]] = {
    "name": text, "data": octets, "schema": optional(partial(octets, width=SCHEMA_WIDTH)),
}  # fmt: skip
_CALL: Final[Mapping[str, Check]] = {
    "target": address, "method": text, "payload": octets, "cycles_limit": integer, "access_limit": optional(integer),
}  # fmt: skip
_UPGRADE: Final[Mapping[str, Check]] = {
    "code": octets, **dict.fromkeys(("manifest", "routes", "route_sponsorship"), optional(octets)),
}  # fmt: skip
_TRANSFER: Final[Mapping[str, Check]] = {"to": address, "amount": partial(integer, maximum=U128_MAX)}
_CALLS: Final[Mapping[str, tuple[Mapping[str, Check], str | None, Callable[..., object]]]] = {
    "charge_gas": ({"amount": integer}, None, lambda site, amount: site.meter.charge_cycles(amount)),
    "randomness": ({"domain": octets}, "randomness", lambda site, domain: site.host.randomness(domain)),
    "keccak256": ({"data": octets}, None, _keccak256),
    "verify_signature": (_SIGNATURE, "signature_check", lambda _site, _algorithm, *values: verify_ed25519(*values)),
    "get_state": ({"key": octets}, "state_read", lambda site, key: site.host.read_slot(key)),
    "set_state": ({"key": unreserved, "value": octets}, "state_write", _write_slot),
    "delete_state": ({"key": unreserved}, "state_delete", lambda site, key: site.host.delete_slot(key)),
    "set_reserved_state": ({"key": reserved, "value": octets}, "state_write", _write_slot),
    "delete_reserved_state": ({"key": reserved}, "state_delete", lambda site, key: site.host.delete_slot(key)),
    "scan_state_prefix": ({"prefix": octets, "limit": integer}, None, _scan_state_prefix),
    "send_message": (
        {"target": address, "payload": octets}, "message_send", lambda site, *values: site.host.send_message(*values)
    ),
    "create_deferred_tx": (
        {"handler": text, "payload": octets}, "message_send", lambda site, *values: site.host.defer_call(*values)
    ),
    "transfer_balance": (_TRANSFER, "transfer_balance", lambda site, to, amount: site.host.transfer(to, amount)),
}  # fmt: skip
"""The calls without optional arguments: the checks, the price and the action of each; see `host_call`."""
HOST_CALLS: Final[Mapping[str, HostCall]] = {  # every call by its public name
    **READINGS,
    **{name: host_call(name, *call) for name, call in _CALLS.items()},
    **TIMER_CALLS,
    "emit_event": host_call("emit_event", _EVENT, "event_emit", _emit_event, required=2),
    "call_actor": host_call("call_actor", _CALL, "actor_call", _call_actor, required=CALL_ARGUMENTS),
    "upgrade_self": host_call("upgrade_self", _UPGRADE, None, _upgrade_self, required=1),
    **{name: _unsupported(name) for name in UNSUPPORTED},
}

__all__ = ["HOST_CALLS", "UNSUPPORTED", "ArgumentFault", "CallSite", "HostCall", "host_code"]
