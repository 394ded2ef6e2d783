"""Rules of the lane that a chain can turn on: whose fires count, over how many blocks medians are taken, what ages."""

from typing import Any

import pytest

from trailboss.governance.markets import SMOOTHED_KEY
from trailboss.mechanisms.fee_lane.weight import WHOLE, ages_from, gained_weight, smoothed
from trailboss.primitives.octets import Address
from trailboss.testing import ActorHandle, LocalChain

ACTOR = """
def arm(payload):
    for item in payload.split():
        height, tip, gas_limit = (int(part) for part in item.split(b","))
        pvm_host.schedule_timer(height, b"", gas_limit=gas_limit, max_fee_per_cycle=10**9,
                                max_priority_fee_per_cycle=tip)


def handle_timer(payload):
    pass
"""


def lane_chain(**params: int) -> LocalChain:
    return LocalChain(mechanism="lane", params={name.replace("__", "."): value for name, value in params.items()})


def deploy(chain: LocalChain, owner: int) -> ActorHandle:
    return chain.deploy(ACTOR, sender=chain.accounts[owner], value=10**14)


def arm(actor: ActorHandle, *timers: tuple[int, int], gas_limit: int = 30_000) -> None:
    """Schedule timers, each a height and a tip."""
    payload = " ".join(f"{height},{tip},{gas_limit}" for height, tip in timers).encode()
    actor.call("arm", payload, sender=actor.chain.accounts[0], check=True)


def recent(chain: LocalChain, address: Address) -> int:
    account = chain.chain.account(address)
    return 0 if account is None else account.recent_fires


def decided(chain: LocalChain) -> dict[bytes, Any]:
    """Return what the last block's record says of each actor's first timer."""
    record = chain.chain.decisions(chain.height)
    return {timer.actor: timer for timer in reversed(record.examined)}


# Whose fires count


@pytest.mark.parametrize(("per_deployer", "weight"), [(0, 2 * WHOLE), (1, WHOLE)])
def test_quiet_actor_of_a_busy_deployer_weighs_as_the_deployer_does(per_deployer: int, weight: int) -> None:
    """Its sibling has fired twice, another deployer's actor once: per actor it has fired never, per deployer often."""
    chain = lane_chain(lane__weight_per_deployer=per_deployer)
    busy, quiet, other = deploy(chain, 0), deploy(chain, 0), deploy(chain, 1)
    due = chain.height + 5
    arm(busy, (due, 1), (due, 1))
    arm(other, (due, 1))
    arm(quiet, (due + 1, 1))
    arm(other, (due + 1, 1))
    chain.advance_to(due + 1)
    weights = {actor: timer.weight for actor, timer in decided(chain).items()}
    assert weights == {quiet.address: weight, other.address: WHOLE}
    chain.check_invariants()


def test_fires_are_counted_in_the_account_of_the_deployer_until_they_leave() -> None:
    """Those of two actors together, and they leave together; the actors' own accounts count none."""
    chain = lane_chain(lane__weight_per_deployer=1, lane__fairness_window_blocks=3)
    first, second = deploy(chain, 0), deploy(chain, 0)
    due = chain.height + 5
    arm(first, (due, 1), (due + 2, 1))
    arm(second, (due, 1))
    owner = chain.accounts[0].address
    chain.advance_to(due - 1)
    counted = []
    for _ in range(6):
        chain.chain.build()
        chain.check_invariants()
        counted.append(tuple(recent(chain, address) for address in (owner, first.address, second.address)))
    assert counted == [(2, 0, 0), (2, 0, 0), (3, 0, 0), (1, 0, 0), (1, 0, 0), (0, 0, 0)]


# The median of fires over many blocks


def test_median_of_fires_moves_by_a_part_of_the_way_when_it_is_smoothed() -> None:
    """A quarter of the way from 0 to 8 in each block: 2, 3.5, 4.625, to the nearest whole fire."""
    chain = lane_chain(lane__fires_median_blocks=4)
    actor = deploy(chain, 0)
    due = chain.height + 5
    arm(actor, *[(due, 1)] * 8, *[(due + later, 1) for later in (1, 2, 3)])
    chain.advance_to(due)
    medians = []
    for _ in range(3):
        chain.chain.build()
        medians.append(chain.chain.decisions(chain.height).median_fires)
    # The actor's own fires in between make the median 8, 9 and 10.
    assert medians == [2, 4, 5]
    assert chain.chain.store.read(SMOOTHED_KEY) is not None


def test_smoothed_median_comes_to_rest_below_or_at_the_median() -> None:
    """From below it ends fewer parts short than it has blocks, from above it ends exactly there."""
    for start, median in ((0, 7), (20 * WHOLE, 7), (5, 0)):
        value, before = start, -1
        while value != before:
            before, value = value, smoothed(value, median, 300)
        assert 0 <= median * WHOLE - value < 300
        assert start < median * WHOLE or value == median * WHOLE


# Weights that age


@pytest.mark.parametrize(("age_blocks", "late"), [(0, None), (4, 6), (32, 43)])
def test_timer_that_waits_overtakes_higher_tips_when_weights_age(age_blocks: int, late: int | None) -> None:
    """A lane of one fire a block, with a new timer that tips 100 in each: a tip of 30 waits until it weighs enough.

    Its actor weighs 2 and the other, which alone has fired, 1: it comes first once 30 × (2 + late ÷ age_blocks) is more
    than 100, which is when it is later than age_blocks × 4/3. It is due at an even height, from which its age counts.
    """
    chain = lane_chain(
        lane__weight_age_blocks=age_blocks,
        lane__basefee_max=1_000,
        lane__max_cycles_per_fire=20_000,
        timers__max_cycles_per_fire=20_000,
        timers__lane_cycles_per_block=20_000,
    )
    patient, rich = deploy(chain, 0), deploy(chain, 1)
    due = (chain.height // 2 + 8) * 2
    for number in range(0, 70, 35):
        arm(rich, *((due + later, 100) for later in range(number, number + 35)), gas_limit=20_000)
    arm(patient, (due, 30), gas_limit=20_000)
    chain.advance_to(due + 69)
    fired = [receipt.block_height - due for receipt in chain.receipts(origin="timer", actor=patient.address)]
    assert fired == ([] if late is None else [late])


@pytest.mark.parametrize("age_blocks", [1, 15, 16, 33, 320])
def test_age_counts_from_the_first_multiple_of_a_sixteenth(age_blocks: int) -> None:
    """Never before the height at which a timer is due, and less than a sixteenth of the time later."""
    for height in range(1, 100):
        start = ages_from(height, age_blocks)
        assert 0 <= start - height < max(1, age_blocks // 16)
        assert start % max(1, age_blocks // 16) == 0
        assert gained_weight(start, start, age_blocks) == 0
        assert gained_weight(start, start + age_blocks, age_blocks) == WHOLE
