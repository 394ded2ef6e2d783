"""The paths, by subject. Each function is one operation: it reads one view, and returns a record."""

from itertools import chain as chained
from typing import Final

from trailboss.api.operations import Operation
from trailboss.api.routes import (
    accounts,
    calls_and_proofs,
    chain,
    development,
    forecasts,
    mechanisms,
    node,
    search,
    state,
    submission,
    timers,
    transactions,
)

SUBJECTS: Final = (
    chain,
    accounts,
    submission,
    transactions,
    timers,
    state,
    mechanisms,
    forecasts,
    search,
    calls_and_proofs,
    node,
    development,
)
OPERATIONS: Final[tuple[Operation, ...]] = tuple(chained.from_iterable(subject.routes for subject in SUBJECTS))
"""Every operation. A request tries them in this order, so the most frequent ones come first."""
