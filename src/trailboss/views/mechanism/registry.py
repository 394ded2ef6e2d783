"""The one list of what people see of mechanisms, by the mechanism's name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trailboss.chain.reader import ChainReader
from trailboss.governance.markets import is_active
from trailboss.views.mechanism import auction, fee_lane, fifo, globalbox
from trailboss.views.mechanism.base import MechanismViews, Sentence, TimerState

MECHANISM_VIEWS: Final[Mapping[str, MechanismViews]] = MappingProxyType(
    {room.VIEWS.name: room.VIEWS for room in (fifo, fee_lane, auction, globalbox)}
)
MECHANISM_SENTENCES: Final[Mapping[str, Sentence]] = MappingProxyType(
    {name: sentence for views in MECHANISM_VIEWS.values() for name, sentence in views.sentences.items()}
)
"""What the events say that only some mechanisms have, by the event's name."""


TIMER_STATES: Final[Mapping[str, TimerState]] = MappingProxyType(
    {name: state for views in MECHANISM_VIEWS.values() for name, state in views.timer_states.items()}
)
"""States of live timers that only some mechanisms have, by the name in a filter."""


def views_of(name: str) -> MechanismViews:
    """Return what people see under a mechanism."""
    return MECHANISM_VIEWS[name]


def views_for(chain: ChainReader) -> MechanismViews:
    """Return what people see of the next block of a chain."""
    return MECHANISM_VIEWS[chain.mechanism.name]


def views_at(chain: ChainReader, height: int) -> MechanismViews:
    """Return what people see of a block to come, by the activation height of now. Spec: CIP-1v3 §13.2."""
    return MECHANISM_VIEWS[fee_lane.VIEWS.name] if is_active(chain.rules().params, height) else views_for(chain)
