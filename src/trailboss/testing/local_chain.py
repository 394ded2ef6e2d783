"""`LocalChain`: a whole chain behind a handful of plain calls."""

from typing import Final

from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing.cheats import Cheats
from trailboss.testing.simulation import Simulation
from trailboss.testing.timer_calls import TimerCalls

CBY: Final = BASE_UNITS_PER_CBY  # one CBY in base units


class LocalChain(TimerCalls, Simulation, Cheats):
    """A local chain with real fees and real state roots.

    Attributes:
        chain: The chain beneath.
        accounts: Funded accounts, ten by default.
        deployer: One more, which may send system instructions.
    """
