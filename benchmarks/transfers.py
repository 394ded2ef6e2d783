"""Transfers in blocks, signatures checked."""

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import World
from trailboss.crypto.digest import domain_digest
from trailboss.crypto.signatures import recover
from trailboss.execution.block import Applied
from trailboss.model.transactions import Transaction, Transfer, check_signature, signing_hash
from trailboss.primitives.octets import Address

SENDERS = 100
EACH = 10
CYCLES, CELLS = 10_000, 500
"""What a transfer uses."""


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
    floor = "recover one signer"
    measure(
        report,
        [
            Case(name=floor, sample=lambda: timed(lambda: [recover(*pair) for pair in recovered], block)),
            Case(
                name="hash and check one signature",
                sample=lambda: timed(check_all, block),
                beside=floor,
            ),
            Case(name="apply in a block", sample=build, beside=floor, rate_min=5_000),
        ],
        rounds,
    )
    return report


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
