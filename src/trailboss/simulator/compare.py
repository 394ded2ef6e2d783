"""One workload through several mechanisms: each has a chain of its own, with the same actors and transactions."""

from collections.abc import Callable, Sequence
from typing import Final

from trailboss.simulator.results import MechanismResult
from trailboss.simulator.run import run_workload
from trailboss.simulator.sources import DIALECTS
from trailboss.simulator.workload import Workload, check_workload

MECHANISMS: Final = tuple(DIALECTS)
"""What a workload is run through, in this order."""


def compare(
    workload: Workload, mechanisms: Sequence[str] = MECHANISMS, on_block: Callable[[], None] | None = None
) -> tuple[MechanismResult, ...]:
    """Run a workload through mechanisms, one after the other; the same workload gives the same result everywhere.

    Args:
        workload: What to run.
        mechanisms: Through which, in this order.
        on_block: Called after each of the workload's blocks.

    Raises:
        ConfigurationError: If the workload breaks a rule of its own, or of one of the chains.
        InvariantError: If money or timers are lost.
    """
    check_workload(workload, mechanisms)
    return tuple(run_workload(workload, mechanism, on_block) for mechanism in mechanisms)
