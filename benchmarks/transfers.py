"""Transfers in blocks, signatures checked, on one thread and on several; and replays of such blocks."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from unittest import mock

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import World
from trailboss.chain import signature_checks, signature_workers
from trailboss.chain.replay import replay_to
from trailboss.crypto.digest import domain_digest
from trailboss.crypto.signatures import recover
from trailboss.execution.block import Applied
from trailboss.model.transactions import Transaction, Transfer, check_signature, signing_hash
from trailboss.primitives.octets import Address

SENDERS = 100
EACH = 10
CYCLES, CELLS = 10_000, 500
"""What a transfer uses."""
BLOCKS, SENDERS_OF_A_BLOCK = 100, 200
"""Of the chain that is replayed."""
MEBIBYTE = bytes(2**20)
HASHES = 32


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    world = World(senders=SENDERS, actors=1)
    transactions = _signed(world)
    recovered = [(signing_hash(transaction), transaction.signature) for transaction in transactions]
    chain, block = world.chain, len(transactions)

    def build() -> float:
        before = chain.snapshot()
        seconds = timed(lambda: _check(chain.build(transactions), block), block)
        chain.revert(before)
        return seconds

    def check_all() -> None:
        for transaction in transactions:
            check_signature(transaction)

    report = Report(f"Transfers: blocks of {block:,} from {SENDERS} senders, each to another receiver", "one transfer")
    floor, alone = "recover one signer", "hash and check one signature"
    measure(
        report,
        [
            Case(name=floor, sample=lambda: timed(lambda: [recover(*pair) for pair in recovered], block)),
            Case(
                name=alone,
                sample=lambda: timed(check_all, block),
                beside=floor,
            ),
            Case(
                name="the same, on several threads",
                sample=lambda: timed(lambda: signature_checks.refusals_of(check_signature, transactions), block),
                beside=alone,
            ),
            Case(name="apply in a block", sample=build, beside=floor, rate_min=5_000),
            *_replays(),
            Case(name="SHA-256 of 1 MiB, two threads", sample=_hash_on_two_threads),
            Case(name="SHA-256 of 1 MiB", sample=_hash, beside="SHA-256 of 1 MiB, two threads"),
        ],
        rounds,
    )
    report.notes += [
        f"replay: {BLOCKS} blocks of {SENDERS_OF_A_BLOCK}, from the chain in memory to one in memory.",
        "SHA-256: what a second thread of this machine gains at most, in the same rounds: 2 × with a core to itself.",
    ]
    return report


def _replays() -> list[Case]:
    world = World(senders=SENDERS_OF_A_BLOCK, actors=1)
    for number in range(BLOCKS):
        first = number * SENDERS_OF_A_BLOCK
        transfers = [
            world.sign(sender, Transfer(_receiver(first + sender), 1), cycles=CYCLES, cells=CELLS)
            for sender in range(SENDERS_OF_A_BLOCK)
        ]
        _check(world.chain.build(transfers), SENDERS_OF_A_BLOCK)

    def replay() -> float:
        return timed(lambda: replay_to(world.chain, BLOCKS).close(), BLOCKS * SENDERS_OF_A_BLOCK)

    def replay_on_one_thread() -> float:
        with (
            mock.patch.object(signature_checks, "usable_processors", return_value=1),
            mock.patch.object(signature_workers, "usable_processors", return_value=1),
        ):
            return replay()

    def replay_on_threads() -> float:
        with mock.patch.object(signature_workers, "usable_processors", return_value=1):
            return replay()

    alone = "replay, on one thread"
    return [
        Case(name=alone, sample=replay_on_one_thread),
        Case(name="replay, on threads", sample=replay_on_threads, beside=alone),
        Case(name="replay", sample=replay, beside=alone),
    ]


def _hash() -> float:
    return timed(lambda: [sha256(MEBIBYTE).digest() for _ in range(HASHES)], HASHES)


def _hash_on_two_threads() -> float:
    with ThreadPoolExecutor(2) as pool:
        return timed(lambda: list(pool.map(lambda _: sha256(MEBIBYTE).digest(), range(HASHES))), HASHES)


def _signed(world: World) -> list[Transaction]:
    """Return transfers with a limit of what they use, those of one sender apart."""
    return [
        world.sign(sender, Transfer(_receiver(ahead * SENDERS + sender), 1), cycles=CYCLES, cells=CELLS, ahead=ahead)
        for ahead in range(EACH)
        for sender in range(SENDERS)
    ]


def _receiver(number: int) -> Address:
    return Address(domain_digest(b"benchmark-receiver", number.to_bytes(8, "big"))[:20])


def _check(applied: Applied, accepted: int) -> None:
    """Refuse to time a block that did not take all of them."""
    if len(applied.block.receipts) != accepted:
        raise AssertionError(f"{accepted} transfers were to be applied, {len(applied.block.receipts)} were")
