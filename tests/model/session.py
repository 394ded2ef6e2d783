"""A chain and its slow model, side by side: every block is built by both and compared."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import cbor2
from msgspec.structs import replace

from tests.model.blocks import Examined, Report
from tests.model.histories import ACTORS, BALANCES, USERS, Call, History
from tests.model.lane import Lane, Model
from tests.model.outcomes import Outcomes
from tests.model.scripted_engine import ScriptedEngine
from tests.model.world import ASK, Event, Receipt, Timer, Tx
from trailboss.chain.chain import Chain
from trailboss.crypto.digest import keccak256
from trailboss.crypto.signing import address_of
from trailboss.execution.genesis import Genesis
from trailboss.model import transactions as wire
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.configs import BlockFires, FairnessTotals, JoiningGap, LaneState, amount_of, decode_record
from trailboss.model.events import EventRecord
from trailboss.model.timers import ASK_AGENT, NO_FEES
from trailboss.model.transactions import Instruction, Transaction, derive_actor_address, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.state.disk.store import StoreSettings
from trailboss.state.keys import config_key

KEYS = {user: bytes([number]) * 32 for number, user in enumerate(USERS, start=1)}
USER_ADDRESSES = {user: address_of(key) for user, key in KEYS.items()}
PROPOSER = Address(b"\xaa" * 20)
GHOST = Address(b"\x77" * 20)
SALT = b"history"
BAD_SOURCE = b"{ no script"
OWN_EVENTS = ("note",)
SETTINGS = StoreSettings(flush_interval=4, kept_journal=64)
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
        self.names = dict(_names(self._sources))
        find = self.names.__getitem__
        self._directory = directory
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
        tables = {subject: table for subject, table in asdict(params).items() if isinstance(table, dict)}
        balances = {bytes(address): balance for address, balance in accounts.items()}
        self.model = Model(tables, balances, {bytes(governor)}, bytes(PROPOSER), find)
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
        report = self.model.build([tx for _, tx in made])
        offered = [transaction for transaction, _ in made]
        refused = [(_place(offered, transaction), rejection.reason.code) for transaction, rejection in applied.refused]
        _check("refused", refused, report.refused)
        self._compare(applied.block, report)

    def idle(self, blocks: int) -> None:
        """Advance both by blocks without transactions, and compare each."""
        for block in self.chain.advance_to(self.chain.height + blocks):
            self._compare(block, self.model.build([]))

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
        return payer if what == "payer" else max(1, missing + number)

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
        _check("height", block.height, model.height)
        _check("receipts", [_receipt(receipt) for receipt in block.receipts], report.receipts)
        header = block.header
        used = (header.cycles_used, header.cells_used, header.timer_cycles_used)
        fires = [receipt for receipt in report.receipts if receipt.origin == "timer"]
        _check("use of the block", used, (*model.used, sum(receipt.cycles_used for receipt in fires)))
        _check("events", [_event(event) for event in block.events], report.events)
        _check("ranked timers", _ranked(block), report.ranked)
        if block.decisions is not None:
            shown = {name: getattr(block.decisions, name) for name in report.shown}
            _check("what is shown of the lane", shown, report.shown)
        self._compare_state()
        chain.check_invariants()
        self.hashes.append(bytes(block.hash))
        self._outcomes.count(self.model, report)

    def _compare_state(self) -> None:
        chain, world = self.chain, self.model.world
        held = {bytes(address): (amount_of(account.balance), account.nonce) for address, account in chain.accounts()}
        expected = {address: (account.balance, account.nonce) for address, account in world.accounts.items()}
        # An account that holds nothing and has sent nothing is as good as none.
        _check("accounts", *({k: v for k, v in purses.items() if any(v)} for purses in (held, expected)))
        in_order = sorted(world.timers, key=lambda timer: (timer.height, timer.sequence))
        _check("timers", [_timer(timer) for timer in chain.timers()], in_order)
        for height in {timer.height for timer in world.timers}:
            at_height = [timer for timer in in_order if timer.height == height]
            _check(f"timers at {height}", [_timer(timer) for timer in chain.timers_at(height)], at_height)
        totals = chain.totals()
        _check("totals", {name: getattr(totals, name) for name in world.totals}, world.totals)
        _check("burned", chain.economy()[1], world.burned)
        _check("money", sum(balance for balance, _ in held.values()) + world.burned, sum(BALANCES.values()))
        ended = sum(number for name, number in world.totals.items() if name != "scheduled")
        _check("number of timers", ended + len(in_order), totals.scheduled)
        rules = chain.rules()
        _check("basefees", (rules.cycle_basefee, rules.cell_basefee), self.model.basefees)
        self._compare_lane()
        for name in ACTORS:
            actor = self.names["@" + name]
            slots = {slot: value for (owner, slot), value in world.slots.items() if owner == actor}
            _check(f"storage of {name}", chain.storage(actor), slots)

    def _compare_lane(self) -> None:
        chain, model = self.chain, self.model
        terms, found = model.next_terms(), chain.rules().lane
        if chain.height == model.height:  # A run of idle blocks is built at once, and may end before the activation.
            _check("activity of the lane", found is not None, terms.active)
        if found is not None and terms.active:
            lane = (found.basefee, found.previous_tip, found.max_cycles_per_fire)
            _check("lane", lane, (terms.basefee, terms.previous_tip, terms.cap))
        octets = chain.store.read(config_key(b"system:lane"))
        _check("record of the lane", octets is not None, model.lane is not None)
        if octets is not None:
            state = decode_record(octets, LaneState)
            money = (amount_of(state.basefee), amount_of(state.previous_tip), amount_of(state.burned))
            _check("record of the lane", Lane(*money), model.lane)
            due = [timer for timer in model.world.timers if timer.height <= model.height]
            outside = [timer for timer in due if any(_is_within(timer, gap) for gap in state.gaps)]
            _check("not joined", outside, [timer for timer in due if timer.timer_id not in model.joined])
            assert model.lane.burned <= model.world.burned
        fires = model.recent_fires()
        accounts = [(bytes(address), account) for address, account in chain.accounts()]
        _check("fires", {address: count.recent_fires for address, count in accounts if count.recent_fires}, fires)
        agents = {address: account.agent for address, account in model.world.accounts.items() if account.agent}
        _check("agents", {address: account.agent for address, account in accounts if account.agent}, agents)
        octets = chain.store.read(config_key(b"system:lane:fairness"))
        totals = FairnessTotals() if octets is None else decode_record(octets, FairnessTotals)
        _check("fires of all", totals.counts, tuple(sorted(Counter(fires.values()).items())))
        _check("blocks of the window", totals.next - totals.first, len(model.window))
        for number, height in enumerate(sorted(model.window), start=totals.first):
            octets = chain.store.read(config_key(b"system:lane:fires:" + number.to_bytes(8, "big")))
            expected = BlockFires(height, tuple(sorted(model.window[height].items())))
            _check("fires of a block", decode_record(octets or b"", BlockFires), expected)


def _check(what: str, found: Any, expected: Any) -> None:
    """Fail with the first thing in which the chain and the model differ."""
    if found == expected:
        return
    if isinstance(found, dict):
        found, expected = sorted(found.items()), sorted(expected.items())
    if isinstance(found, list):
        pairs = zip_longest(found, expected, fillvalue="nothing")
        found, expected = next(pair for pair in pairs if pair[0] != pair[1])
    raise AssertionError(f"{what} differ:\nchain {found}\nmodel {expected}")


def _names(sources: list[bytes]) -> Iterator[tuple[str, bytes]]:
    for user, address in USER_ADDRESSES.items():
        yield "@" + user, bytes(address)
    for index, source in enumerate(sources):
        owner = USER_ADDRESSES[USERS[index % 2]]
        yield "@" + ACTORS[index], bytes(derive_actor_address(owner, SALT, keccak256(source)))
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


def _receipt(receipt: ReceiptRecord) -> Receipt:
    return Receipt(
        receipt.origin.value,
        bytes(receipt.sender),
        bytes(receipt.payer),
        receipt.status.value,
        None if receipt.error is None else receipt.error.code,
        receipt.cycles_used,
        receipt.cells_used,
        receipt.reserved,
        receipt.fee_burned,
        receipt.tip,
        receipt.refund,
        receipt.return_value,
        tuple(_event(event) for event in receipt.events),
        bytes(receipt.timer_id),
    )


def _event(event: EventRecord) -> Event:
    fields = event.data if event.name in OWN_EVENTS else cbor2.loads(event.data)
    return Event(event.name, bytes(event.emitter), fields, bytes(event.timer_id))


def _timer(timer: Any) -> Timer:
    facts = {name: getattr(timer, name) for name in Timer._fields}
    frozen = timer.frozen_fees()
    facts["fees"] = frozen or {NO_FEES: (), ASK_AGENT: ASK}[timer.fees]
    return Timer(**facts)


def _is_within(timer: Timer, gap: JoiningGap) -> bool:
    first = (gap.first_height, gap.first_sequence)
    return (timer.height, timer.sequence) >= first and timer.height <= gap.last_height


def _ranked(block: Block) -> list[Examined]:
    """Return what the block's record says of the timers that it ranked."""
    record = block.decisions
    if record is None or record.mechanism != "lane":
        return []
    return [Examined(*(getattr(timer, name) for name in Examined._fields)) for timer in record.examined if timer.rank]
