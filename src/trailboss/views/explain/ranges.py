"""Numbers and heights in words: the least and the greatest, and runs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

RUNS_MAX: Final = 4
"""Runs of blocks that are told one by one; of more only the first and the last."""


def span_words(values: Iterable[int | None]) -> str:
    """Return the least and the greatest of some numbers, or the one that all are."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def heights_words(heights: Sequence[int]) -> str:
    """Return ascending heights in words.

    >>> heights_words([101, 102]), heights_words([101, 103, 104, 105])
    ('101 and 102', '101 and 103 to 105')
    """
    runs = [_run_words(run) for run in _runs(heights)]
    if len(runs) > RUNS_MAX:
        return f"{runs[0]}, … {runs[-1]} ({len(heights):,} blocks)"
    return " and ".join(", ".join(runs).rsplit(", ", 1))


def _runs(heights: Sequence[int]) -> Iterator[tuple[int, int]]:
    for _, group in groupby(enumerate(heights), key=lambda pair: pair[1] - pair[0]):
        members = [height for _, height in group]
        if len(members) == 2:
            yield from ((height, height) for height in members)
        else:
            yield members[0], members[-1]


def _run_words(run: tuple[int, int]) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]} to {run[1]}"
