"""The one list of what people see of mechanisms, by the mechanism's name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trailboss.chain.reader import ChainReader
from trailboss.views.mechanism import auction, fee_lane, fifo, globalbox
from trailboss.views.mechanism.base import MechanismViews, Sentence

MECHANISM_VIEWS: Final[Mapping[str, MechanismViews]] = MappingProxyType(
    {room.VIEWS.name: room.VIEWS for room in (fifo, fee_lane, auction, globalbox)}
)
MECHANISM_SENTENCES: Final[Mapping[str, Sentence]] = MappingProxyType(
    {name: sentence for views in MECHANISM_VIEWS.values() for name, sentence in views.sentences.items()}
)
"""What the events say that only some mechanisms have, by the event's name."""


def views_of(name: str) -> MechanismViews:
    """Return what people see under a mechanism."""
    return MECHANISM_VIEWS[name]


def views_for(chain: ChainReader) -> MechanismViews:
    """Return what people see of the next block of a chain."""
    return MECHANISM_VIEWS[chain.mechanism.name]
