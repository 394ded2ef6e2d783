"""The slow model of a chain, but for its timers: blocks, transactions, money, messages.

Its rules were written from the specification and the decisions alone, and are meant to be read beside them. It has no
tree, no tiers, no journal: what may be rolled back is copied first. Where the text leaves a form open, such as the
fields of an event or which of two refusals comes first, the model says what the chain says, so that all can be
compared.
"""

import json
from copy import copy
from typing import Any, NamedTuple, Self

from tests.model.governance import Rules, govern, rules_of
from tests.model.language import Ending, Frame
from tests.model.scripts import Interpreter
from tests.model.world import (
    Account,
    Deferred,
    Event,
    Exhausted,
    Finder,
    Message,
    Meter,
    Params,
    Pool,
    Receipt,
    Refused,
    Terms,
    Tx,
    World,
    keccak256,
)

CHAIN_ID = 1
MESSAGE_HANDLER = "handle_message"


class Examined(NamedTuple):
    """What became of one ranked timer in the lane."""

    timer_id: bytes
    rank: int
    outcome: str
    reason: str
    gas_limit: int
    cycles_used: int
    tip: int
    weight: int
    max_fee: int
    fee_source: str


class Report(NamedTuple):
    """What a block did."""

    receipts: list[Receipt]
    events: list[Event]
    refused: list[tuple[int, int]]
    """Place of the transaction in what was offered, and the error code."""
    ranked: list["Examined"]
    """The ranked timers that were examined, in order, and who came next; empty under FIFO."""
    shown: dict[str, Any]
    """What the block shows of the lane; empty under FIFO."""


class Blocks:
    """A chain; what becomes of its timers is said by the class that `tests.model.lane` makes of it.

    Attributes:
        height: Of the last block.
        world: Its state.
        basefees: Of the next block, per cycle and per cell.
        used: Cycles and cells that the last block used.
    """

    interpreter_class: type[Interpreter] = Interpreter
    delivers_first = False

    def __init__(
        self, params: Params, balances: dict[bytes, int], deployers: set[bytes], proposer: bytes, find: Finder
    ) -> None:
        self.params = {subject: dict(values) for subject, values in params.items()}
        self.height = 0
        self.world = World(accounts={address: Account(balance) for address, balance in balances.items()})
        self.deployers = deployers
        self.proposer = proposer
        self.find = find
        fees = self.params["fees"]
        self.basefees = (fees["genesis_cycle_basefee"], fees["genesis_cell_basefee"])
        self.used = [0, 0]

    def copy(self) -> Self:
        """Return a model that goes on from here without touching this one."""
        twin = copy(self)
        twin.world, twin.used = self.world.copy(), list(self.used)
        return twin

    # Prices. Rules are read once for each block. Spec: CIP-5 §7

    def next_rules(self) -> Rules:
        """Return the parameters in force in the next block."""
        return rules_of(self.params, self.world, self.height + 1)

    def next_prices(self) -> tuple[int, int]:
        """Return what a cycle and a cell cost in a transaction of the next block."""
        return self._prices("user", self.next_rules())

    def _prices(self, lane: str, rules: Rules) -> tuple[int, int]:
        """Return what a cycle and a cell cost in a lane. Decision: D-41."""
        unit = rules["fees"]["lane_multiplier_unit"]
        multiplier = rules["multipliers"].get(lane, unit)
        return self.basefees[0] * multiplier // unit, self.basefees[1] * multiplier // unit

    # A block

    def build(self, transactions: list[Tx]) -> Report:
        """Build the next block."""
        self.rules = self.next_rules()
        self.terms = self.next_terms()
        self.height += 1
        self.interpreter = self.interpreter_class(self.world, self.height, self.rules, self.terms, self.find)
        self.used = [0, 0]
        self.transactions_used = [0, 0]
        self.block_events: list[Event] = []
        self.ranked: list[Examined] = []
        self.runners_up: list[Examined] = []
        self.shown: dict[str, Any] = {}
        self.occurred: list[str] = []
        self.taken: list[Deferred] = []
        receipts: list[Receipt] = []
        refused: list[tuple[int, int]] = []
        self.interpreter.has_delivered = self.delivers_first
        if self.delivers_first:
            receipts += self.deliver_timers()
        for place, tx in enumerate(transactions):
            try:
                receipts.append(self._transaction(tx))
            except Refused as refusal:
                refused.append((place, refusal.code))
        self.interpreter.has_delivered = True
        if not self.delivers_first:
            receipts += self.deliver_timers()
        receipts += self._deliver_messages()
        self.close()
        self.basefees = self._next_basefees()
        return Report(receipts, self.block_events, refused, self.ranked + self.runners_up, self.shown)

    def next_terms(self) -> Terms:
        """Return what the next block finds of the timer lane."""
        raise NotImplementedError

    def deliver_timers(self) -> list[Receipt]:
        """Deliver the due timers of the block."""
        raise NotImplementedError

    def close(self) -> None:
        """Do what a mechanism does when everything else is done."""

    def _next_basefees(self) -> tuple[int, int]:
        """Move both basefees towards their targets. Spec: CIP-3 §2. Decision: D-22."""
        fees = self.rules["fees"]
        targets = fees["cycles_target"], fees["cells_target"]
        moved = []
        for old, used, target in zip(self.basefees, self.used, targets, strict=True):
            step = min(old * abs(used - target) // target // fees["alpha"], old // fees["max_change_denominator"])
            new = old + step if used > target else old - step
            moved.append(min(max(new, fees["min_basefee"]), fees["max_basefee"]))
        return moved[0], moved[1]

    # Transactions

    def _intrinsic(self, tx: Tx) -> tuple[int, int]:
        costs = self.rules["costs"]
        base = costs["transaction_base"]
        match tx.kind, tx.args:
            case (("Transfer" | "FundActor"), _):
                return base + costs["transfer"], costs["transfer_cells"]
            case "DeployActor", (code, _):
                return base + costs["deploy"] + costs["deploy_byte"] * len(code), len(code)
            case "ExecuteActor", (_, handler, payload):
                return base, len(handler.encode()) + len(payload)
            case "SetGovParam", (key, value):
                return base, len(key) + len(value)
        return base, 0

    def _admit(self, tx: Tx, prices: tuple[int, int]) -> None:
        sender = self.world.account(tx.sender)
        least_cycles, least_cells = self._intrinsic(tx)
        limits = self.rules["limits"]
        gas = tx.cycles_limit * tx.max_fee_per_cycle + tx.cells_limit * tx.max_fee_per_cell
        sent = tx.args[1] if tx.kind in ("Transfer", "FundActor") else 0
        checks = (
            (1001, tx.is_signed),
            (1011, tx.chain_id == CHAIN_ID),
            (1002, tx.nonce == sender.nonce),
            (1005, tx.cycles_limit >= least_cycles),
            (1012, self._taken()[0] + tx.cycles_limit <= limits["block_cycles_max"]),
            (1006, tx.cells_limit >= least_cells),
            (1012, self._taken()[1] + tx.cells_limit <= limits["block_cells_max"]),
            (1008, tx.max_fee_per_cycle >= prices[0] and tx.max_fee_per_cell >= prices[1]),
            (1004, gas <= sender.balance),
            (1003, gas + sent <= sender.balance),
        )
        for code, holds in checks:
            if not holds:
                raise Refused(code)

    def _taken(self) -> list[int]:
        """Return what counts against the limits of a block's transactions: their own use alone. Spec: CIP-1v1 §5."""
        return self.transactions_used

    def _transaction(self, tx: Tx) -> Receipt:
        prices = self._prices("user", self.rules)
        self._admit(tx, prices)
        tips = (
            min(tx.tip_per_cycle, tx.max_fee_per_cycle - prices[0]),
            min(tx.tip_per_cell, tx.max_fee_per_cell - prices[1]),
        )
        self.world.change(tx.sender, nonce=tx.nonce + 1)
        meter = Meter(tx.cycles_limit, tx.cells_limit)
        reserved = tx.cycles_limit * (prices[0] + tips[0]) + tx.cells_limit * (prices[1] + tips[1])
        self.world.credit(tx.sender, -reserved)
        return self.settle(
            "transaction",
            lambda: self._instruction(tx, meter),
            meter,
            sender=tx.sender,
            payer=tx.sender,
            reserved=reserved,
            prices=prices,
            tips=tips,
        )

    def settle(
        self,
        origin: str,
        run: Any,
        meter: Meter,
        *,
        sender: bytes,
        payer: bytes,
        reserved: int,
        prices: tuple[int, int],
        tips: tuple[int, int] = (0, 0),
        timer_id: bytes = b"",
        pool: int | None = None,
        pool_prices: tuple[int, int] | None = None,
    ) -> Receipt:
        """Run something that is paid for, keep what it did or take it back, and settle. Spec: CIP-5 §6.3."""
        before = self.world.copy()
        code: int | None = None
        value = b""
        try:
            value, code = run()
        except Refused as refusal:
            code = refusal.code
        except Exhausted:
            code = meter.code()
        if code is not None:
            self.world.become(before)
        events, self.world.events = tuple(self.world.events), []
        for owner, amount in self.world.owed:
            self.world.credit(owner, amount)
        self.world.owed = []
        cycles, cells = meter.used()
        self._keep_gas(payer, meter, prices if pool_prices is None else pool_prices, tips, pool)
        burned = cycles * prices[0] + cells * prices[1]
        tip = cycles * tips[0] + cells * tips[1]
        self.world.credit(payer, reserved - burned - tip)
        self.world.credit(self.proposer, tip)
        self.world.burned += burned
        for used in (self.used, self.transactions_used)[: 1 + (origin == "transaction")]:
            used[0] += cycles
            used[1] += cells
        status = "ok" if code is None else "reverted"
        return Receipt(
            origin,
            sender,
            payer,
            status,
            code,
            cycles,
            cells,
            reserved,
            burned,
            tip,
            reserved - burned - tip,
            value,
            events,
            timer_id,
        )

    def _keep_gas(
        self, payer: bytes, meter: Meter, prices: tuple[int, int], tips: tuple[int, int], pool: int | None
    ) -> None:
        """Leave what an execution did not use to what it has deferred. Spec: CIP-5 §5.2. Decision: D-88."""
        used, limits = meter.used(), meter.limits
        if pool is None:
            pool = max(self.world.pools, default=0) + 1
            self.world.pools[pool] = Pool(payer, (limits[0] - used[0], limits[1] - used[1]), prices, tips)
        else:
            gas = self.world.pools[pool].gas
            self.world.pools[pool] = self.world.pools[pool]._replace(gas=(gas[0] - used[0], gas[1] - used[1]))
        self.world.deferred = [
            waiting._replace(pool=pool) if waiting.pool is None else waiting for waiting in self.world.deferred
        ]
        self._drop_pools()

    def _drop_pools(self) -> None:
        drawn = {waiting.pool for waiting in (*self.world.deferred, *self.taken)}
        self.world.pools = {number: each for number, each in self.world.pools.items() if number in drawn}

    def _instruction(self, tx: Tx, meter: Meter) -> Ending:
        meter.use(*self._intrinsic(tx))
        match tx.kind, tx.args:
            case "Transfer", (to, amount):
                self.world.move(tx.sender, to, amount)
            case "FundActor", (actor, amount):
                if self.world.account(actor).source is None:
                    raise Refused(1220)
                self.world.move(tx.sender, actor, amount)
            case "DeployActor", args:
                return self._deploy(tx.sender, meter, *args)
            case "ExecuteActor", (actor, handler, payload):
                return self.interpreter.run(Frame(actor, handler, payload, tx.sender, tx.sender), meter)
            case kind, args:
                if tx.sender not in self.deployers:
                    raise Refused(1211)
                govern(self.interpreter, self.params, kind, args)
        return Ending(b"", None)

    def _deploy(self, sender: bytes, meter: Meter, code: bytes, salt: bytes) -> Ending:
        """Create an actor and run its creation call. Decision: D-36."""
        try:
            handlers = [name for name in ("init", "deploy") if name in json.loads(code)]
        except ValueError:
            raise Refused(1213) from None
        actor = sender[:2] + keccak256(b"\xff" + sender + keccak256(salt) + keccak256(code))[14:]
        if self.world.account(actor).source is not None:
            raise Refused(1221)
        self.world.change(actor, source=code, owner=sender)
        ending = Ending(b"", None)
        if handlers:
            ending = self.interpreter.run(Frame(actor, handlers[0], b"", sender, sender), meter)
        fields = {"actor": actor, "owner": sender, "code_hash": keccak256(code)}
        self.world.events.append(Event("actor.deployed", actor, fields))
        return ending

    # The end of a block. Spec: CIP-5 §5.1

    def _run_deferred(self) -> list[Receipt]:
        """Run what was taken of that which earlier blocks have deferred. Decision: D-88."""
        limits = self.rules["limits"]
        receipts = []
        while self.taken:
            waiting = self.taken[0]
            pool = self.world.pools[waiting.pool]
            gas = min(limits["message_cycles"], pool.gas[0]), min(limits["message_cells"], pool.gas[1])
            required = sum(gas[unit] * (pool.prices[unit] + pool.tips[unit]) for unit in range(len(gas)))
            available = self.world.account(pool.payer).balance
            if available < required:
                fields = {
                    "handler": waiting.handler,
                    "payer": pool.payer,
                    "required": required,
                    "available": available,
                }
                self.block_events.append(Event("deferred.dropped", waiting.actor, fields))
            else:
                self.world.credit(pool.payer, -required)
                receipts.append(self._deferred(waiting, pool, Meter(*gas), required))
            self.taken = self.taken[1:]
            self._drop_pools()
        return receipts

    def _deferred(self, waiting: Deferred, pool: Pool, meter: Meter, required: int) -> Receipt:
        actor = waiting.actor
        frame = Frame(actor, waiting.handler, waiting.payload, actor, actor)
        self.occurred.append("deferred")
        return self.settle(
            "message",
            lambda: self.interpreter.run(frame, meter),
            meter,
            sender=actor,
            payer=pool.payer,
            reserved=required,
            prices=pool.prices,
            tips=pool.tips,
            pool=waiting.pool,
        )

    def _deliver_messages(self) -> list[Receipt]:
        """Run deferred calls and then the oldest messages; what comes of them waits. Decision: D-42, D-88."""
        limits = self.rules["limits"]
        count = limits["messages_delivered_max"]
        due = [waiting for waiting in self.world.deferred if waiting.created_at < self.height]
        self.taken, self.world.deferred = due[:count], self.world.deferred[len(due[:count]) :]
        prices = self._prices("user", self.rules)
        taken, self.world.messages = self.world.messages[:count], self.world.messages[count:]
        receipts = self._run_deferred()
        for message in taken:
            required = limits["message_cycles"] * prices[0] + limits["message_cells"] * prices[1]
            available = self.world.account(message.sender).balance
            if available < required:
                fields = {
                    "sender": message.sender,
                    "target": message.target,
                    "required": required,
                    "available": available,
                }
                self.block_events.append(Event("message.dropped", message.sender, fields))
                continue
            self.world.credit(message.sender, -required)
            receipts.append(self._message(message, required, prices))
        return receipts

    def _message(self, message: Message, required: int, prices: tuple[int, int]) -> Receipt:
        limits = self.rules["limits"]
        meter = Meter(limits["message_cycles"], limits["message_cells"])
        # Who is sent a message may let the sender pay for its delivery, but for nothing that comes of it.
        frame = Frame(message.target, MESSAGE_HANDLER, message.payload, message.sender, message.target)
        return self.settle(
            "message",
            lambda: self.interpreter.run(frame, meter),
            meter,
            sender=message.sender,
            payer=message.sender,
            reserved=required,
            prices=prices,
        )
