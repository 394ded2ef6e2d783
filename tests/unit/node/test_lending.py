"""Views that are lent: by number, for a while, and never too many."""

import asyncio
import gc
from weakref import ref

from tests.unit.node.service.conftest import running_node
from tests.unit.node.service.world import PATIENCE
from trailboss.chain import ChainView
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.view_leases import LENT_MAX, LENT_NANOSECONDS, Lender
from trailboss.testing import LocalChain


class Clock:
    """A clock in a hand."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def views(count: int) -> list[ChainView]:
    """Return a view of each of the first blocks of a chain."""
    with LocalChain() as chain:
        found = [chain.chain.publish()]
        while len(found) < count:
            chain.mine()
            found.append(chain.chain.publish())
    return found


def test_view_is_found_by_its_number_when_it_is_lent() -> None:
    """Each its own, and another number is nobody's."""
    first, second = views(2)
    lender = Lender(Clock())
    numbers = [lender.lend(first), lender.lend(second)]
    assert [lender.find(number) for number in numbers] == [first, second]
    assert lender.find(77) is None


def test_view_returns_when_nobody_has_asked_for_a_while() -> None:
    """Asking lends it anew; one nanosecond more than the lease and it is gone."""
    [view] = views(1)
    clock = Clock()
    lender = Lender(clock)
    number = lender.lend(view)
    for _ in range(3):
        clock.now += LENT_NANOSECONDS
        assert lender.find(number) is view
    clock.now += LENT_NANOSECONDS + 1
    assert lender.find(number) is None
    assert len(lender) == 0


def test_view_asked_for_longest_ago_returns_when_too_many_are_lent() -> None:
    """The one that was asked for last stays, though it was lent first."""
    [view] = views(1)
    lender = Lender(Clock())
    numbers = [lender.lend(view) for _ in range(LENT_MAX)]
    assert lender.find(numbers[0]) is view
    lender.lend(view)
    assert lender.find(numbers[0]) is view
    assert lender.find(numbers[1]) is None
    assert len(lender) == LENT_MAX


def test_view_is_let_go_of_with_the_next_block_when_its_lease_has_ended() -> None:
    """Though no program ever asks for a view again: it would keep what every later block changes."""
    clock = Clock()

    async def story() -> None:
        async with asyncio.timeout(PATIENCE), running_node(NodeOptions(pace=MANUAL), clock) as node:
            lent = ref(node.view)
            node.lender.lend(node.view)
            for waited, remaining in ((LENT_NANOSECONDS, 1), (1, 0)):
                clock.now += waited
                await node.development.mine(1)
                gc.collect()
                assert len(node.lender) == remaining
                assert (lent() is not None) == bool(remaining)

    asyncio.run(story())
