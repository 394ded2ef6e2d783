"""Bit masks as sets of slots."""

import pytest

from trailboss.timer_queue.occupancy import first_bit, rising_bits


@pytest.mark.parametrize(("mask", "first"), [(1, 0), (0b1000, 3), (0b1010, 1), (1 << 4_000, 4_000)])
def test_first_bit_is_the_lowest_when_several_are_set(mask: int, first: int) -> None:
    """Only the lowest bit counts."""
    assert first_bit(mask) == first


def test_rising_bits_are_all_bits_when_the_mask_has_gaps() -> None:
    """They come in rising order; an empty mask has none."""
    assert list(rising_bits(1 << 70 | 1 << 64 | 1 << 3 | 1)) == [0, 3, 64, 70]
    assert list(rising_bits(0)) == []
