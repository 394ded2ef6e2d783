"""Signatures of many transactions, checked on several threads ahead of the block that they come into.

Most of a check is the recovery of the signer, during which other threads run. What is found, and its order, is that of
a plain loop: the check of a signature knows nothing of the chain.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from trailboss.model.transactions import UNSIGNED, Transaction, check_signature
from trailboss.primitives.errors import Rejection

SHARED_MIN: Final = 16  # transactions from which on another thread is worth its start, some 60 µs
THREADS_MAX: Final = 4  # what the threads do between two recoveries they cannot do at the same time


def is_worth_sharing(transactions: Sequence[Transaction]) -> bool:
    """Return whether checks of so many transactions take less time on several threads."""
    return len(transactions) >= SHARED_MIN and _usable_processors() > 1


def refusals_of(check: Callable[[Transaction], object], transactions: Sequence[Transaction]) -> list[Rejection | None]:
    """Check each transaction, many on several threads, and return for each None or why it is refused, in order."""
    found: list[Rejection | None] = [None] * len(transactions)
    # The threads draw from one iterator, so that one whose processor is busy elsewhere does not hold up the others.
    places = iter(range(len(transactions)))

    def check_next() -> None:
        for place in places:
            try:
                check(transactions[place])
            except Rejection as rejection:
                found[place] = rejection

    if not is_worth_sharing(transactions):
        check_next()
        return found
    others = min(_usable_processors(), THREADS_MAX) - 1
    with ThreadPoolExecutor(others, thread_name_prefix="signatures") as pool:
        checking = [pool.submit(check_next) for _ in range(others)]
        check_next()
    for each in checking:
        each.result()
    return found


def are_signed(transactions: Sequence[Transaction]) -> bool:
    """Return whether the signatures of many transactions are valid, unsigned ones left out.

    False says nothing where looking ahead is not worth it: the block checks each by itself.
    """
    if not is_worth_sharing(transactions):
        return False
    signed = [transaction for transaction in transactions if transaction.signature != UNSIGNED]
    return not any(refusals_of(check_signature, signed))


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
