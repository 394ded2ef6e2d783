"""Empty blocks on the way to a height."""

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import World

BLOCKS = 2_000
PENDING = 100_000
FAR = 10_000_000


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Empty blocks: advance_to", "one block")
    empty, full = World(senders=1, actors=1), World(senders=1, actors=100)
    full.plant(FAR + index for index in range(PENDING))

    def advance(world: World) -> float:
        chain = world.chain
        return timed(lambda: [None for _ in chain.advance_to(chain.height + BLOCKS)], BLOCKS)

    def build(world: World) -> float:
        return timed(lambda: [world.chain.build() for _ in range(BLOCKS)], BLOCKS)

    measure(
        report,
        [
            Case(name="build, block by block", sample=lambda: build(empty)),
            Case(name="advance_to", sample=lambda: advance(empty), beside="build, block by block", rate_min=20_000),
            Case(name=f"advance_to, {PENDING:,} timers pending", sample=lambda: advance(full), beside="advance_to"),
        ],
        rounds,
    )
    return report
