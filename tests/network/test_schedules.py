"""Four applications under random schedules of an engine: they agree, and the schedules notice it where one does not."""

import re
from collections.abc import Callable

import pytest

from tests.network.engines import Divergence
from tests.network.plants import PLANTS
from tests.network.schedules import run_schedules

SCHEDULES = 300
BATCH = 25
FIRST = 1
NOTICED_WITHIN = 30  # schedules


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + SCHEDULES, BATCH))
def test_members_agree_with_a_plain_chain_in_every_schedule(first: int) -> None:
    """Through hostile proposals, repeated blocks, crashes before Commit, replays, joins by a snapshot; laws hold."""
    seen = run_schedules(first, BATCH)
    for what in ("applications restarted", "blocks finalized again", "crashes", "fires", "joins by a snapshot"):
        assert seen[what], what


PROGRAM = """
from tests.network.schedules import Schedule

for seed in range(8, 12):
    schedule = Schedule(seed)
    schedule.run()
    print(schedule.oracle.chain.head.hash, sorted(schedule.seen.items()))
"""


@pytest.mark.determinism
def test_schedule_is_equal_when_hash_seed_differs(output_under_hash_seed: Callable[[str, int], str]) -> None:
    """What happens follows from the seed, so that a failure repeats."""
    assert output_under_hash_seed(PROGRAM, 1) == output_under_hash_seed(PROGRAM, 2)


@pytest.mark.parametrize("plant", PLANTS)
def test_schedules_notice_one_member_that_differs(plant: str) -> None:
    """Within some schedules, by what differs and with the seed to repeat it by."""
    planted, words = PLANTS[plant]
    with pytest.raises(Divergence, match=words) as caught:
        run_schedules(FIRST, NOTICED_WITHIN, planted)
    assert re.search(r"schedule (\d+): .*repeat with: python -m tests.network.schedules --seed \1$", str(caught.value))
