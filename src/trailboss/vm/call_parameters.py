"""The parameters of host calls by their public names, for people."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from trailboss.vm.arguments import ArgumentFault
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED
from trailboss.vm.timer_calls import AUCTION_TIMEOUT

TOO_MANY: Final = (None, 1) * 50
"""More arguments than any call takes; a height in the second place is Globalbox's."""
_CANCEL: Final = ("timer_id",)
_TAKES: Final = re.compile(r"\w+\((.*?)\) takes")


@cache
def parameters(name: str) -> tuple[str, ...]:
    """Return the parameters of a host call, as the call itself names them when it is given too many arguments.

    Raises:
        ValueError: If the call does not say.
    """
    try:
        # It complains before it looks at the site.
        HOST_CALLS[name](None, TOO_MANY, {})  # type: ignore[arg-type]
    except ArgumentFault as fault:
        listed = _TAKES.match(str(fault))
        if listed is not None:
            return tuple(each for each in listed[1].split(", ") if each)
    raise ValueError(f"pvm_host.{name} does not say which arguments it takes")


def named_arguments(name: str, positional: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a host call by the names of its parameters; one too many is named by its place."""
    known = _form(name, positional, named)
    known += tuple(f"argument {place + 1}" for place in range(len(known), len(positional)))
    return dict(zip(known, positional, strict=False)) | dict(named)


def _form(name: str, positional: Sequence[object], named: Mapping[str, object]) -> tuple[str, ...]:
    if name in UNSUPPORTED:
        return ()
    if name == "cancel_timer" and len(positional) + len(named) < 2:
        return _CANCEL
    if name == "set_timeout" and (type(next(iter(positional), None)) is int or "height" in named):
        return AUCTION_TIMEOUT
    listed = parameters(name)
    by_place = listed[: listed.index("*")] if "*" in listed else listed
    # The public SDK's order. Decision: D-03
    if name == "schedule_timer_ex" and len(positional) == len(by_place):
        return (*by_place[:-2], by_place[-1], by_place[-2])
    return by_place
