"""Globalbox: `trailboss.mechanisms.globalbox.mechanism` is the seam's side of it."""

from trailboss.mechanisms.globalbox.mechanism import NAME, Globalbox, build_globalbox

__all__ = ["NAME", "Globalbox", "build_globalbox"]
