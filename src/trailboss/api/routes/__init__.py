"""The paths, by subject. Each function is one operation: it reads one view, and returns a record."""

from typing import Final

from trailboss.api.operations import Operation
from trailboss.api.routes import (
    accounts,
    calls_and_proofs,
    chain,
    development,
    forecasts,
    jobs,
    mechanisms,
    network,
    node,
    search,
    simulation,
    state,
    submission,
    timers,
    traces,
    transactions,
)

FREQUENT: Final = (chain, accounts, submission, transactions, timers, state)
OTHERS: Final = (
    mechanisms,
    forecasts,
    search,
    calls_and_proofs,
    traces,
    simulation,
    node,
    network,
    development,
    jobs,
)
# Every operation; a request tries them in this order.
OPERATIONS: Final[tuple[Operation, ...]] = tuple(each for subject in (*FREQUENT, *OTHERS) for each in subject.routes)
