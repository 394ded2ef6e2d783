"""Where a source sets timers, which handlers these call, and with which gas limit and expiry."""

import ast
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from trailboss.lint.actor_source import ActorSource, Routine, called, decorators, meaning
from trailboss.lint.expressions import Leaf, constant, leaves
from trailboss.model.envelopes import HANDLER_KEY, PAYLOAD_KEY, route_payload
from trailboss.model.timers import DEFAULT_HANDLER
from trailboss.params import ChainParams
from trailboss.vm.rules import HOST, LANE_SDK, SDK

GAS: Final = "gas_limit"
HANDLER: Final = "handler"
PAYLOAD: Final = "payload"
TARGET: Final = "target"
AGENT: Final = "gba"


class TimerForm(Struct, frozen=True):
    """A call that sets a timer."""

    parameters: tuple[str, ...]  # in the order of its positional arguments
    ttl: str = ""  # the one that is its expiry; empty if it takes none
    # If its fires call ``handle_timer``, which has to pass them on: the calls of which one does that.
    passed_on_by: tuple[str, ...] = ()
    runs: str = ""  # the parameter that names the handler which then runs; empty if a call of `passed_on_by` has it


class TimerSite(Struct, frozen=True, eq=False):
    """One call in a source that sets a timer."""

    node: ast.Call
    routine: Routine
    form: TimerForm
    arguments: dict[str, ast.expr]  # by parameter, as far as the call shows them
    is_whole: bool  # whether it shows them all
    handlers: tuple[tuple[str, ast.expr], ...]  # names of handlers that it can call, and where each is written
    is_known: bool  # whether it can call no others


_HOST_TIMER: Final = ("height", PAYLOAD, "fee_payer", GAS, "expires_at")
_SDK_TIMER: Final = ("height", PAYLOAD, "fee_payer", GAS, "access_limit", "expires_at")
SDK_PLACES: Final = len(_SDK_TIMER)
_BOX: Final = (PAYLOAD, GAS, "bid_fp", "expiry_height", "client_nonce")
_AUCTION: Final = TimerForm(("height", PAYLOAD, AGENT, GAS))
_HOST_FORM: Final = TimerForm(_HOST_TIMER, "expires_at")
_SDK_FORM: Final = TimerForm(_SDK_TIMER, "expires_at")
_BOX_FORM: Final = TimerForm((TARGET, "due_height", *_BOX), "expiry_height")
_WATCH_FORM: Final = TimerForm((TARGET, "watch_keys", *_BOX), "expiry_height")
_EX: Final = f"{HOST}.schedule_timer_ex"
_INTERVAL_CALLS: Final = ("dispatch_interval", "reschedule_interval", "decode_interval")
FORMS: Final = {
    f"{HOST}.schedule_timer": _HOST_FORM,
    _EX: _HOST_FORM,
    f"{HOST}.set_timeout": _BOX_FORM,
    f"{HOST}.set_state_watch": _WATCH_FORM,
    f"{LANE_SDK}.schedule_timer": TimerForm(("height", PAYLOAD), "expires_at"),
    f"{LANE_SDK}.set_timeout": _BOX_FORM,
    f"{LANE_SDK}.set_state_watch": _WATCH_FORM,
    f"{SDK}.schedule_timer": TimerForm(("height", PAYLOAD), "expires_at"),
    f"{SDK}.schedule_timer_ex": _SDK_FORM,
    f"{SDK}.schedule": TimerForm(("height", PAYLOAD), "expires_at"),
    f"{SDK}.schedule_after": TimerForm(("delay_blocks", HANDLER, PAYLOAD), "expires_at"),
    f"{SDK}.set_interval": TimerForm(("every_n_blocks", HANDLER, "data"), passed_on_by=_INTERVAL_CALLS),
    f"{LANE_SDK}.every": TimerForm(("name", "blocks"), passed_on_by=("dispatch",), runs="name"),
    f"{LANE_SDK}.retry": TimerForm((HANDLER, PAYLOAD), passed_on_by=("dispatch",), runs=HANDLER),
}
"""By meaning. Two of them have two forms, and the arguments decide between them."""
_AUCTIONS_OWN: Final = ("height", AGENT)


def timer_sites(source: ActorSource, params: ChainParams) -> list[TimerSite]:
    """Return every call of a source that sets a timer of its own, in order."""
    found = []
    for routine in source.routines.values():
        for node in routine.nodes:
            form = FORMS.get(called(source, node))
            if form is None or not isinstance(node, ast.Call):
                continue
            form = _own_form(source, node, form)
            arguments = dict(zip(form.parameters, node.args, strict=False))
            arguments |= {each.arg: each.value for each in node.keywords if each.arg}
            is_whole = all(each.arg for each in node.keywords)
            is_whole = is_whole and not any(isinstance(each, ast.Starred) for each in node.args)
            if TARGET in arguments and not _is_self(source, arguments[TARGET], routine):
                continue
            handlers, is_known = _handlers(source, routine, arguments, form, params)
            found.append(TimerSite(node, routine, form, arguments, is_whole, handlers, is_whole and is_known))
    return sorted(found, key=lambda site: (site.node.lineno, site.node.col_offset))


def _own_form(source: ActorSource, node: ast.Call, form: TimerForm) -> TimerForm:
    """Return the form that is meant where a call has two, by the host's own rule."""
    if form is _BOX_FORM:
        named = any(each.arg in _AUCTIONS_OWN for each in node.keywords)
        return _AUCTION if named else form
    # Six positional arguments are the public SDK's. Decision: D-03.
    is_sdks = called(source, node) == _EX and len(node.args) == SDK_PLACES
    return _SDK_FORM if is_sdks else form


def _is_self(source: ActorSource, node: ast.expr, routine: Routine) -> bool:
    found, _ = leaves(source, node, routine)
    return any(_is_own_address(source, each) for each, _ in found)


def _is_own_address(source: ActorSource, node: ast.expr) -> bool:
    own = (f"{HOST}.self_address", f"{SDK}.actor_address", f"{SDK}.get_actor_address")
    return called(source, node) in own or meaning(source, node) == "self.address"


def _handlers(
    source: ActorSource, routine: Routine, arguments: dict[str, ast.expr], form: TimerForm, params: ChainParams
) -> tuple[tuple[tuple[str, ast.expr], ...], bool]:
    """Return the handlers that a timer can call with where each is written, and whether these are all."""
    given = arguments.get(HANDLER)
    if form.passed_on_by:
        # What such a timer carries is no envelope of the chain's.
        passed = ((DEFAULT_HANDLER, given or next(iter(arguments.values()))),) if arguments else ()
        run = arguments.get(HANDLER, arguments.get(form.runs)) if form.runs else None
        found, whole = leaves(source, run, routine) if run is not None else ([], not form.runs)
        named = [(_handler_name(source, leaf), leaf[0]) for leaf in found]
        return (*passed, *((name, place) for name, place in named if name)), whole and all(name for name, _ in named)
    if given is not None and not (isinstance(given, ast.Constant) and given.value is None):
        found, whole = leaves(source, given, routine)
        named = [(_handler_name(source, leaf), leaf[0]) for leaf in found]
    elif PAYLOAD in arguments:
        found, whole = leaves(source, arguments[PAYLOAD], routine)
        named = [(routed(source, leaf, params.timers.handler_bytes_max), leaf[0]) for leaf in found]
    else:
        place = next(iter(arguments.values()), None)
        return ((DEFAULT_HANDLER, place),) if place is not None else (), place is not None
    known = tuple((name, place) for name, place in named if name)
    return known, whole and len(known) == len(named)


def _handler_name(source: ActorSource, leaf: Leaf) -> str:
    """Return the handler that an argument ``handler`` names, as text or as a function; empty if it is unknown."""
    node, routine = leaf
    name = constant(source, leaf)
    if isinstance(name, str):
        return name
    match node:
        case ast.Name(id=name):
            found = source.routines.get(("", name))
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if routine is not None:
            found = source.routines.get((routine.owner, name))
        case _:
            return ""
    return timer_name(source, found) if found is not None else ""


def timer_name(source: ActorSource, routine: Routine) -> str:
    """Return the name under which the SDK schedules a handler: its own, or that of ``@timer(name=…)``."""
    match decorators(source, routine).get("timer"):
        case ast.Call(keywords=keywords):
            given = [each.value for each in keywords if each.arg == "name"]
            if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
                return given[0].value
    return routine.name


def routed(source: ActorSource, leaf: Leaf, handler_bytes_max: int) -> str:
    """Return the handler that a payload names, by the chain's own reading; empty if it is unknown."""
    node, routine = leaf
    payload = constant(source, leaf)
    if isinstance(payload, bytes):
        return route_payload(payload, handler_bytes_max)[0]
    envelope = _encoded(source, node)
    if envelope is not None:
        content, _ = leaves(source, envelope, routine)
        return _named_in(source, content[0]) if len(content) == 1 else ""
    names_none = HANDLER_KEY not in "\n".join(source.lines)
    return DEFAULT_HANDLER if names_none and not isinstance(node, ast.Name | ast.Attribute) else ""


def _encoded(source: ActorSource, node: ast.expr) -> ast.expr | None:
    """Return what a payload is made of: what ``json.dumps(…).encode()`` or ``codec.encode(…)`` encodes."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[content, *_]) as inner, attr="encode")):
            return content if called(source, inner) == "json.dumps" else None
        case ast.Call(args=[content]) if called(source, node) == f"{SDK}.encode":
            return content
    return None


def _named_in(source: ActorSource, leaf: Leaf) -> str:
    node, routine = leaf
    if not isinstance(node, ast.Dict):
        return ""
    keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
    if None in keys:
        return ""
    if HANDLER_KEY not in keys or PAYLOAD_KEY not in keys:
        return DEFAULT_HANDLER
    found, whole = leaves(source, node.values[keys.index(HANDLER_KEY)], routine)
    name = constant(source, found[0]) if whole and len(found) == 1 else None
    return name if isinstance(name, str) else ""


def timer_handlers(source: ActorSource, sites: list[TimerSite]) -> tuple[dict[str, None], bool]:
    """Return the names that the timers of a source call, in order, and whether there are no others."""
    names = {name: None for site in sites for name, _ in site.handlers}
    return names | dict.fromkeys(_declared(source)), all(site.is_known for site in sites)


def _declared(source: ActorSource) -> Iterator[str]:
    """Yield the handlers that are written for timers: those of ``@timer``, and ``handle_timer``."""
    for routine in source.routines.values():
        if "timer" in decorators(source, routine):
            yield routine.name
    if DEFAULT_HANDLER in source.program.handlers():
        yield DEFAULT_HANDLER
