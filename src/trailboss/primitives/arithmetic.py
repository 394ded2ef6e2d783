"""Exact integer helpers. No float ever enters the core."""


def clamp(value: int, minimum: int, maximum: int) -> int:
    """Return ``value`` held within ``minimum..=maximum``."""
    return min(max(value, minimum), maximum)


def div_ceil(numerator: int, denominator: int) -> int:
    """Divide and round up; ``denominator`` must be positive."""
    return -(-numerator // denominator)
