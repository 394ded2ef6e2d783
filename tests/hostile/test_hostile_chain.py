"""Hostile programs as timers of a chain, beside honest ones: they lose their fees, and change nothing else."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

import pytest

from tests.hostile.corpus import all_programs
from trailboss.testing import ActorHandle, LocalChain

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning"),
    # Python reports what a program's generators and finalizers raise when they are freed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FUNDS: Final = 10**13
START: Final = 60
BLOCKS: Final = 24
ROOM: Final[Mapping[str, int]] = {"timers.lane_cycles_per_block": 15_000_000}
"""Cycles for all fires of a block, so that no timer has to wait for another."""
HONEST = """
def go(payload):
    count = int(pvm_host.get_state(b"count") or b"0")
    pvm_host.set_state(b"count", b"%d" % (count + 1))
    pvm_host.set_state(b"at:%d" % pvm_host.block_height(), payload)
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"tick")
"""
ARM = """

def arm(payload):
    for after in (1, 9, 17):
        pvm_host.schedule_timer(pvm_host.block_height() + int(payload) + after, b"")


def handle_timer(payload):
    return go(payload)
"""
_NAMES = """
    argument-dag argument-huge-int argument-int-subclass argument-itself bare-except base-exception-group call-depth
    catch-recursion charge-gas-all charge-gas-huge class-many close-refuses close-spins custom-base
    emit-forever except-chain except-class-lies exit-answers-true exit-raises finally-spins finally-yields
    for-while-true generator-endless generator-throw-spin getrecursion-eq group-deep host-error-forged init-raises
    lambda-recursion list-append message-long message-name-long nested-loops recursion recursion-mutual
    refusal-by-setattr return-deep return-itself slots-many str-of-error-spins str-of-error-writes timers-many
    traceback-kept with-many
"""
SAMPLE = _NAMES.split()
"""Programs that the native engine ends at once: time, memory, exceptions, host calls."""


class Lives(NamedTuple):
    """A chain after some blocks, and what became of its honest and its hostile actors."""

    chain: LocalChain
    honest: list[ActorHandle]
    hostile: list[ActorHandle]

    def fires(self, actors: list[ActorHandle]) -> list[tuple[int, bytes, str, int]]:
        """Return the fires of some actors: height, actor, status and cycles."""
        wanted = [actor.address for actor in actors]
        receipts = self.chain.receipts(START, origin="timer")
        return [(e.block_height, e.actor, e.status, e.cycles_used) for e in receipts if e.actor in wanted]


@cache
def live(*, with_hostile: bool, with_room: bool) -> Lives:
    """Return a chain on which five honest actors tick in every block, beside three timers of each hostile program."""
    programs = all_programs()
    chain = LocalChain(params=ROOM if with_room else None)
    owner, stranger = chain.accounts[:2]
    honest = [chain.deploy(HONEST + ARM, sender=owner, value=FUNDS) for _ in range(5)]
    sources = [programs[name].source for name in SAMPLE] if with_hostile else []
    hostile = [chain.deploy(source + ARM, sender=stranger, value=FUNDS) for source in sources]
    chain.advance_to(START)
    with chain.one_block():
        for actor in honest:
            actor.call("handle_timer", b"", sender=owner)
    with chain.one_block():
        for place, actor in enumerate(hostile):
            actor.call("arm", b"%d" % (place % 8), sender=stranger)
    chain.advance_to(START + BLOCKS + 2)
    return Lives(chain, honest, hostile)


def test_honest_state_is_that_of_a_chain_without_hostile_timers() -> None:
    """Each honest timer fires in its own block, at the same cost, and leaves the same state."""
    alone, beside = (live(with_hostile=each, with_room=True) for each in (False, True))

    assert len(beside.fires(beside.hostile)) == 3 * len(SAMPLE)
    assert beside.fires(beside.honest) == alone.fires(alone.honest)
    assert len(beside.fires(beside.honest)) == 5 * (BLOCKS + 1)
    for one, other in zip(alone.honest, beside.honest, strict=True):
        assert dict(one.storage) == dict(other.storage)


def test_no_honest_timer_is_lost_when_hostile_ones_fill_the_blocks() -> None:
    """What waits for room fires later; each honest actor always has its next timer."""
    crowded = live(with_hostile=True, with_room=False)
    fired = crowded.fires(crowded.honest)

    assert all(status == "ok" for _, _, status, _ in fired)
    for actor in crowded.honest:
        count = int(actor.storage[b"count"])
        # The first count is the call that starts it.
        assert count == 1 + sum(address == actor.address for _, address, _, _ in fired)
        assert len(crowded.chain.timers(actor=actor)) == 1


@pytest.mark.parametrize("with_room", [True, False])
def test_money_is_conserved_and_hostile_frames_pay(with_room: bool) -> None:
    """Every fire of a hostile program costs its actor something, and the sum of all money stays."""
    lives = live(with_hostile=True, with_room=with_room)
    fired = lives.fires(lives.hostile)

    lives.chain.check_invariants()
    assert all(cycles > 0 for _, _, _, cycles in fired)
    for actor in lives.hostile:
        assert lives.chain.balance(actor) < FUNDS or not any(address == actor.address for _, address, _, _ in fired)
