"""What an upgrade would do to the timers of an actor that live."""

from collections.abc import Iterator

from trailboss.cli.targets import OpenChain
from trailboss.lint import UPGRADE, LintTerms, lint_source
from trailboss.primitives.octets import Address
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter


def live_calls(chain: OpenChain, actor: Address) -> dict[str, str]:
    """Return the handlers of an actor that live timers call, each with words for these timers."""
    heights: dict[str, list[int]] = {}
    for entry in chain.list_timers(TimerFilter(target=actor)):
        heights.setdefault(entry.handler, []).append(entry.height)
    return {
        handler: f"{counted(len(due), 'live timer')}, the next in block {min(due)}, {'call' if due[1:] else 'calls'}"
        for handler, due in heights.items()
    }


def lost_calls(chain: OpenChain, actor: Address, code: bytes) -> Iterator[str]:
    """Yield a warning for each handler that live timers call and that a new source of the actor lacks."""
    terms = LintTerms(chain.params, live_calls(chain, actor))
    yield from (each.message for each in lint_source(code, terms) if each.rule == UPGRADE)
