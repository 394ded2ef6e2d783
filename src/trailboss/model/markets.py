"""The kinds of market: what a chain's state keeps for its mechanism."""

from enum import Enum


class MarketKind(Enum):
    """What a chain keeps for its mechanism: from genesis on, or from the activation on. A registry has its rules."""

    NONE = "none"  # nothing
    LANE = "lane"
    """Basefee and median tip of the timer lane, and its fairness window. Spec: CIP-1v3 §5, CIP-1v3 §8."""
    AUCTION = "auction"
    """Weights of actors. Spec: CIP-1v1 §3."""
    GLOBALBOX = "globalbox"
    """The queue of fires and its mailbox. Spec: CIP-5old §5.3."""
