"""The linter: one source, all rules. Decision: D-112."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.lint.actor_source import ActorSource, handler_of, read_actor
from trailboss.lint.awaits import lost_state
from trailboss.lint.breakpoints import left_breakpoints
from trailboss.lint.catalogue import NO_ACTOR, RULES, UPGRADE
from trailboss.lint.fires import endless_timers, needed_entitlements, odd_gas_limits
from trailboss.lint.handlers import dead_intervals, missing_handlers, open_handlers, uncallable_handlers
from trailboss.lint.loops import unbounded_loops, uncaught_calls
from trailboss.lint.places import finding_in
from trailboss.lint.records import LintFinding, Severity
from trailboss.lint.remarks import remarks, without_ignored
from trailboss.lint.timer_sites import timer_handlers, timer_sites
from trailboss.params import ChainParams

FIRST: Final = 1  # line and column of what is wrong with a whole source


class LintTerms(Struct, frozen=True):
    """What a source is held to."""

    params: ChainParams
    # Handlers that timers of the actor call which the source is to replace, with what is known of these timers in
    # words; None if it replaces none.
    called: Mapping[str, str] | None = None


def lint_source(content: bytes, terms: LintTerms, path: str = "") -> list[LintFinding]:
    """Return what is wrong with an actor's source, in the order of its lines.

    A source that a deployment refuses has no other findings: nothing else is known of it.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return [replace(finding_in(NO_ACTOR, line, FIRST, f"byte {error.start} is no UTF-8"), path=path)]
    source = read_actor(text, terms.params)
    if isinstance(source, ActorSource):
        unasked = frozenset((UPGRADE,) if terms.called is None else ())
        found = list(without_ignored(_findings(source, terms), remarks(text), unasked))
    else:
        found = source
    found.sort(key=lambda each: (each.line, each.column, each.rule))
    return [replace(each, path=path) for each in found]


def _findings(source: ActorSource, terms: LintTerms) -> Iterator[LintFinding]:
    sites = timer_sites(source, terms.params)
    by_timer, _ = timer_handlers(source, sites)
    yield from missing_handlers(source, sites)
    yield from uncallable_handlers(source, by_timer)
    yield from endless_timers(source, sites, terms.params)
    yield from odd_gas_limits(source, sites, terms.params)
    yield from open_handlers(source, by_timer)
    yield from unbounded_loops(source)
    yield from lost_state(source)
    yield from uncaught_calls(source)
    yield from dead_intervals(source, sites)
    yield from needed_entitlements(source, sites, terms.params)
    yield from left_breakpoints(source)
    for name, timers in (terms.called or {}).items():
        if handler_of(source, name) is None:
            what = f"{timers} {name}, which this source no longer has, and a fire without its handler reverts. Keep "
            what += f"{name} until no timer calls it, or cancel these first"
            yield finding_in(UPGRADE, FIRST, FIRST, what)


def called_by_timers(content: bytes, params: ChainParams) -> dict[str, str]:
    """Return the handlers that timers of a source call, each with words for these timers, for `LintTerms`.

    If it sets timers of which the source does not say what they call, these are all its handlers.

    Raises:
        ValueError: If a deployment refuses the source; it says why.
    """
    try:
        source = read_actor(content.decode(), params)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is no UTF-8") from None
    if not isinstance(source, ActorSource):
        raise ValueError(f"line {source[0].line}, column {source[0].column}: {source[0].message}")
    sites = timer_sites(source, params)
    names, is_whole = timer_handlers(source, sites)
    found = dict.fromkeys(
        (name for name in names if handler_of(source, name) is not None), "timers of the old one call"
    )
    if is_whole:
        return found
    return dict.fromkeys(sorted(source.program.handlers()), "timers of the old one may call") | found


def selected(rules: list[str], unselected: list[str]) -> frozenset[str]:
    """Return the rules to report: those selected, else all but notes, less those unselected. Prefixes will do.

    Raises:
        KeyError: With an id, or a prefix, that fits no rule.
    """
    default = [rule for rule, each in RULES.items() if each.severity is not Severity.NOTE]
    chosen = [rule for prefix in rules for rule in _matching(prefix)] if rules else default
    left_out = {rule for prefix in unselected for rule in _matching(prefix)}
    return frozenset(chosen) - left_out


def _matching(prefix: str) -> list[str]:
    found = [rule for rule in RULES if prefix and rule.startswith(prefix.upper())]
    if not found:
        raise KeyError(prefix)
    return found
