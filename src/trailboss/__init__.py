"""Trailboss: Cowboy's Actor Message Scheduler in Python."""

__version__ = "0.1.0"
