"""Random histories on development chains, in which somebody interferes all the time: everything still adds up."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from msgspec.structs import replace as changed

from tests.model.histories import CALLED, Call, Dice, History, seeded
from tests.model.hunt import MADE
from tests.model.session import Session
from trailboss.chain.chain import Chain
from trailboss.chain.drafts import Terms, draft_unsigned
from trailboss.chain.export import export_chain, load_chain
from trailboss.chain.replay import verify_chain
from trailboss.crypto.signatures import address_of
from trailboss.model.actors import Account
from trailboss.model.blocks import Block, Origin
from trailboss.model.events import TIMER_MOVED
from trailboss.model.timers import Timer
from trailboss.model.transactions import (
    CancelTimer,
    ClearMocks,
    Instruction,
    MoveTimer,
    SetBalance,
    SetMock,
    SetStorage,
    Transaction,
    Transfer,
    sign_transaction,
)
from trailboss.primitives.octets import Address

SHARE = settings.default.max_examples * 2 // 10
"""Every example builds its chain several times."""

KEY = b"\x99" * 32
MEDDLER = address_of(KEY)
TERMS = Terms(cycles_limit=30_000, cells_limit=600)
HOW_FAR = (1, 1, 1, 0, 2, 3, 8, 40, 1_000)


@dataclass
class Standing:
    """What `Session` asks of its model to make transactions, answered by the chain."""

    chain: Chain

    @property
    def world(self) -> "Standing":
        return self

    @property
    def height(self) -> int:
        return self.chain.height

    @property
    def timers(self) -> list[Timer]:
        return list(self.chain.timers())

    def account(self, address: bytes) -> Account:
        return self.chain.account(address) or Account()

    def next_payer(self) -> tuple[bytes, int]:
        return self.timers[0].fee_payer, 1

    def next_prices(self) -> tuple[int, int]:
        return self.chain.rules().user_basefees()


class MeddledSession(Session):
    """One history on a development chain, without the slow model: in most blocks somebody interferes.

    Attributes:
        done: How often each came about, by a name.
    """

    def __init__(self, history: History, dice: Dice) -> None:
        super().__init__(history)
        ordinary = self.chain.genesis
        genesis = replace(
            ordinary,
            development=True,
            system_deployers=(*ordinary.system_deployers, MEDDLER),
            accounts={**ordinary.accounts, MEDDLER: 10**14},
        )
        self.history = history
        self.engine = self._engine
        self.chain = Chain(genesis, self.engine)
        self.model = Standing(self.chain)
        self.done: Counter[str] = Counter()
        self._dice = dice

    def build(self, calls: tuple[Call, ...]) -> None:
        """Build one block of a history's calls, with interferences among them."""
        offered = [transaction for transaction, _ in self.transactions(calls)]
        for interference in self._interferences():
            offered.insert(self._dice.integer(0, len(offered)), interference)
        nonces = iter(sorted(each.nonce for each in offered if each.sender == MEDDLER))
        applied = self.chain.build([self._finished(each, nonces) for each in offered])
        self.chain.check_invariants()
        self._count(applied.block)

    def idle(self, blocks: int) -> None:
        """Advance by blocks without transactions."""
        list(self.chain.advance_to(self.chain.height + blocks))
        self.chain.check_invariants()

    def _interferences(self) -> Iterator[Transaction]:
        chain, dice = self.chain, self._dice
        for waiting in range(dice.pick((0, 1, 2, 4))):
            yield draft_unsigned(chain, self._instruction_of(dice), MEDDLER, terms=TERMS, waiting=waiting)
        if dice.often(40):
            # Somebody else's money, taken without asking.
            yield draft_unsigned(chain, Transfer(MEDDLER, 1), self._somebody(), terms=TERMS)

    def _instruction_of(self, dice: Dice) -> Instruction:
        actors = [Address(address) for address, account in self.chain.accounts() if account.code_hash]
        if actors and dice.often(35):
            return self._cheat(dice.pick(actors), dice)
        live = list(self.chain.timers())
        if not live or dice.often(20):
            payers = [Address(timer.fee_payer) for timer in live]
            whose = dice.pick(payers) if payers and dice.often(60) else self._somebody()
            return SetBalance(whose, dice.pick((10**11, 0, 1, 10**8, 10**20)))
        timer = dice.pick(live)
        if dice.often(20):
            return CancelTimer(timer.timer_id)
        height = timer.expires_at if dice.often(20) else self.chain.height + dice.pick(HOW_FAR)
        return MoveTimer(timer.timer_id, height)

    @staticmethod
    def _cheat(actor: Address, dice: Dice) -> Instruction:
        """Return an instruction that changes an actor's storage, or what calls of it are answered."""
        handler = dice.pick(CALLED)
        return dice.pick(
            (
                SetStorage(actor, dice.pick((b"a", b"n", b"zz")), dice.pick((None, b"", b"7"))),
                SetMock(actor, handler, None, dice.pick((b"", b"9")), None, dice.pick((None, 1, 3))),
                SetMock(actor, handler, dice.pick((b"\x02", b"\x03")), b"", "no", dice.pick((0, 1, 2))),
                SetMock(actor, handler, None, b"9"),
                ClearMocks(),
            )
        )

    def _somebody(self) -> Address:
        return self._dice.pick([Address(address) for address, _ in self.chain.accounts() if address != MEDDLER])

    def _finished(self, transaction: Transaction, nonces: Iterator[int]) -> Transaction:
        """Give what the meddler sends its nonce, in the order of the block, and some of it a signature."""
        if transaction.sender != MEDDLER:
            return transaction
        ordered = changed(transaction, nonce=next(nonces))
        return sign_transaction(ordered, KEY) if self._dice.often(50) else ordered

    def _count(self, block: Block) -> None:
        receipts = [receipt for receipt in block.receipts if receipt.origin is Origin.TRANSACTION]
        moved = set()
        for transaction, receipt in zip(block.transactions, receipts, strict=True):
            signed = "signed" if any(transaction.signature) else "unsigned"
            self.done[f"{signed} {transaction.instruction.name} {receipt.status.value}"] += 1
            moved.update(event.timer_id for event in receipt.events if event.name == TIMER_MOVED)
        fired = {receipt.timer_id for receipt in block.receipts if receipt.origin is Origin.TIMER}
        self.done["moved and fired in one block"] += len(moved & fired)


def played(mechanism: str, seed: int) -> MeddledSession:
    """Return a session of a history and interferences that follow from a seed."""
    session = MeddledSession(MADE[mechanism](seeded(seed)), Dice(Random(~seed).randint))
    session.play(session.history.blocks)
    return session


@given(st.sampled_from(sorted(MADE)), st.integers(0, 2**32))
@settings(max_examples=SHARE)
def test_chain_is_the_same_when_it_is_verified_exported_and_loaded(mechanism: str, seed: int) -> None:
    """Every block comes out again from genesis and from a file, with the same roots."""
    session = played(mechanism, seed)
    report = verify_chain(session.chain, engine=session.engine)
    assert report.ok, report
    with tempfile.TemporaryDirectory() as folder:
        export_chain(session.chain, Path(folder, "export"))
        loaded = load_chain(Path(folder, "export"), engine=session.engine)
    assert [block.hash for block in loaded.blocks] == [block.hash for block in session.chain.blocks]
    assert loaded.state_root == session.chain.state_root
    loaded.check_invariants()


@given(st.sampled_from(sorted(MADE)), st.integers(0, 2**32), st.integers(1, 40))
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_they_were_dropped_and_are_built_again(mechanism: str, seed: int, depth: int) -> None:
    """Timers, supply and mechanism go back with the chain, wherever timers had been moved meanwhile."""
    session = played(mechanism, seed)
    chain = session.chain
    blocks = list(chain.blocks)
    chain.reorg(min(depth, chain.height))
    chain.check_invariants()
    for block in blocks[chain.height + 1 :]:
        chain.build(block.transactions)
    assert [block.hash for block in chain.blocks] == [block.hash for block in blocks]
    chain.check_invariants()


EVERYWHERE = {f"{signed} {name} ok" for signed in ("signed", "unsigned") for name in ("MoveTimer", "SetBalance")} | {
    *(f"unsigned {name} ok" for name in ("SetStorage", "SetMock", "ClearMocks")),
    "unsigned SetMock reverted",
    "unsigned MoveTimer reverted",
    "unsigned CancelTimer ok",
    "unsigned Transfer ok",
}


@pytest.mark.parametrize("mechanism", sorted(MADE))
def test_everything_that_can_be_done_to_a_chain_is_done_in_these_histories(mechanism: str) -> None:
    """Each kind is carried out and refused, and forced timers fire at once where they can."""
    done: Counter[str] = Counter()
    for seed in range(16):
        done += played(mechanism, seed).done
    assert done.keys() >= EVERYWHERE
    assert (done["moved and fired in one block"] > 0) == (mechanism != "auction")
