"""Signatures of many transactions, on several threads, ahead of the block or the mempool that they come into.

Other threads run while libsecp256k1 recovers a key, which is most of a check. All else is done on one thread: threads
that ask for the interpreter between two recoveries more often than that hold one another up, to below the pace of one.
What is not found valid here is checked by itself, so that each refusal has its words and its place.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from trailboss.chain.processors import usable_processors
from trailboss.crypto.signatures import RecoveredKey, address_of_key, recover_key
from trailboss.model.transactions import UNSIGNED, Transaction, signing_hash
from trailboss.primitives.errors import Rejection

SHARED_MIN: Final = 16  # transactions from which on another thread is worth its start, some 60 µs
THREADS_MAX: Final = 4  # what is done on one thread is a third of the work


def is_worth_sharing(transactions: Sequence[Transaction]) -> bool:
    """Return whether checks of so many transactions take less time on several threads."""
    return len(transactions) >= SHARED_MIN and usable_processors() > 1


def find_signed(transactions: Sequence[Transaction]) -> frozenset[int]:
    """Return the places of those of many transactions that their sender, and nobody else, has validly signed.

    Those with additional signers are left out, and of few transactions all are.
    """
    if not is_worth_sharing(transactions):
        return frozenset()
    digests: dict[int, bytes] = {}
    for place, transaction in enumerate(transactions):
        if transaction.signature != UNSIGNED and not transaction.additional_signers:
            with suppress(Rejection):
                digests[place] = signing_hash(transaction)
    keys: dict[int, RecoveredKey] = {}
    # The threads draw from one iterator, so that one whose processor is busy elsewhere does not hold up the others.
    waiting = iter(list(digests.items()))

    def recover_next() -> None:
        for place, digest in waiting:
            with suppress(Rejection):
                keys[place] = recover_key(digest, transactions[place].signature)

    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # most commands check no signature

    others = min(usable_processors(), THREADS_MAX) - 1
    with ThreadPoolExecutor(others, thread_name_prefix="signatures") as pool:
        recovering = [pool.submit(recover_next) for _ in range(others)]
        recover_next()
    for each in recovering:
        each.result()
    return frozenset(place for place, key in keys.items() if address_of_key(key) == transactions[place].sender)


def refusals_of(check: Callable[[Transaction], object], transactions: Sequence[Transaction]) -> list[Rejection | None]:
    """Return for each transaction None or why a check of its signatures refuses it, in order."""
    signed = find_signed(transactions)
    found: list[Rejection | None] = [None] * len(transactions)
    for place, transaction in enumerate(transactions):
        if place not in signed:
            try:
                check(transaction)
            except Rejection as rejection:
                found[place] = rejection
    return found


def are_signed(transactions: Sequence[Transaction]) -> bool:
    """Return whether many transactions are validly signed, unsigned ones left out.

    False says nothing: the block checks each by itself.
    """
    signed = find_signed(transactions)
    return bool(signed) and all(
        place in signed or transaction.signature == UNSIGNED for place, transaction in enumerate(transactions)
    )
