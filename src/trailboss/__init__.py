"""Trailboss: Cowboy's Actor Message Scheduler in Python."""

import sys

if sys.platform == "win32":
    raise ImportError("Trailboss needs Linux or macOS: it locks a chain as those systems do. On Windows it runs in WSL")

__version__ = "0.6.0"
