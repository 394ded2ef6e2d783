"""Rules about handlers: those that timers call, those that no one can call, those that anyone can."""

import ast
from collections.abc import Iterator
from typing import Final

from trailboss.lint.actor_source import (
    SELF,
    ActorSource,
    Routine,
    decorators,
    handler_of,
    is_sdk_actor,
    reached,
    referred,
    world_call,
)
from trailboss.lint.catalogue import HANDLER, INTERVAL, SENDER, UNCALLABLE
from trailboss.lint.places import finding_at
from trailboss.lint.records import LintFinding, Severity
from trailboss.lint.senders import checks_sender
from trailboss.lint.timer_sites import TimerSite
from trailboss.model.timers import DEFAULT_HANDLER
from trailboss.primitives.errors import Rejection

SHOWN_MAX: Final = 60  # characters of a handler's name that a message repeats
CREATION: Final = ("init", "deploy")
MESSAGES: Final = "handle_message"
ASKED: Final = ("get_gas_bid", "on_fork")
"""Handlers that the chain calls as the actor itself."""
WELL_KNOWN: Final = (*CREATION, DEFAULT_HANDLER, MESSAGES, *ASKED)
"""Handlers that the chain calls by itself."""
NEUTRAL: Final = ("pure", "deferred", "reentrancy_guard", "bounded_loop", "continuation")
"""Decorators of the SDK that let no one call a handler."""
_CHANGES: Final = """call call_actor cancel_timer create_deferred_tx delete_state emit_event extend_timer schedule
    schedule_after schedule_timer schedule_timer_ex send send_message set_gas_bidding_agent set_interval set_raw
    set_state set_state_watch set_timeout transfer_balance update_timer"""
CHANGES: Final = frozenset(_CHANGES.split())
"""Calls that change something, or cost the actor something."""


def missing_handlers(source: ActorSource, sites: list[TimerSite]) -> Iterator[LintFinding]:
    """Yield the timers that call what the actor does not have."""
    have = ", ".join(sorted(source.program.handlers())) or "none"
    for site in sites:
        for name, place in site.handlers:
            if handler_of(source, name) is not None:
                continue
            what = f"the timer calls {name[:SHOWN_MAX]!r}, which is no handler of this actor, so every fire reverts. "
            what += f"Define it, or name one of: {have}"
            if name in source.program.handlers():
                what = f"the timer calls what cannot be called: {_refusal(source, name)}"
            spot = site.node if name == DEFAULT_HANDLER else place
            yield finding_at(HANDLER, spot, source.lines, what)


def _refusal(source: ActorSource, name: str) -> str:
    try:
        source.program.entry(name)
    except Rejection as rejection:
        return rejection.what
    return ""


def dead_intervals(source: ActorSource, sites: list[TimerSite]) -> Iterator[LintFinding]:
    """Yield the timers that fire once and run nothing, because ``handle_timer`` does not pass their fires on."""
    handler = handler_of(source, DEFAULT_HANDLER)
    if handler is None:
        return
    calls = {world_call(source, node) for each in reached(source, handler) for node in each.nodes}
    for site in sites:
        if site.form.passed_on_by and calls.isdisjoint(site.form.passed_on_by):
            what = "set the interval again: call runtime.dispatch_interval(payload, {…}) in it"
            if site.form.runs:
                what = "pass its fires on: call trailboss.sdk.dispatch(payload) in it"
            what = f"{DEFAULT_HANDLER} does not {what}"
            yield finding_at(INTERVAL, site.node, source.lines, what)


def uncallable_handlers(source: ActorSource, by_timer: dict[str, None]) -> Iterator[LintFinding]:
    """Yield the handlers that cannot be called, or not by those for whom they are written."""
    for name in WELL_KNOWN:
        owners = [routine for routine in source.routines.values() if routine.name == name]
        if owners and handler_of(source, name) is None:
            yield finding_at(UNCALLABLE, owners[-1].node, source.lines, _refusal(source, name), Severity.ERROR)
    for routine in source.routines.values():
        is_sdks = is_sdk_actor(source, routine.owner)
        if routine.name.startswith("_"):
            continue
        required = len(routine.parameters) - len(routine.node.args.defaults)
        if required > 1 and (is_sdks or routine.name in WELL_KNOWN or routine.name in by_timer):
            what = f"{routine.name} needs {required} arguments, and a call gives one, the payload. "
            what += "Take one, or begin the name of a helper with an underscore"
            yield finding_at(UNCALLABLE, routine.node, source.lines, what)
        elif is_sdks:
            yield from _denied(source, routine, by_timer)


def _denied(source: ActorSource, routine: Routine, by_timer: dict[str, None]) -> Iterator[LintFinding]:
    """Yield a finding if the SDK refuses a handler to those for whom it is written."""
    name = routine.name
    is_own = name in ASKED or (name in by_timer and name not in CREATION)
    if is_own or any(each not in NEUTRAL for each in decorators(source, routine)):
        return
    if name == "init":
        what = "the SDK refuses init without a permission, and the deployment reverts. Write @public above it"
        yield finding_at(UNCALLABLE, routine.node, source.lines, what, Severity.ERROR)
    elif name == MESSAGES:
        what = "the SDK refuses messages of other actors to a handler without a permission. Write @public above it"
        yield finding_at(UNCALLABLE, routine.node, source.lines, what)
    elif any(found is routine for each in source.routines.values() for found in referred(source, each)):
        what = f"self.{name}() is refused when another account has called the handler around it. "
        what += "Begin the name of a helper with an underscore"
        yield finding_at(UNCALLABLE, routine.node, source.lines, what)
    elif not _is_named(source, name):
        what = f"the actor alone can call {name}. Write @public or @callable_by(…) above it, or begin its name with an "
        what += "underscore"
        yield finding_at(UNCALLABLE, routine.node, source.lines, what)


def _is_named(source: ActorSource, name: str) -> bool:
    """Return whether a text of the source names a handler, as a deferred call does."""
    return any(isinstance(node, ast.Constant) and node.value == name for node in source.parents)


def open_handlers(source: ActorSource, by_timer: dict[str, None]) -> Iterator[LintFinding]:
    """Yield the timer handlers that change something and do not look at who calls them."""
    for name in by_timer:
        routine = handler_of(source, name)
        if routine is None or not _is_open(source, routine):
            continue
        run = reached(source, routine)
        if any(checks_sender(source, each) for each in run):
            continue
        if any(_changes(source, node) for each in run for node in each.nodes):
            what = f"anyone can call {name}, not the actor's timers alone: {_advice(source, routine)}"
            yield finding_at(SENDER, routine.node, source.lines, what)


def _is_open(source: ActorSource, routine: Routine) -> bool:
    return not is_sdk_actor(source, routine.owner) or "public" in decorators(source, routine)


def _advice(source: ActorSource, routine: Routine) -> str:
    if is_sdk_actor(source, routine.owner):
        return "drop @public, since the SDK lets an actor's own timers in"
    own = "self.address" if routine.owner else "pvm_host.self_address()"
    return f'raise an error if pvm_host.context()["sender"] is not {own}'


def _changes(source: ActorSource, node: ast.AST) -> bool:
    """Return whether a node changes the actor's storage, or makes a call that changes something."""
    if world_call(source, node) in CHANGES:
        return True
    if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    match node.value:
        case ast.Attribute(value=ast.Name(id=name), attr="storage"):
            return name == SELF
    return False
