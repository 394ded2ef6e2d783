"""The helper that compares runs under several hash seeds sees a difference where there is one."""

from collections.abc import Callable

import pytest

ORDER_OF_A_SET = "print(list({'ring', 'epoch', 'overflow', 'lane', 'auction', 'mailbox'}))"


def test_outputs_differ_when_a_program_prints_the_order_of_a_set(
    output_under_hash_seed: Callable[[str, int], str],
) -> None:
    """Among several seeds, at least two orders of the same set appear."""
    assert len({output_under_hash_seed(ORDER_OF_A_SET, seed) for seed in range(4)}) > 1


def test_program_that_fails_fails_the_test(output_under_hash_seed: Callable[[str, int], str]) -> None:
    """A crash is not an output."""
    with pytest.raises(AssertionError, match="no such height"):
        output_under_hash_seed("raise ValueError('no such height')", 0)
