"""A chain in process: build blocks, go back, look at everything. What node, simulator, testing and CLI stand on."""

from trailboss.chain.chain import Chain, Snapshot
from trailboss.chain.reader import ChainReader
from trailboss.chain.telling.explain import LifeStep, TimerLife, explain_timer
from trailboss.chain.view import ChainView
from trailboss.chain.views import Answer, Event, Receipt, TimerView

__all__ = [
    "Answer",
    "Chain",
    "ChainReader",
    "ChainView",
    "Event",
    "LifeStep",
    "Receipt",
    "Snapshot",
    "TimerLife",
    "TimerView",
    "explain_timer",
]
