"""The one list of mechanisms, and which of them is in force at a height."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from trailboss.mechanisms import auction, fifo, globalbox
from trailboss.mechanisms import fee_lane as lane
from trailboss.mechanisms.base import Mechanism
from trailboss.model.configs import MarketKind
from trailboss.params import ChainParams
from trailboss.primitives.errors import ConfigurationError

MECHANISMS: Final[Mapping[str, Callable[[ChainParams], Mechanism]]] = MappingProxyType(
    {
        fifo.NAME: fifo.build_fifo,
        lane.NAME: lane.build_lane,
        auction.NAME: auction.build_auction,
        globalbox.NAME: globalbox.build_globalbox,
    }
)
# Name to a parameter that a chain has from genesis on if it starts with that mechanism, and its value.
GENESIS_PARAMS: Final = MappingProxyType({lane.NAME: ("lane.activation_height", 1)})


def build_mechanism(name: str, params: ChainParams) -> Mechanism:
    """Return the mechanism of that name, with the chain's parameters. `ConfigurationError` if there is none."""
    if name not in MECHANISMS:
        raise ConfigurationError(f"unknown mechanism {name!r}; there are: {', '.join(MECHANISMS)}")
    return MECHANISMS[name](params)


class Succession:
    """The mechanisms of one chain: the first, and the lane once that is active. Spec: CIP-1v3 §13.2. Decision: D-34.

    Attributes:
        first: The one that it starts with.
        by_market: The one in force while the chain has a market.
    """

    def __init__(self, name: str, params: ChainParams) -> None:
        self.first = build_mechanism(name, params)
        self._lane = self.first if name == lane.NAME else build_mechanism(lane.NAME, params)
        self.by_market = dict.fromkeys(MarketKind, self.first) | {MarketKind.LANE: self._lane}

    def rewind(self) -> None:
        """Let all of them forget what they remember: the chain has gone back."""
        self.first.rewind()
        self._lane.rewind()
