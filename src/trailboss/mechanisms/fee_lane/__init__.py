"""The timer lane: `trailboss.mechanisms.fee_lane.mechanism` is the seam's side of it, `weight` the fairness weight."""

from trailboss.mechanisms.fee_lane.mechanism import NAME, Lane, build_lane

__all__ = ["NAME", "Lane", "build_lane"]
