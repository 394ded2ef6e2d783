"""Exact integer helpers. No float ever enters the core."""


def clamp(value: int, minimum: int, maximum: int) -> int:
    """Return ``value`` held within ``minimum..=maximum``."""
    return min(max(value, minimum), maximum)
