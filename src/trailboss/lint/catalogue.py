"""The rules of the linter. Each has a section on the page ``docs/reference/check.md``."""

from typing import Final

from trailboss.lint.records import LintRule, Severity
from trailboss.primitives.errors import RejectionReason

HANDLER: Final = "TB001"
UNCALLABLE: Final = "TB002"
NO_TTL: Final = "TB003"
GAS_LIMIT: Final = "TB004"
SENDER: Final = "TB005"
LOOP: Final = "TB006"
AWAIT: Final = "TB007"
CALLS: Final = "TB008"
UPGRADE: Final = "TB009"
IGNORE: Final = "TB010"
INTERVAL: Final = "TB011"
ENTITLEMENT: Final = "TB012"
BREAKPOINT: Final = "TB013"


def refusal_id(reason: RejectionReason) -> str:
    """Return the id under which the refusals of a deployment are reported."""
    return f"E{reason.code}"


DETERMINISM: Final = refusal_id(RejectionReason.NON_DETERMINISTIC_CODE)
NO_ACTOR: Final = refusal_id(RejectionReason.INVALID_DATA)

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_RULES: Final = (
    LintRule(DETERMINISM, "refused-code", _ERROR, "The deployment refuses code that can differ between two nodes."),
    LintRule(NO_ACTOR, "refused-source", _ERROR, "The deployment refuses a source that is no Python, or too large."),
    LintRule(HANDLER, "timer-without-handler", _ERROR, "A timer names a handler that the actor does not have."),
    LintRule(UNCALLABLE, "uncallable-handler", _WARNING, "A handler cannot be called by those it is meant for."),
    LintRule(NO_TTL, "timer-without-ttl", _NOTE, "A timer has no expiry of its own, and may fire weeks late."),
    LintRule(GAS_LIMIT, "gas-limit", _WARNING, "A timer's gas limit is outside what a fire may use."),
    LintRule(SENDER, "unchecked-sender", _WARNING, "Anyone can call a handler that only a timer should call."),
    LintRule(LOOP, "unbounded-loop", _WARNING, "A loop takes as many turns as the storage says."),
    LintRule(AWAIT, "lost-at-await", _ERROR, "A continuation uses after an await what it had only before."),
    LintRule(CALLS, "calls-in-loop", _WARNING, "One actor that fails in a loop takes the others with it."),
    LintRule(UPGRADE, "lost-handler", _ERROR, "An upgrade removes a handler that live timers call."),
    LintRule(IGNORE, "unused-ignore", _WARNING, "A comment ignores what is not found."),
    LintRule(INTERVAL, "interval-runs-once", _WARNING, "An interval is set, and no handler sets it again."),
    LintRule(ENTITLEMENT, "needs-entitlement", _NOTE, "The preset lets only an actor with an entitlement set timers."),
    LintRule(BREAKPOINT, "breakpoint", _WARNING, "A breakpoint is left; only development chains take it."),
)
RULES: Final = {each.rule: each for each in _RULES}
"""By id, in the order of the page."""
