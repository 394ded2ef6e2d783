"""What a block is offered, and what the mempool makes of what became of it."""

from msgspec.structs import replace

from tests.unit.mempool.world import BASEFEE, CELLS, CYCLES, World, name_of, person, restless, small, transfer
from trailboss.mempool import End, Ending
from trailboss.model.transactions import SetBalance, Transaction, Transfer

ALICE = person(0)


def tipped(sender: int, tip: int, nonce: int = 0, **changes: object) -> Transaction:
    """Return a transfer with a tip."""
    return transfer(sender, nonce, max_priority_fee_per_cycle=tip, **changes)


def told(endings: list[Ending]) -> list[tuple[bytes, str, int | None, str | None]]:
    """Return hash, end, code and words of each."""
    return [
        (bytes(each.hash), each.end.value, None, None)
        if each.rejection is None
        else (bytes(each.hash), each.end.value, each.rejection.reason.code, each.rejection.what)
        for each in endings
    ]


# Taking


def test_transaction_is_not_taken_when_one_before_it_is_missing() -> None:
    """Nor when its fee caps do not cover the basefees of the next block."""
    world = restless()
    world.add(transfer(0, nonce=1))
    priced_out = transfer(1, max_fee_per_cycle=BASEFEE + 1)
    cells_out = transfer(2, max_fee_per_cell=BASEFEE + 1)
    for transaction in (priced_out, cells_out, transfer(3), transfer(4)):
        world.add(transaction)
    world.mempool.take(world.view, 10**9, 10**9, 0)
    world.chain.build([transfer(3), transfer(4)])
    world.view = world.chain.publish()
    world.mempool.settle(world.view, [name_of(transfer(3)), name_of(transfer(4))], {})
    assert world.view.rules().user_basefees() == (11_250, 11_250)
    assert world.take() == []
    assert world.mempool.statistics().executable == 2
    world.go_on(2)
    assert world.take() == [priced_out, cells_out]


def test_block_is_offered_no_more_than_it_may_hold() -> None:
    """Each counts with the least that it uses, and the last with its limit; what can be in no block is passed over."""
    world = small(passed_over_max=1)
    wide = [tipped(0, 9, cycles_limit=4 * CYCLES), tipped(1, 8, cycles_limit=4 * CYCLES)]
    narrow = [tipped(2, 7), tipped(3, 6)]
    for transaction in (*wide, *narrow, tipped(4, 10, cycles_limit=6 * CYCLES)):
        world.add(transaction)

    def taken(cycles_max: int, cells_max: int = 10**9) -> list[Transaction]:
        return [pooled.transaction for pooled in world.mempool.take(world.view, cycles_max, cells_max, 100)]

    assert taken(5 * CYCLES) == [*wide, *narrow]
    assert taken(4 * CYCLES) == [wide[0], *narrow]
    assert taken(5 * CYCLES, 2 * CELLS) == wide
    assert taken(CYCLES) == [narrow[0]]
    assert taken(CYCLES - 1) == []


# Following


def test_last_transactions_leave_when_the_balance_does_not_cover_all() -> None:
    """Those that must run first stay."""
    world = World()
    cost = 2 * BASEFEE * (CYCLES + CELLS) + 1
    names = [world.add(transfer(nonce=nonce)).hash for nonce in range(3)]
    world.add(transfer(1))
    change = transfer(instruction=SetBalance(ALICE, 2 * cost + 5))
    world.chain.build([replace(change, sender=world.chain.genesis.system_deployers[0])])
    [ending] = world.go_on(0)
    assert told([ending]) == [
        (
            names[2],
            "invalidated",
            1004,
            f"{ALICE} holds {2 * cost + 5} base units, of which its other transactions may need {2 * cost}, its limits "
            f"at its fee caps need {cost - 1}",
        )
    ]
    assert world.waiting() == [*names[:2], name_of(transfer(1))]


def test_transaction_expires_when_no_block_takes_it_for_too_long() -> None:
    """It hears since when."""
    world = small(expiry_blocks=5)
    world.go_on(2)
    name = world.add(transfer(nonce=1)).hash
    assert world.go_on(4) == []
    assert told(world.go_on(1)) == [(name, "expired", 1905, f"{name} has waited since block 2, and this is block 7")]
    assert len(world.mempool) == 0


def test_transactions_come_back_when_their_block_is_dropped() -> None:
    """In their order; what cannot run in the other branch is told of."""
    world = World()
    transactions = [transfer(nonce=nonce) for nonce in range(3)]
    for transaction in transactions:
        world.add(transaction)
    world.build()
    world.add(transfer(nonce=3))
    world.chain.reorg(1)
    world.chain.build([transfer(instruction=Transfer(person(5), 7))])
    world.view = world.chain.publish()
    endings = world.mempool.settle(world.view, (), {}, transactions)
    first = name_of(transactions[0])
    assert told(endings) == [(first, "invalidated", 1002, f"{ALICE} is at nonce 1, the transaction has 0")]
    assert world.mempool.refusal(first) is not None
    assert world.take() == [*transactions[1:], transfer(nonce=3)]


def test_everything_is_looked_at_again_when_no_picture_is_known() -> None:
    """A chain that nobody published remembers no earlier state."""
    world = World()
    name = world.add(transfer()).hash
    world.chain.build([tipped(0, 5)])
    [ending] = world.mempool.settle(world.chain, (), {})
    assert (ending.hash, ending.end) == (name, End.INVALIDATED)
    second = world.add(transfer(nonce=1)).hash
    world.chain.build([tipped(0, 5, nonce=1)])
    [ending] = world.mempool.settle(world.chain, (), {})
    assert (ending.hash, ending.end) == (second, End.INVALIDATED)
