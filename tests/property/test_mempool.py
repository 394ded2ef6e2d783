"""The mempool holds, takes and says what a plain list would, whatever comes, on a chain that goes on and back."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.mempool import SlowMempool, offer
from trailboss.chain import Chain
from trailboss.chain.admission import standing_of
from trailboss.chain.development import development_genesis
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import Genesis
from trailboss.mempool import Ending, Journal, Mempool, MempoolLimits
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32

SENDERS = [Address(bytes([number]) * 20) for number in range(1, 6)]
SINK = Address(b"\x99" * 20)
BASEFEE = 10_000
LIMITS = MempoolLimits(
    transactions_max=8,
    bytes_max=1_300,
    transaction_bytes_max=300,
    sender_transactions_max=4,
    nonces_ahead_max=5,
    replacement_percent=10,
    expiry_blocks=6,
    remembered_max=10_000,
    passed_over_max=2,
)
BALANCE = 1_500_000_000
EXAMPLES = settings.default.max_examples // 2
FEES = 10_000 * 30_000 + 500 * 30_000
ROOM = {"cycles_max": 80_000, "cells_max": 4_000}


TERMS = {
    "ahead": ([0, 1, 2, 3, 4, 5, 6, -1], [40, 20, 15, 10, 5, 4, 3, 3]),
    "tip": ([0, 5, 100, 110, 121, 2_000, 9_000], [1, 1, 1, 1, 1, 2, 2]),
    "cap": ([30_000, 20_000, 13_000, 13_001, 11_500, BASEFEE + 100, BASEFEE - 1], [8, 8, 4, 4, 4, 2, 1]),
    "cell_cap": ([30_000, 33_000, 20_000, 11_000, BASEFEE - 1], [8, 8, 4, 3, 1]),
    "limit": ([10_000, 30_000, 70_000, 80_001, 9_999], [40, 3, 3, 1, 1]),
    "amount": ([1, 2, BALANCE // 4], [4, 4, 1]),
    "padding": ([0, 1, 2, 3, 8], [10, 5, 3, 3, 1]),
}
"""What transactions are like, and how often. Some are refused, and most are not."""


def genesis() -> Genesis:
    """Return five purses that hold some ten transactions each, and blocks that are full with eight."""
    small = {
        "fees.cycles_target": 40_000,
        "fees.cells_target": 2_000,
        "limits.block_cycles_max": 80_000,
        "limits.block_cells_max": 4_000,
    }
    base = development_genesis(overrides=small)
    return Genesis(
        chain_id=base.chain_id,
        proposer=base.proposer,
        accounts={**base.accounts, **dict.fromkeys(SENDERS, BALANCE)},
        overrides=base.overrides,
        development=True,
    )


def described(endings: list[Ending]) -> list[tuple[bytes, str, int | None]]:
    """Return endings as the model tells them."""
    return [
        (bytes(ending.hash), ending.end.value, None if ending.rejection is None else ending.rejection.reason.code)
        for ending in endings
    ]


class MempoolMachine(RuleBasedStateMachine):
    """A chain, a mempool with a journal, and the list that both are compared with."""

    sent = Bundle("sent")

    @initialize()
    def begin(self) -> None:
        """Start with nothing."""
        self.folder = tempfile.TemporaryDirectory()
        self.chain = Chain(genesis())
        self.view = self.old_view = self.chain.publish()
        self.path = Path(self.folder.name) / "mempool.journal"
        self.model = SlowMempool(LIMITS)
        self.admitted: list[bytes] = []
        self.ended: list[bytes] = []
        self.offered: list[Transaction] = []
        self.pool = self.opened()
        self.is_taken = False

    def opened(self) -> Mempool:
        """Return a mempool over the journal."""
        self.journal = Journal.open(self.path, self.chain.genesis.instance_id())
        return Mempool(LIMITS, self.journal)

    def teardown(self) -> None:
        """Put the files away."""
        if hasattr(self, "journal"):
            self.journal.close()
            self.folder.cleanup()

    # What comes

    @rule(target=sent, seed=st.integers(0, 2**32), count=st.integers(1, 8))
    def bring(self, seed: int, count: int) -> MultipleResults[Transaction]:
        """Bring transactions, with an old picture of the chain."""
        dice = Random(seed)
        return multiple(*(self.bring_one(dice) for _ in range(count)))

    def bring_one(self, dice: Random) -> Transaction:
        """Bring a transaction and return it."""
        sender = dice.choice(SENDERS)
        wish = {name: dice.choices(values, weights)[0] for name, (values, weights) in TERMS.items()}
        transaction = Transaction(
            chain_id=1,
            nonce=max(standing_of(self.view, sender).nonce + wish["ahead"], 0),
            instruction=Transfer(SINK, wish["amount"]),
            cycles_limit=wish["limit"],
            cells_limit=500,
            max_fee_per_cycle=wish["cap"],
            max_fee_per_cell=wish["cell_cap"],
            max_priority_fee_per_cycle=wish["tip"],
            max_priority_fee_per_cell=0,
            sender=sender,
            access_list=((SINK, (bytes(32),) * wish["padding"]),) if wish["padding"] else (),
        )
        self.offer(transaction)
        return transaction

    @rule(transaction=sent)
    def bring_again(self, transaction: Transaction) -> None:
        """Bring what was brought before."""
        self.offer(transaction)

    @rule(transaction=sent, rise=st.sampled_from([9, 10, 11]))
    def outbid(self, transaction: Transaction, rise: int) -> None:
        """Bring one for the place of another."""

        def raised(offered: int) -> int:
            return -(-offered * (100 + rise) // 100)

        self.offer(
            Transaction(
                chain_id=1,
                nonce=transaction.nonce,
                instruction=transaction.instruction,
                cycles_limit=transaction.cycles_limit,
                cells_limit=transaction.cells_limit,
                max_fee_per_cycle=raised(transaction.max_fee_per_cycle),
                max_fee_per_cell=raised(transaction.max_fee_per_cell),
                max_priority_fee_per_cycle=raised(transaction.max_priority_fee_per_cycle),
                max_priority_fee_per_cell=0,
                sender=transaction.sender,
            )
        )

    def offer(self, transaction: Transaction) -> None:
        """Bring a transaction to both."""
        raw = encode_transaction(transaction)
        name = Hash32(sha256(raw))
        verdict = self.pool.add(self.old_view, transaction, raw, name)
        code = None if verdict.rejection is None else verdict.rejection.reason.code
        before = len(self.model.outcomes)
        assert (verdict.status.value, code) == self.model.add(self.view, transaction, bytes(name), len(raw))
        assert sorted(described(list(verdict.endings))) == sorted(self.model.outcomes[before:])
        if verdict.status.value in ("accepted", "replaced"):
            self.admitted.append(bytes(name))
        self.note(list(verdict.endings))

    # What the chain does

    @rule(count=st.integers(0, 9))
    def take(self, count: int) -> None:
        """Take for a block; more may come before it is built."""
        expected = self.model.take(self.view, **ROOM, count_max=count)
        taken = self.pool.take(self.view, **ROOM, count_max=count)
        assert [bytes(pooled.hash) for pooled in taken] == expected
        self.offered = [pooled.transaction for pooled in taken]
        assert all(offer(self.view, transaction) >= 0 for transaction in self.offered)
        for sender in SENDERS:
            nonces = [transaction.nonce for transaction in self.offered if transaction.sender == sender]
            first = standing_of(self.view, sender).nonce
            assert nonces == list(range(first, first + len(nonces)))
        self.is_taken = True

    @rule(count=st.integers(4, 9))
    def take_and_build(self, count: int) -> None:
        """The usual way."""
        self.take(count)
        self.build()

    @precondition(lambda self: self.is_taken)
    @rule(sender=st.sampled_from([None, *SENDERS]), is_all=st.booleans())
    def build(self, sender: Address | None = None, is_all: bool = False) -> None:
        """Build the block of what was taken, maybe behind a transaction that the mempool never saw."""
        others = [] if sender is None else [self.spending(sender, is_all)]
        applied = self.chain.build([*others, *self.offered])
        refusals = {id(transaction): rejection for transaction, rejection in applied.refused}
        names = [(Hash32(sha256(encode_transaction(each))), refusals.get(id(each))) for each in self.offered]
        included = [name for name, rejection in names if rejection is None]
        self.settle(included, {name: rejection for name, rejection in names if rejection is not None})

    @rule(sender=st.sampled_from(SENDERS), is_all=st.booleans())
    def spend_elsewhere(self, sender: Address, is_all: bool) -> None:
        """A transaction that the mempool never saw uses a nonce, and money."""
        self.chain.build([self.spending(sender, is_all)])
        self.settle([], {})

    def spending(self, sender: Address, is_all: bool) -> Transaction:
        """Return a transaction that sends nothing, or all that its sender has but for its own fees."""
        standing = standing_of(self.chain, sender)
        return Transaction(
            chain_id=1,
            nonce=standing.nonce,
            instruction=Transfer(SINK, max(standing.balance - FEES, 0) if is_all else 0),
            cycles_limit=10_000,
            cells_limit=500,
            max_fee_per_cycle=30_000,
            max_fee_per_cell=30_000,
            max_priority_fee_per_cycle=0,
            max_priority_fee_per_cell=0,
            sender=sender,
        )

    @rule(blocks=st.integers(1, 4))
    def wait(self, blocks: int) -> None:
        """Blocks go by."""
        list(self.chain.advance_to(self.chain.height + blocks))
        self.settle([], {})

    @rule(depth=st.integers(1, 4), keep=st.booleans())
    def reorganize(self, depth: int, keep: bool) -> None:
        """Drop blocks; their transactions may come back."""
        depth = min(depth, self.chain.height)
        if depth == 0:
            return
        dropped = self.chain.blocks[self.chain.height - depth + 1 :] if keep else []
        self.chain.reorg(depth)
        self.settle([], {}, [transaction for block in dropped for transaction in block.transactions])

    def settle(
        self, included: list[Hash32], refused: dict[Hash32, Rejection], returned: list[Transaction] | None = None
    ) -> None:
        """Tell both what the chain has done."""
        self.old_view, self.view = self.view, self.chain.publish()
        self.is_taken = False
        returned = returned or []
        raws = [encode_transaction(transaction) for transaction in returned]
        known = {bytes(pooled.hash) for pooled in self.pool.pooled()}
        endings = self.pool.settle(self.view, included, refused, returned)
        before = len(self.model.outcomes)
        self.model.settle(
            self.view,
            [bytes(name) for name in included],
            {bytes(name): rejection.reason.code for name, rejection in refused.items()},
            [(each, sha256(raw), len(raw)) for each, raw in zip(returned, raws, strict=True)],
        )
        assert sorted(described(endings), key=str) == sorted(self.model.outcomes[before:], key=str)
        # Those that cannot come back count as having come, since their end is told.
        self.admitted += [sha256(raw) for raw in raws if sha256(raw) not in known]
        self.note(endings)

    @rule(is_behind=st.booleans(), is_tidy=st.booleans())
    def restart(self, is_behind: bool, is_tidy: bool) -> None:
        """Stop and start again, maybe after a block of which the mempool never heard, or with a journal made anew."""
        if is_tidy:
            self.journal.rewrite(self.pool.pooled())
        if is_behind:
            self.chain.build([pooled.transaction for pooled in self.pool.take(self.view, **ROOM, count_max=3)])
            self.old_view = self.view = self.chain.publish()
        self.journal.close()
        self.pool = self.opened()
        recovery = self.pool.recover(self.view)
        before = len(self.model.outcomes)
        self.model.restart(self.view)
        assert described(recovery.endings) == self.model.outcomes[before:]
        assert is_behind or not recovery.endings
        assert (recovery.admitted, recovery.damage) == (len(self.model.entries), None)
        self.old_view, self.is_taken = self.view, False
        self.note(recovery.endings)

    # What always holds

    def note(self, endings: list[Ending]) -> None:
        """Count who has gone."""
        self.ended += [bytes(ending.hash) for ending in endings]

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        """The same transactions in the same order, of the same age, by every way of looking."""
        expected = sorted(self.model.entries, key=lambda each: each.arrival)
        found = self.pool.pooled()
        assert [(each.hash, each.admitted_height) for each in found] == [(each.name, each.height) for each in expected]
        assert self.pool.page(1, 3) == found[1:4]
        for sender in SENDERS:
            assert [each.hash for each in self.pool.of_sender(sender)] == [e.name for e in self.model.of(sender)]
            assert self.pool.next_nonce(self.old_view, sender) == self.model.next_nonce(self.view, sender)

    @invariant()
    def stays_within_its_limits(self) -> None:
        """Transactions, bytes, transactions of a sender, and what he can pay."""
        statistics = self.pool.statistics()
        assert statistics.transactions == len(self.pool) <= LIMITS.transactions_max
        assert statistics.bytes == sum(each.size for each in self.model.entries) <= LIMITS.bytes_max
        executable = [self.model.worth(self.view, each, self.model.entries)[0] for each in self.model.entries]
        assert statistics.executable == sum(executable)
        for sender in SENDERS:
            mine = self.pool.of_sender(sender)
            assert len(mine) <= LIMITS.sender_transactions_max
            assert sum(pooled.cost for pooled in mine) <= standing_of(self.view, sender).balance
            assert all(pooled.transaction.nonce >= standing_of(self.view, sender).nonce for pooled in mine)

    @invariant()
    def tells_of_every_transaction_once(self) -> None:
        """Whoever came waits, or has ended; and as often as it came."""
        waiting = [bytes(pooled.hash) for pooled in self.pool.pooled()]
        assert sorted(self.admitted) == sorted(self.ended + waiting)


@pytest.mark.slow
def test_mempool_equals_a_list() -> None:
    """Whatever comes, and whatever the chain does."""
    run_state_machine_as_test(MempoolMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=30))
