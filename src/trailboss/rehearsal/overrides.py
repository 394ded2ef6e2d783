"""What a simulation takes to be otherwise than the state has it: balances, slots, code, basefees. Decision: D-107."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.crypto.digest import keccak256
from trailboss.execution.checks import check_size
from trailboss.execution.development import is_system_actor
from trailboss.execution.ledger import Ledger, read_economy
from trailboss.execution.upgrades import checked_source
from trailboss.governance.markets import basefee_record
from trailboss.governance.rules import BASEFEES_KEY, ECONOMY_KEY, Rules
from trailboss.model.configs import Basefees, Economy, amount_octets, amount_of, encode_record
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U128_MAX
from trailboss.state.keys import storage_key
from trailboss.state.overlay import Overlay
from trailboss.state.slots import encode_slot
from trailboss.vm.engine import Engine

_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


class Overrides(Struct, frozen=True, kw_only=True):
    """What is taken to be otherwise. All of it is written before anything runs, and thrown away afterwards."""

    balances: Mapping[Address, int] = _NONE  # base units by account; the supply follows
    slots: Mapping[Address, Mapping[bytes, bytes | None]] = _NONE  # values by actor and name; None for no such slot
    code: Mapping[Address, bytes] = _NONE  # source by actor, which deployment would have to accept
    cycle_basefee: int | None = None  # base units per cycle, before any multiplier; None for the present one
    cell_basefee: int | None = None  # base units per cell, likewise
    lane_basefee: int | None = None  # base units per cycle, of the timer lane; None likewise


NO_OVERRIDES: Final = Overrides()
BASEFEES: Final = ("cycle_basefee", "cell_basefee", "lane_basefee")


def overrides_of(document: Mapping[str, Any]) -> Overrides:
    """Return overrides that are written as JSON; `to_document` writes them.

    Raises:
        Rejection: ``INVALID_DATA`` for a member that there is not, or one of another kind.
    """
    unknown = sorted(document.keys() - set(Overrides.__struct_fields__))
    if unknown:
        what = f"there is no override {unknown[0][:60]!r}; there are {', '.join(Overrides.__struct_fields__)}"
        raise Rejection(RejectionReason.INVALID_DATA, what, field=unknown[0][:60])
    slots: dict[Address, dict[bytes, bytes | None]] = {}
    for actor, names in _members(document, "slots"):
        if not isinstance(names, dict):
            raise _refused(f"of the slots of {actor} is {type(names).__name__}, it must be an object", field="slots")
        slots[actor] = {
            _octets("a slot's name", name): None if value is None else _octets("a slot's value", value)
            for name, value in names.items()
        }
    return Overrides(
        balances=dict(_members(document, "balances")),
        slots=slots,
        code={actor: _text(actor, source) for actor, source in _members(document, "code")},
        **{name: document.get(name) for name in BASEFEES},
    )


def to_document(overrides: Overrides) -> dict[str, Any]:
    """Return overrides as JSON writes them."""
    slots = {
        str(actor): {f"0x{name.hex()}": None if value is None else f"0x{value.hex()}" for name, value in named.items()}
        for actor, named in overrides.slots.items()
    }
    code = {str(actor): source.decode() for actor, source in overrides.code.items()}
    parts = {
        "balances": {str(each): amount for each, amount in overrides.balances.items()},
        "slots": slots,
        "code": code,
    }
    basefees = {name: getattr(overrides, name) for name in BASEFEES}
    return {name: part for name, part in (parts | basefees).items() if part not in (None, {})}


def _members(document: Mapping[str, Any], name: str) -> list[tuple[Address, Any]]:
    part = document.get(name, {})
    if not isinstance(part, dict):
        raise _refused(f"of {name} is {type(part).__name__}, it must be an object of addresses", field=name)
    return [(Address.parse(address), value) for address, value in part.items()]


def _octets(what: str, text: object) -> bytes:
    try:
        if isinstance(text, str) and text.startswith("0x"):
            return bytes.fromhex(text[2:])
    except ValueError:
        pass
    raise _refused(f"of {what} is {str(text)[:60]!r}, it must be 0x and two hexadecimal digits a byte", field="slots")


def _text(actor: Address, source: object) -> bytes:
    if not isinstance(source, str):
        raise _refused(f"of the code of {actor} is {type(source).__name__}, it must be text", field="code")
    return source.encode()


def write_overrides(chain: ChainReader, overrides: Overrides, overlay: Overlay, engine: Engine) -> None:
    """Write overrides over the state of a chain.

    Raises:
        Rejection: ``INVALID_DATA`` for what is out of its range, belongs to a system actor, or is no part of this
            chain; ``OVERFLOW`` if the supply would not fit 128 bits; for a source what deployment would refuse it with.
    """
    rules, ledger = chain.rules(), Ledger(overlay)
    for address in {*overrides.balances, *overrides.slots, *overrides.code}:
        if is_system_actor(rules, address):
            raise _refused(
                f"of system actor {address} is impossible: the chain keeps its records", account=str(address)
            )
    for address, balance in overrides.balances.items():
        _set_balance(ledger, overlay, address, _in_range(f"balance of {address}", balance, U128_MAX))
    for actor, slots in overrides.slots.items():
        for name, value in slots.items():
            _set_slot(rules, overlay, actor, name, value)
    for actor, code in overrides.code.items():
        _set_code(rules, ledger, engine, actor, code)
    _set_basefees(rules, overrides, overlay)


def _set_balance(ledger: Ledger, overlay: Overlay, address: Address, balance: int) -> None:
    economy, account = read_economy(overlay.read), ledger.account(address)
    supply = amount_of(economy.supply) - amount_of(account.balance) + balance
    if supply > U128_MAX:
        what = f"the override of the balance of {address}, {balance}, makes the supply {supply}, more than 128 bits"
        raise Rejection(RejectionReason.OVERFLOW, what, account=str(address))
    ledger.put(address, replace(account, balance=amount_octets(balance)))
    overlay.write(ECONOMY_KEY, encode_record(Economy(amount_octets(supply), economy.burned)))


def _set_slot(rules: Rules, overlay: Overlay, actor: Address, name: bytes, value: bytes | None) -> None:
    limits = rules.params.limits
    check_size(f"the override's slot name of {actor}", len(name), limits.slot_bytes_max)
    key = storage_key(actor, name)
    if value is None:
        overlay.delete(key)
        return
    check_size(f"the override's value of a slot of {actor}", len(value), limits.slot_value_bytes_max, least=0)
    overlay.write(key, encode_slot(name, value))


def _set_code(rules: Rules, ledger: Ledger, engine: Engine, actor: Address, code: bytes) -> None:
    try:
        checked_source(rules, engine, code)
    except Rejection as rejection:
        what = f"the override of the code of {actor} would not be deployed: {rejection.what}"
        raise Rejection(rejection.reason, what, rejection.fix, **rejection.context) from None
    account, code_hash = ledger.account(actor), keccak256(code)
    ledger.put(actor, replace(account, code_hash=code_hash, owner=account.owner or bytes(actor)))
    ledger.store_code(code_hash, code)


def _set_basefees(rules: Rules, overrides: Overrides, overlay: Overlay) -> None:
    given = {
        name: _in_range(name, getattr(overrides, name), PRICE_MAX)
        for name in BASEFEES
        if getattr(overrides, name) is not None
    }
    lane_basefee = given.pop("lane_basefee", None)
    if given:
        cycle = given.get("cycle_basefee", rules.cycle_basefee)
        cell = given.get("cell_basefee", rules.cell_basefee)
        overlay.write(BASEFEES_KEY, encode_record(Basefees(amount_octets(cycle), amount_octets(cell))))
    if lane_basefee is not None:
        record = basefee_record(rules.market, lane_basefee)
        if record is None:
            raise _refused("of lane_basefee has no effect: the timer lane is not active", field="lane_basefee")
        overlay.write(*record)


def _in_range(name: str, value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        shown = repr(value) if not isinstance(value, int) or abs(value) <= U128_MAX else f"{value.bit_length()} bits"
        raise _refused(f"of {name} is {shown}, it must be an integer within 0..=2**{most.bit_length()} - 1", field=name)
    return value


def _refused(what: str, **facts: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_DATA, f"the override {what}", **facts)
