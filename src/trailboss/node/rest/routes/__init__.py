"""The paths, by subject. Each function is one operation: it reads one view, and answers a record."""

from itertools import chain as chained
from typing import Final

from trailboss.node.rest.operations import Operation
from trailboss.node.rest.routes import (
    accounts,
    asking,
    chain,
    development,
    forecasts,
    mechanisms,
    searching,
    service,
    state,
    submitting,
    timers,
    transactions,
)

SUBJECTS: Final = (
    chain,
    accounts,
    submitting,
    transactions,
    timers,
    state,
    mechanisms,
    forecasts,
    searching,
    asking,
    service,
    development,
)
OPERATIONS: Final[tuple[Operation, ...]] = tuple(chained.from_iterable(subject.routes for subject in SUBJECTS))
"""Every operation. A request tries them in this order, so those that are asked most often stand first."""
