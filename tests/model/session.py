"""A chain and its slow model, side by side: every block is built by both and compared."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.model.auction import AuctionBlocks
from tests.model.blocks import Report
from tests.model.globalbox import GlobalboxBlocks
from tests.model.histories import BALANCES, USERS, Call, History
from tests.model.lane import Model
from tests.model.outcomes import Outcomes
from tests.model.records import (
    check,
    compare_auction,
    compare_globalbox,
    compare_lane,
    event_of,
    ranked_of,
    receipt_of,
    timer_of,
)
from tests.model.scripted_engine import ScriptedEngine
from tests.model.world import Tx
from trailboss.chain.chain import Chain
from trailboss.crypto.digest import keccak256
from trailboss.crypto.signatures import address_of
from trailboss.execution.genesis import Genesis
from trailboss.model import transactions as wire
from trailboss.model.blocks import Block
from trailboss.model.configs import amount_of
from trailboss.model.transactions import Instruction, Transaction, derive_actor_address, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.state.disk.store import StoreSettings

KEYS = {user: bytes([number]) * 32 for number, user in enumerate(USERS, start=1)}
USER_ADDRESSES = {user: address_of(key) for user, key in KEYS.items()}
PROPOSER = Address(b"\xaa" * 20)
GHOST = Address(b"\x77" * 20)
SALT = b"history"
BAD_SOURCE = b"{ no script"
AMOUNT_MAX = 2**64 - 1
SETTINGS = StoreSettings(flush_interval=4, kept_journal=64, unflushed_values=3)
"""A store that flushes so often that a short history meets it many times."""


class Session:
    """One history on its way.

    Attributes:
        chain: The chain under test.
        model: The slow model.
        hashes: Of the blocks, from the first one.
    """

    def __init__(self, history: History, directory: Path | None = None) -> None:
        self._sources = [source.encode() for source in history.sources]
        self.names = dict(names_of(self._sources))
        find = self.names.__getitem__
        self._directory = directory
        self._mechanism = history.mechanism
        accounts = {USER_ADDRESSES[user]: balance for user, balance in BALANCES.items()}
        governor = USER_ADDRESSES["governor"]
        genesis = Genesis(
            chain_id=1,
            preset="minimal",
            mechanism=history.mechanism,
            proposer=PROPOSER,
            system_deployers=(governor,),
            accounts=accounts,
            overrides=history.overrides,
        )
        params = genesis.params()
        self._engine = ScriptedEngine(params.costs, find)
        self.chain = (
            Chain(genesis, self._engine)
            if directory is None
            else Chain.create(directory, genesis, self._engine, settings=SETTINGS)
        )
        tables = {subject: table for subject, table in msgspec.to_builtins(params).items() if isinstance(table, dict)}
        balances = {bytes(address): balance for address, balance in accounts.items()}
        self.model = MODELS[history.mechanism](tables, balances, {bytes(governor)}, bytes(PROPOSER), find)
        self._outcomes = Outcomes()
        self.hashes: list[bytes] = []

    @property
    def seen(self) -> Counter[str]:
        """How often each outcome occurred, by a name."""
        return self._outcomes.seen

    def reopen(self) -> None:
        """Close the chain and open it again from its directory."""
        assert self._directory is not None
        self.chain.close()
        self.chain = Chain.open(self._directory, self._engine, settings=SETTINGS)

    def play(self, blocks: tuple[tuple[Call, ...] | int, ...]) -> None:
        """Build all blocks of a history, or a part of them."""
        for block in blocks:
            if isinstance(block, int):
                self.idle(block)
            else:
                self.build(block)

    def build(self, calls: tuple[Call, ...]) -> None:
        """Build one block with transactions in both, and compare."""
        made = list(self.transactions(calls))
        applied = self.chain.build([transaction for transaction, _ in made])
        report = self._model_build([tx for _, tx in made])
        offered = [transaction for transaction, _ in made]
        refused = [(_place(offered, transaction), rejection.reason.code) for transaction, rejection in applied.refused]
        check("refused", refused, report.refused)
        self._compare(applied.block, report)

    def idle(self, blocks: int) -> None:
        """Advance both by blocks without transactions, and compare each."""
        for block in self.chain.advance_to(self.chain.height + blocks):
            self._compare(block, self._model_build([]))

    def _model_build(self, txs: list[Tx]) -> Report:
        parent = self.chain.blocks[self.model.height]
        self.model.parent_root = bytes(parent.header.state_root)
        return self.model.build(txs)

    def branch(self, blocks: tuple[tuple[Call, ...] | int, ...], *, reopened: bool = False) -> None:
        """Build blocks, and go back to before them; on disk perhaps after a restart."""
        mark, model, outcomes, count = self.chain.snapshot(), self.model.copy(), self._outcomes, len(self.hashes)
        self._outcomes = Outcomes()
        self.play(blocks)
        if reopened:
            self.reopen()
        self.chain.revert(mark)
        self.model, self._outcomes = model, outcomes
        del self.hashes[count:]
        self._compare_state()
        self.chain.check_invariants()

    def transactions(self, calls: tuple[Call, ...]) -> Iterator[tuple[Transaction, Tx]]:
        """Yield each transaction in the chain's form and in the model's."""
        nonces = {user: self.model.world.account(USER_ADDRESSES[user]).nonce for user in USERS}
        for call in calls:
            args = tuple(self._argument(argument) for argument in call.args)
            instruction, args = self._instruction(call.kind, args)
            factor = {"exact": 1, "double": 2, "low": 1}[call.cap]
            caps = [basefee * factor - (call.cap == "low") for basefee in self.model.next_prices()]
            tx = Tx(
                bytes(USER_ADDRESSES[call.user]),
                nonces[call.user] + (call.flaw == "nonce"),
                call.kind,
                args,
                call.cycles_limit,
                call.cells_limit,
                *caps,
                *call.tips,
                chain_id=2 if call.flaw == "chain" else 1,
                is_signed=call.flaw != "signature",
            )
            yield _signed(call, tx, instruction), tx
            nonces[call.user] += not call.flaw

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, str) and argument.startswith("@"):
            return self.names[argument]
        if not isinstance(argument, tuple):
            return argument
        what, number = argument
        live = self.model.world.timers
        if not live:
            return {"timer": bytes(32), "payer": bytes(GHOST), "cost": 1}[what]
        if what == "timer":
            return live[number % len(live)].timer_id
        payer, missing = self.model.next_payer()
        return payer if what == "payer" else min(max(1, missing + number), AMOUNT_MAX)

    def _instruction(self, kind: str, args: tuple[Any, ...]) -> tuple[Instruction, tuple[Any, ...]]:
        """Return the chain's instruction, and the arguments that the model gets."""
        if kind == "DeployActor":
            code = self._sources[args[0]] if args[0] < len(self._sources) else BAD_SOURCE
            return wire.DeployActor(code=code, salt=SALT), (code, SALT)
        if kind == "ExtendTimer":
            args = (args[0], self.model.height + 1 + args[1])
        return getattr(wire, kind)(*args), args

    # Comparison

    def _compare(self, block: Block, report: Report) -> None:
        chain, model = self.chain, self.model
        check("height", block.height, model.height)
        check("receipts", [receipt_of(receipt) for receipt in block.receipts], report.receipts)
        header = block.header
        used = (header.cycles_used, header.cells_used, header.timer_cycles_used)
        fires = [receipt for receipt in report.receipts if receipt.origin == "timer"]
        check("use of the block", used, (*model.used, sum(receipt.cycles_used for receipt in fires)))
        check("events", [event_of(event) for event in block.events], report.events)
        ranked = ranked_of(block), report.ranked
        if "owner left out" in model.occurred:
            # A timer's rank does not count those of owners that are out by the time at which the ranking comes to it.
            ranked = tuple([timer._replace(rank=0) for timer in timers] for timers in ranked)
        check("ranked timers", *ranked)
        if block.decisions is not None:
            shown = {name: getattr(block.decisions, name) for name in report.shown}
            check("what is shown of the lane", shown, report.shown)
        self._compare_state()
        chain.check_invariants()
        self.hashes.append(bytes(block.hash))
        self._outcomes.count(self.model, report)

    def _compare_state(self) -> None:
        chain, world = self.chain, self.model.world
        held = {bytes(address): (amount_of(account.balance), account.nonce) for address, account in chain.accounts()}
        expected = {address: (account.balance, account.nonce) for address, account in world.accounts.items()}
        # An account that holds nothing and has sent nothing is as good as none.
        check("accounts", *({k: v for k, v in purses.items() if any(v)} for purses in (held, expected)))
        in_order = sorted(world.timers, key=lambda timer: (timer.height, timer.sequence))
        check("timers", [timer_of(timer) for timer in chain.timers()], in_order)
        for height in {timer.height for timer in world.timers}:
            at_height = [timer for timer in in_order if timer.height == height]
            check(f"timers at {height}", [timer_of(timer) for timer in chain.timers_at(height)], at_height)
        totals = chain.totals()
        check("totals", {name: getattr(totals, name) for name in world.totals}, world.totals)
        check("burned", chain.economy()[1], world.burned)
        check("money", sum(balance for balance, _ in held.values()) + world.burned, sum(BALANCES.values()))
        ended = sum(number for name, number in world.totals.items() if name != "scheduled")
        check("number of timers", ended + len(in_order), totals.scheduled)
        rules = chain.rules()
        check("basefees", (rules.cycle_basefee, rules.cell_basefee), self.model.basefees)
        COMPARISONS[self._mechanism](chain, self.model)
        for index in range(len(self._sources)):
            name = f"@a{index}"
            actor = self.names[name]
            slots = {slot: value for (owner, slot), value in world.slots.items() if owner == actor}
            check(f"storage of {name}", chain.storage(actor), slots)


MODELS: dict[str, Any] = {"fifo": Model, "lane": Model, "auction": AuctionBlocks, "globalbox": GlobalboxBlocks}
COMPARISONS: dict[str, Callable[[Chain, Any], None]] = {
    "fifo": compare_lane,
    "lane": compare_lane,
    "auction": compare_auction,
    "globalbox": compare_globalbox,
}


def names_of(sources: list[bytes]) -> Iterator[tuple[str, bytes]]:
    for user, address in USER_ADDRESSES.items():
        yield "@" + user, bytes(address)
    for index, source in enumerate(sources):
        owner = USER_ADDRESSES[USERS[index % 2]]
        yield f"@a{index}", bytes(derive_actor_address(owner, SALT, keccak256(source)))
    yield "@ghost", bytes(GHOST)


def _signed(call: Call, tx: Tx, instruction: Instruction) -> Transaction:
    transaction = Transaction(
        chain_id=tx.chain_id,
        nonce=tx.nonce,
        instruction=instruction,
        cycles_limit=tx.cycles_limit,
        cells_limit=tx.cells_limit,
        max_fee_per_cycle=tx.max_fee_per_cycle,
        max_fee_per_cell=tx.max_fee_per_cell,
        max_priority_fee_per_cycle=tx.tip_per_cycle,
        max_priority_fee_per_cell=tx.tip_per_cell,
    )
    signed = sign_transaction(transaction, KEYS[call.user])
    if call.flaw != "signature":
        return signed
    other = sign_transaction(transaction, KEYS["alice" if call.user != "alice" else "bob"])
    return replace(signed, signature=other.signature)


def _place(offered: list[Transaction], transaction: Transaction) -> int:
    return next(place for place, other in enumerate(offered) if other is transaction)
