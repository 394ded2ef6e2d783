"""The calls of ``pvm_host``, the same for every engine: check the arguments, charge the price, ask the `Host`.

An engine finds a call by its name in `HOST_CALLS` and gives it the guest's arguments; what comes back is a plain value
for the guest. Three things can be raised besides: `ArgumentFault`, which the guest sees as the Python exception that it
names; `Rejection`, which it sees as ``pvm_host.HostError``; and `OutOfGas`, which it cannot catch.

Source: cowboy-facts §2
"""

from collections.abc import Mapping, Sequence
from typing import Final

from trailboss.crypto.digest import keccak256
from trailboss.crypto.signing import verify_ed25519
from trailboss.primitives.errors import HOST_CODE_BASE, Rejection, RejectionReason
from trailboss.primitives.units import U64_MAX, U128_MAX
from trailboss.vm.arguments import ArgumentFault, address, bind, integer, octets, reserved, text, unreserved
from trailboss.vm.engine import CallSite, HostCall
from trailboss.vm.timer_calls import TIMER_CALLS

ED25519: Final = 2
"""The one signature algorithm of ``verify_signature``."""
SIGNATURE_WIDTH: Final = 64
KEY_WIDTH: Final = 32
SCHEMA_WIDTH: Final = 32
KECCAK_WORD: Final = 32
CALL_ARGUMENTS: Final = 4
"""Arguments of ``call_actor`` in every version of the SDK; later ones give an access limit besides."""
_NAMES: Final = """fork_actor force_unsubscribe_event intent_broadcast intent_broadcast_ex
    intent_deposit intent_withdraw offchain_image_initialize offchain_image_update submit_job subscribe_event
    token_allowance token_approve token_balance_of token_burn token_create token_mint token_total_supply token_transfer
    token_transfer_from topup_subscription unsubscribe_event update_bid upgrade_self"""
UNSUPPORTED: Final = tuple(_NAMES.split())
"""Calls of the public host that the seeds do not need: they exist, and refuse by name."""
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
    """Return the number that ``HostError.code`` shows: the public host's 1..=8 if one fits, else the public error code.

    Source: cowboy-facts §2.8
    """
    if reason.code - HOST_CODE_BASE in _HOST_CODES:
        return reason.code - HOST_CODE_BASE
    return _OWN_CODES.get(reason, reason.code)


def _context(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("context", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.host.context()


def _block_height(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("current_block", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.host.context()["block_height"]


def _runtime_config(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("runtime_config", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return {"continuation_mode": "fsm"}


def _self_address(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("self_address", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.frame.actor


def _actor_owner(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("actor_owner", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.host.owner()


def _gas_left(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("gas_left", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.meter.cycles_left


def _charge_gas(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (amount,) = bind("charge_gas", ("amount",), positional, named)
    site.meter.charge_cycles(integer("charge_gas", "amount", amount, U64_MAX))
    return None


def _randomness(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (domain,) = bind("randomness", ("domain",), positional, named)
    checked = octets("randomness", "domain", domain)
    site.meter.charge_cycles(site.params.costs.randomness)
    return site.host.randomness(checked)


def _keccak256(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (message,) = bind("keccak256", ("data",), positional, named)
    checked = octets("keccak256", "data", message)
    words = max(1, -(-len(checked) // KECCAK_WORD))
    site.meter.charge_cycles(site.params.costs.keccak_word * words)
    return keccak256(checked)


def _verify_signature(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    names = ("algorithm", "public_key", "message", "signature")
    algorithm, public_key, message, signature = bind("verify_signature", names, positional, named)
    integer("verify_signature", "algorithm", algorithm, ED25519, ED25519)
    key = octets("verify_signature", "public_key", public_key, KEY_WIDTH)
    signed = octets("verify_signature", "message", message)
    proof = octets("verify_signature", "signature", signature, SIGNATURE_WIDTH)
    site.meter.charge_cycles(site.params.costs.signature_check)
    return verify_ed25519(key, signed, proof)


def _get_state(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (key,) = bind("get_state", ("key",), positional, named)
    slot = octets("get_state", "key", key)
    site.meter.charge_cycles(site.params.costs.state_read)
    return site.host.read_slot(slot)


def _set_state(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    key, value = bind("set_state", ("key", "value"), positional, named)
    slot, content = unreserved("set_state", key), octets("set_state", "value", value)
    site.meter.charge_cycles(site.params.costs.state_write)
    site.host.write_slot(slot, content)
    return None


def _delete_state(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (key,) = bind("delete_state", ("key",), positional, named)
    slot = unreserved("delete_state", key)
    site.meter.charge_cycles(site.params.costs.state_delete)
    site.host.delete_slot(slot)
    return None


def _set_reserved_state(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    key, value = bind("set_reserved_state", ("key", "value"), positional, named)
    slot, content = reserved("set_reserved_state", key), octets("set_reserved_state", "value", value)
    site.meter.charge_cycles(site.params.costs.state_write)
    site.host.write_slot(slot, content)
    return None


def _delete_reserved_state(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (key,) = bind("delete_reserved_state", ("key",), positional, named)
    slot = reserved("delete_reserved_state", key)
    site.meter.charge_cycles(site.params.costs.state_delete)
    site.host.delete_slot(slot)
    return None


def _scan_state_prefix(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    prefix, limit = bind("scan_state_prefix", ("prefix", "limit"), positional, named)
    checked = octets("scan_state_prefix", "prefix", prefix)
    rows = min(integer("scan_state_prefix", "limit", limit, U64_MAX), site.params.limits.scan_rows_max)
    costs = site.params.costs
    site.meter.charge_cycles(costs.state_scan_base + costs.state_scan_row * rows)
    return site.host.scan_slots(checked, rows)


def _emit_event(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    name, content, schema = bind("emit_event", ("name", "data", "schema"), positional, named, required=2)
    topic, checked = text("emit_event", "name", name), octets("emit_event", "data", content)
    if schema is not None:
        octets("emit_event", "schema", schema, SCHEMA_WIDTH)
    site.meter.charge_cycles(site.params.costs.event_emit)
    return {"emit_id": site.host.emit_event(topic, checked), "sync_outcomes": [], "deferred_subs": []}


def _send_message(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    target, payload = bind("send_message", ("target", "payload"), positional, named)
    to, checked = address("send_message", "target", target), octets("send_message", "payload", payload)
    site.meter.charge_cycles(site.params.costs.message_send)
    site.host.send_message(to, checked)
    return None


def _create_deferred_tx(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call = "create_deferred_tx"
    handler, payload = bind(call, ("handler", "payload"), positional, named)
    name, checked = text(call, "handler", handler), octets(call, "payload", payload)
    site.meter.charge_cycles(site.params.costs.message_send)
    site.host.defer_call(name, checked)
    return None


def _call_actor(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    names = ("target", "method", "payload", "cycles_limit", "access_limit")
    values = bind("call_actor", names, positional, named, required=CALL_ARGUMENTS)
    target, method, payload, cycles_limit, access_limit = values
    to, handler = address("call_actor", "target", target), text("call_actor", "method", method)
    checked = octets("call_actor", "payload", payload)
    cycles = integer("call_actor", "cycles_limit", cycles_limit, U64_MAX)
    if access_limit is not None:
        integer("call_actor", "access_limit", access_limit, U64_MAX)
    site.meter.charge_cycles(site.params.costs.actor_call)
    # A callee without output has answered nothing, which is not an empty encoded value.
    return site.host.call_actor(to, handler, checked, cycles) or None


def _transfer_balance(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    to, amount = bind("transfer_balance", ("to", "amount"), positional, named)
    target = address("transfer_balance", "to", to)
    units = integer("transfer_balance", "amount", amount, U128_MAX)
    site.meter.charge_cycles(site.params.costs.transfer_balance)
    site.host.transfer(target, units)
    return None


def _unsupported(name: str) -> HostCall:
    def refuse(_site: CallSite, _positional: Sequence[object], _named: Mapping[str, object]) -> object:
        raise Rejection(RejectionReason.UNSUPPORTED, f"pvm_host.{name} is not implemented here", call=name)

    return refuse


def _plainly(call: HostCall) -> HostCall:
    return lambda site, positional, named: plain(call(site, positional, named))


_CALLS: Final[Mapping[str, HostCall]] = {
    "context": _context,
    "current_block": _block_height,
    "block_height": _block_height,
    "runtime_config": _runtime_config,
    "self_address": _self_address,
    "actor_owner": _actor_owner,
    "gas_left": _gas_left,
    "charge_gas": _charge_gas,
    "randomness": _randomness,
    "keccak256": _keccak256,
    "verify_signature": _verify_signature,
    "get_state": _get_state,
    "set_state": _set_state,
    "delete_state": _delete_state,
    "set_reserved_state": _set_reserved_state,
    "delete_reserved_state": _delete_reserved_state,
    "scan_state_prefix": _scan_state_prefix,
    **TIMER_CALLS,
    "emit_event": _emit_event,
    "send_message": _send_message,
    "create_deferred_tx": _create_deferred_tx,
    "call_actor": _call_actor,
    "transfer_balance": _transfer_balance,
    **{name: _unsupported(name) for name in UNSUPPORTED},
}
HOST_CALLS: Final[Mapping[str, HostCall]] = {name: _plainly(call) for name, call in _CALLS.items()}
"""Every call by its public name."""

__all__ = ["HOST_CALLS", "UNSUPPORTED", "ArgumentFault", "CallSite", "HostCall", "host_code"]


_PLAIN: Final = (bytes, str, int, bool, float, type(None))


def plain(value: object) -> object:
    """Return what a host answers as the guest gets it: of Python's own types exactly, within containers too.

    A guest could see a class of this process, and use it; and a program does not run the same way with a subclass as
    with the type itself, which another engine gives it.

    Raises:
        TypeError: If it is nothing that a host answers with.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        items = [plain(each) for each in value]  # type: ignore[attr-defined]  # mypy does not follow the types
        return items if kind is list else tuple(items)
    if isinstance(value, Mapping):
        return {plain(name): plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a host call answers with an object of type {kind.__name__}")
