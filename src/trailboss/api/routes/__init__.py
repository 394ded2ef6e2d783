"""The paths, by subject. Each function is one operation: it reads one view, and answers a record."""

from itertools import chain as chained
from typing import Final

from trailboss.api.operations import Operation
from trailboss.api.routes import (
    accounts,
    chain,
    development,
    forecasts,
    mechanisms,
    service,
    state,
    timers,
    transactions,
)
from trailboss.api.routes import calls_and_proofs as asking
from trailboss.api.routes import search as searching
from trailboss.api.routes import submission as submitting

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
