"""What a check has found stands until anything changes: a transaction comes in as if it were checked at the last."""

from collections.abc import Callable
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.mempool.world import BASEFEE, World, name_of, person, small, transfer
from trailboss.chain.admission import standing_of
from trailboss.codec.wire import encode_transaction
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.errors import Rejection

HELD = standing_of(World().view, person(0)).balance
Event = Callable[[World], object]


def offered(nonce: int, raised: int, share: int = 0) -> Transaction:
    """Return a transfer of some tenths of what its sender holds, of which fee caps and tip are raised."""
    fees = dict.fromkeys(("max_fee_per_cycle", "max_fee_per_cell"), (2 + raised) * BASEFEE)
    instruction = Transfer(person(9), HELD * share // 10)
    return transfer(nonce=nonce, instruction=instruction, max_priority_fee_per_cycle=1 + raised, **fees)


OFFERED = st.builds(offered, st.integers(0, 2), st.integers(0, 2), st.sampled_from([0, 4, 6]))


def bring(transaction: Transaction) -> Event:
    """Return how another thread brings a transaction."""
    return lambda world: world.add(transaction)


def spend(world: World) -> None:
    """Build a block with a transfer that the mempool never saw."""
    world.chain.build([offered(standing_of(world.chain, person(0)).nonce, 0, 6)])
    world.go_on(1)


EVENTS = st.lists(
    st.one_of(OFFERED.map(bring), st.sampled_from([World.take, World.build, spend, lambda world: world.go_on(1)])),
    max_size=3,
)


@example(before=[], transaction=offered(0, 0), between=[bring(offered(0, 1))])
@example(before=[bring(offered(0, 0))], transaction=offered(0, 1), between=[World.take])
@example(before=[], transaction=offered(0, 0), between=[spend])
@given(before=EVENTS, transaction=OFFERED, between=EVENTS)
def test_check_stands_until_something_changes(
    before: list[Event], transaction: Transaction, between: list[Event]
) -> None:
    """Whatever other threads bring, or a block takes, between the check and the admission."""
    found = []
    for keeps_clearance in (True, False):
        world, clearance = small(transactions_max=4), None
        for event in before:
            event(world)
        with suppress(Rejection):
            clearance = world.mempool.check(world.view, transaction)
        for event in between:
            event(world)
        verdict = world.mempool.add(
            world.view,
            transaction,
            encode_transaction(transaction),
            name_of(transaction),
            clearance if keeps_clearance else None,
        )
        found.append((verdict, world.waiting(), world.mempool.statistics(), world.build(), world.waiting()))
    assert str(found[0]) == str(found[1])
