"""Sets of small numbers as the bits of one integer: which slots hold something, and which is the first.

Finding the first of a few thousand slots takes one pass over some hundred bytes, so "when is anything due next?" needs
no scan and no heap.
"""

from collections.abc import Iterator


def first_bit(mask: int) -> int:
    """Return the number of the lowest bit that is set; ``mask`` must be positive.

    >>> first_bit(0b101000)
    3
    """
    return (mask & -mask).bit_length() - 1


def rising_bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, lowest first.

    >>> list(rising_bits(0b101001))
    [0, 3, 5]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
