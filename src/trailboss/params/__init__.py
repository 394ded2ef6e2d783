"""Every number of the specification, one frozen record a subject, with unit, reason and clause.

`trailboss.params.loader` reads the presets; nothing else holds a protocol number.
"""

from trailboss.params.loader import load_params, parameter_bounds
from trailboss.params.records import (
    AuctionParams,
    CalendarParams,
    ChainParams,
    CostParams,
    FeeParams,
    GlobalboxParams,
    GovernanceParams,
    LaneParams,
    LimitParams,
    SourceCostParams,
    TimerParams,
    deployment_price,
)

__all__ = [
    "AuctionParams", "CalendarParams", "ChainParams", "CostParams", "FeeParams", "GlobalboxParams", "GovernanceParams",
    "LaneParams", "LimitParams", "SourceCostParams", "TimerParams", "deployment_price", "load_params",
    "parameter_bounds",
]  # fmt: skip
