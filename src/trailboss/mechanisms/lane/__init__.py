"""The timer lane: `trailboss.mechanisms.lane.mechanism` is the seam's side of it, `weight` the fairness weight."""

from trailboss.mechanisms.lane.mechanism import NAME, Lane, build_lane

__all__ = ["NAME", "Lane", "build_lane"]
