"""A fifth mechanism, as small as one can be: last in, first out.

It is all that a mechanism consists of: this module, its row in each registry, and its run of the suite. It has no
parameters of its own and keeps nothing in the state.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final
from unittest.mock import patch

from msgspec.structs import replace

from trailboss.mechanisms import registry
from trailboss.mechanisms.base import DeliveryPolicy, DueTimers, Mechanism, Selection
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.fifo import FifoSelection, build_fifo
from trailboss.params import ChainParams
from trailboss.views.mechanism import fifo
from trailboss.views.mechanism import registry as views_registry
from trailboss.views.mechanism.base import MechanismViews, outranked_words

NAME: Final = "lifo"


class Lifo(Mechanism):
    """Walks the due timers from the one that was scheduled last; what it does with each is FIFO's business."""

    name = NAME

    def __init__(self, policy: DeliveryPolicy) -> None:
        self.policy = policy

    def select(self, due: DueTimers, context: SelectionContext[Market]) -> Selection:
        """Walk due timers from the end."""
        return FifoSelection(replace(due, waiting=list(due.waiting)[::-1]), context, self.policy)


def build_lifo(params: ChainParams) -> Lifo:
    """Return the mechanism, delivered as FIFO is."""
    return Lifo(build_fifo(params).policy)


VIEWS: Final[MechanismViews] = replace(
    fifo.VIEWS,
    name=NAME,
    title="Stack",
    gives_way=False,
    outranked=partial(outranked_words, place="deeper in the stack"),
)


@contextmanager
def registered() -> Iterator[None]:
    """Add its two rows."""
    with (
        patch.object(registry, "MECHANISMS", {**registry.MECHANISMS, NAME: build_lifo}),
        patch.object(views_registry, "MECHANISM_VIEWS", {**views_registry.MECHANISM_VIEWS, NAME: VIEWS}),
    ):
        yield
