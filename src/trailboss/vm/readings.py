"""The host calls that read what a frame knows from its start, so that a guest answers them without asking the chain."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from trailboss.vm.arguments import bind, plain
from trailboss.vm.engine import CallSite, HostCall

_ANSWERS: Final[Mapping[str, Callable[[CallSite], object]]] = {
    "context": lambda site: site.host.context(),
    "current_block": lambda site: site.host.height(),
    "block_height": lambda site: site.host.height(),
    "runtime_config": lambda _: {"continuation_mode": "fsm"},
    "self_address": lambda site: site.frame.actor,
    "actor_owner": lambda site: site.frame.deployer,
    "gas_left": lambda site: site.meter.cycles_left,
}


def _reading(name: str, answer: Callable[[CallSite], object]) -> HostCall:
    def read(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
        if positional or named:
            bind(name, (), positional, named)
        site.meter.charge_cycles(site.params.costs.context_read)
        return plain(answer(site))

    return read


READINGS: Final[Mapping[str, HostCall]] = {name: _reading(name, answer) for name, answer in _ANSWERS.items()}
"""By public name."""
