"""Timers and blocks in words: what happened to them, and why."""
