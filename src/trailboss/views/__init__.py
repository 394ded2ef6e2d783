"""A chain for reading: records, lists and explanations. None of them changes it."""

from trailboss.views.explain.life import LifeStep, TimerLife, explain_timer
from trailboss.views.records import Answer, Event, Receipt, TimerView

__all__ = ["Answer", "Event", "LifeStep", "Receipt", "TimerLife", "TimerView", "explain_timer"]
