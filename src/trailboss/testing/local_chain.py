"""`LocalChain`: a whole chain behind a handful of plain calls."""

from typing import Final

from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing.cheats import Cheats
from trailboss.testing.clock import ClockCalls
from trailboss.testing.crowds import Crowds
from trailboss.testing.expectations import Expectations
from trailboss.testing.label_calls import LabelCalls
from trailboss.testing.runners import Runners
from trailboss.testing.simulation import Simulation
from trailboss.testing.timer_calls import TimerCalls
from trailboss.testing.traces import Traces

CBY: Final = BASE_UNITS_PER_CBY  # one CBY in base units


class LocalChain(TimerCalls, ClockCalls, Simulation, Traces, Expectations, LabelCalls, Cheats, Crowds, Runners):
    """A local chain with real fees and real state roots.

    Attributes:
        chain: The chain beneath.
        accounts: Funded accounts, ten by default.
        deployer: One more, which may send system instructions.
        labels: Names of addresses and timers, those of the accounts included.
    """
