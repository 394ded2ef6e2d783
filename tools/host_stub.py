"""The types of ``pvm_host`` for editors and mypy: a stub, written from the calls themselves.

Each call is asked which arguments it takes, which of them it needs, and which types: it is given wrong ones, and says
what it wants. So the stub cannot say anything else than the chain does. What calls return stands here; a test compares
it with what a chain returns.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tools.reference_text import CALLS
from trailboss.primitives.errors import Rejection
from trailboss.vm.arguments import INITIALIZED_KEY
from trailboss.vm.call_parameters import parameters
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED, ArgumentFault

STUB: Final = "src/pvm_host-stubs/__init__.pyi"
NAMED_ONLY: Final = "*"
HEAD: Final = '''"""What an actor can ask of the chain. Written by `python -m tools.reference`; do not edit."""

from collections.abc import Sequence
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, overload

Octets: TypeAlias = bytes | bytearray | memoryview

class Context(TypedDict):
    """The facts of this execution."""

    chain_id: int
    chain_instance_id: bytes
    pvm_version: str
    sender: bytes
    actor_addr: bytes
    tx_hash: bytes
    block_height: int
    timestamp_ms: int
    hire_id: int | None
    deliver_id: NotRequired[bytes]
    trigger_ctx: NotRequired[dict[str, Any]]

class TimerLane(TypedDict):
    """The timer lane's prices and limits in this block."""

    active: bool
    basefee_lane_timer: int
    basefee_cycle: int
    basefee_cell: int
    previous_block_p50_priority_tip_per_cycle: int
    last_block_cycle_usage: int
    max_cycles_per_fire: int
    priority_tier_multipliers: dict[str, int]
    priority_tier_unit: int

class HostError(RuntimeError):
    """A refused call."""

    code: Final[int]
    name: Final[str]
    def __init__(self, message: str = ..., code: int = ..., name: str = ...) -> None: ...

'''
RETURNS: Final = {
    "context": "Context",
    "timer_lane": "TimerLane",
    "runtime_config": "dict[str, str]",
    "verify_signature": "bool",
    "update_timer": "bool",
    "get_state": "bytes | Any",
    "call_actor": "bytes | Any",
    "scan_state_prefix": "list[tuple[bytes, bytes]]",
    "emit_event": "dict[str, Any]",
    **dict.fromkeys(("current_block", "block_height", "gas_left"), "int"),
    **dict.fromkeys(("self_address", "actor_owner", "randomness", "keccak256"), "bytes"),
    **dict.fromkeys(("schedule_timer", "schedule_timer_ex", "set_timeout", "set_state_watch"), "bytes"),
}
"""The others return None. Two return None now and then: who has written a slot need not ask whether it is there."""
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SAME: Final = re.compile("^the same")
_NEEDS: Final = re.compile(r"\) (?:needs|has no argument) ")
_WANTS: Final = re.compile(r"\w+\(\): (\w+) must be (bytes|an integer|a str|a list|\d+ bytes|b')")
_RANGE: Final = re.compile(r"\w+\(\): (\w+) is .*, outside \d+\.\.=(\d+)")
_NOTHING: Final = re.compile(r"\w+\(\): (\w+) must be None")
_TYPES: Final = {"bytes": "Octets", "an integer": "int", "a str": "str", "a list": "Sequence[Octets]"}
_WRONG: Final = object()
_SAMPLES: Final[dict[str, object]] = {"bytes": b"", "an integer": 1, "a str": "x", "a list": [_WRONG]}


def host_stub() -> str:
    """Return the stub of ``pvm_host``."""
    parts = [HEAD]
    previous = ""
    for name, entry in CALLS.items():
        forms = [
            (list(parameters(name)), entry.what),
            *([(list(entry.other), entry.other_what)] if entry.other else []),
        ]
        for names, what in forms:
            result = "bool" if name == "cancel_timer" and "target" in names else RETURNS.get(name, "None")
            parts += ["@overload\n"] if len(forms) > 1 else []
            parts.append(f"def {name}({', '.join(_signature(name, names))}) -> {result}:\n")
            parts.append(f'    """{_sentence(_SAME.sub(f"as {previous}", what))}"""\n')
        previous = name
    parts.append("\n# These exist, and raise HostError with the name `unsupported`.\n")
    parts += [f"def {name}(*arguments: Any, **named: Any) -> Any: ...\n" for name in UNSUPPORTED]
    return "".join(parts)


def _sentence(what: str) -> str:
    plain = _LINK.sub(r"\1", what).replace("`", "")
    return f"{plain[0].upper()}{plain[1:]}."


def _signature(call: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the parameters of a call with their types."""
    own = [name for name in names if name != NAMED_ONLY]
    types, values = argument_types(call, own)
    for name in names:
        if name == NAMED_ONLY:
            yield name
            continue
        takes_none = types.get(name, "None") != "None" and _answer(call, values | {name: None}) is None
        default = "" if _is_needed(call, own, name) else " = ..."
        yield f"{name}: {types.get(name, 'Any')}{' | None' if takes_none else ''}{default}"


def argument_types(call: str, names: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the type of each argument that a call checks, and arguments that it takes.

    Raises:
        ValueError: If it complains in words that are not known here.
    """
    types: dict[str, str] = {}
    values: dict[str, Any] = dict.fromkeys(names, _WRONG)
    while (fault := _answer(call, values)) is not None:
        wants, bounds = _WANTS.match(fault), _RANGE.match(fault)
        if bounds is not None:
            values[bounds[1]] = int(bounds[2])
        elif (nothing := _NOTHING.match(fault)) is not None:
            types[nothing[1]], values[nothing[1]] = "None", None
        elif wants is None:
            raise ValueError(f"pvm_host.{call} does not say which types it takes: {fault}")
        elif isinstance(values[wants[1]], list):
            values[wants[1]] = [b""]
        elif wants[2] == "b'":
            values[wants[1]] = INITIALIZED_KEY
        elif wants[2] in _TYPES:
            types[wants[1]], values[wants[1]] = _TYPES[wants[2]], _SAMPLES[wants[2]]
        else:
            values[wants[1]] = bytes(int(wants[2].split()[0]))
    return types, values


def _is_needed(call: str, names: list[str], name: str) -> bool:
    fault = _answer(call, {each: _WRONG for each in names if each != name})
    # Without its first argument a call with two forms may be the other one.
    return name == names[0] or (fault is not None and _NEEDS.search(fault) is not None)


def _answer(call: str, named: dict[str, Any]) -> str | None:
    """Return what a call has against its arguments; None if it takes them, and looks for a chain to run on."""
    try:
        HOST_CALLS[call](None, (), named)  # type: ignore[arg-type]  # it has looked at the arguments before
    except ArgumentFault as fault:
        return str(fault)
    except Rejection as rejection:
        return rejection.what
    except AttributeError:
        return None
    raise ValueError(f"pvm_host.{call} runs without a chain")
