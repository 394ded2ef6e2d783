"""A mechanism alone beside a whole chain, through random scenarios: every block must agree.

python -m tests.simulator.agreement --count 500 --seed 1
"""

import argparse
from collections import Counter

from tests.simulator.rogues import ACTIVATION, rogue_ground
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.whole import Whole

BLOCKS = 30
MECHANISMS = ("fifo", "lane", ACTIVATION, "auction", "globalbox")


def facts(block: BlockResult) -> dict[str, object]:
    """Return what of a block must be equal: timers by their ids, the rest as it is."""
    view = block.view
    return {
        "prices": (view.user_basefee, view.timer_basefee, view.cell_basefee, view.lane_basefee, view.previous_tip),
        "accepted": [plan.timer_id.hex() for plan in block.accepted],
        "fires": [(fire.plan.timer_id.hex(), *fire[1:]) for fire in block.fires],
        "ends": sorted((end.plan.timer_id.hex(), end.end.value) for end in block.endings),
        "sums": (block.waiting, block.timer_cycles, block.cycles, block.burned, block.tips, len(block.refused)),
    }


def check_agreement(mechanism: str, seed: int) -> Counter[str]:
    """Run one random scenario both ways, and count what it came to.

    Raises:
        AssertionError: Naming mechanism, seed, block and the first thing that differs.
    """
    alone, whole = Alone(rogue_ground(mechanism, seed)), Whole(rogue_ground(mechanism, seed))
    seen = Counter[str]()
    for _ in range(BLOCKS):
        found, expected = alone.build(), whole.build()
        where = f"{mechanism}, seed {seed}, block {whole.height}"
        for name, value in facts(expected).items():
            assert facts(found)[name] == value, f"{where}: {name} differ"
        assert alone.balances() == whole.balances(), f"{where}: balances differ"
        assert alone.pending() == whole.pending(), f"{where}: live timers differ"
        seen["fires"] += len(expected.fires)
        seen["fires that revert"] += sum(not fire.is_ok for fire in expected.fires)
        seen["orders refused"] += len(expected.refused)
        seen["blocks in which timers wait"] += expected.waiting > 0
        seen.update(f"ended {end.end.value}" for end in expected.endings)
    whole.chain.check_invariants()
    return seen


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=1, help="scenarios of each mechanism")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; each has the next one")
    options = parser.parse_args()
    for mechanism in MECHANISMS:
        seen = Counter[str]()
        for seed in range(options.seed, options.seed + options.count):
            seen += check_agreement(mechanism, seed)
        counts = ", ".join(f"{count:,} {what}" for what, count in sorted(seen.items()))
        print(f"{mechanism}: {options.count} scenarios agree in all of {BLOCKS} blocks each: {counts}", flush=True)


if __name__ == "__main__":
    main()
