"""The slow model of CIP-5 §§1-8: one list of timers, looked through from the front in every block.

Its rules were written from the specification and the decisions alone, and are meant to be read beside them. It has no
tree, no tiers, no journal: what may be rolled back is copied first. Where the text leaves a form open, such as the
fields of an event or which of two refusals comes first, the model says what the chain says, so that all can be
compared.
"""

import json
from typing import Any, NamedTuple

from tests.model.governance import Rules, govern, rules_of
from tests.model.scripts import Ending, Frame, Interpreter
from tests.model.world import (
    Account,
    Event,
    Exhausted,
    Finder,
    Message,
    Meter,
    Params,
    Receipt,
    Refused,
    Timer,
    Tx,
    World,
    keccak256,
)

CHAIN_ID = 1
MESSAGE_HANDLER = "handle_message"


class Report(NamedTuple):
    """What a block did."""

    receipts: list[Receipt]
    events: list[Event]
    refused: list[tuple[int, int]]
    """Place of the transaction in what was offered, and the error code."""


class Model:
    """A chain with the FIFO mechanism.

    Attributes:
        height: Of the last block.
        world: Its state.
        basefees: Of the next block, per cycle and per cell.
    """

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

    def copy(self) -> "Model":
        """Return a model that goes on from here without touching this one."""
        twin = Model(self.params, {}, self.deployers, self.proposer, self.find)
        twin.height, twin.world, twin.basefees = self.height, self.world.copy(), self.basefees
        return twin

    # Prices. Rules are read once for each block. Spec: CIP-5 §7

    def _rules(self) -> Rules:
        return rules_of(self.params, self.world)

    def next_prices(self) -> tuple[int, int]:
        """Return what a cycle and a cell cost in a transaction of the next block."""
        return self._prices("user", self._rules())

    def _prices(self, lane: str, rules: Rules) -> tuple[int, int]:
        """Return what a cycle and a cell cost in a lane. Decision: D-41."""
        unit = rules["fees"]["lane_multiplier_unit"]
        multiplier = rules["multipliers"].get(lane, unit)
        return self.basefees[0] * multiplier // unit, self.basefees[1] * multiplier // unit

    def next_payer(self) -> tuple[bytes, int]:
        """Return who pays the next fire, and what that account lacks for it at the prices of the next block."""
        rules = self._rules()
        first = min(self.world.timers, key=lambda timer: (timer.height, timer.sequence))
        required = self._max_cost(first, rules)
        return first.fee_payer, required - self.world.account(first.fee_payer).balance

    def _max_cost(self, timer: Timer, rules: Rules) -> int:
        """Return the worst case of a fire. Spec: CIP-5 §6.3."""
        prices = self._prices("timer", rules)
        return timer.gas_limit * prices[0] + rules["timers"]["max_cells_per_fire"] * prices[1]

    # A block

    def build(self, transactions: list[Tx]) -> Report:
        """Build the next block."""
        self.height += 1
        self.rules = self._rules()
        self.interpreter = Interpreter(self.world, self.height, self.rules, self.find)
        self.used = [0, 0]
        receipts: list[Receipt] = []
        refused: list[tuple[int, int]] = []
        for place, tx in enumerate(transactions):
            try:
                receipts.append(self._transaction(tx))
            except Refused as refusal:
                refused.append((place, refusal.code))
        self.block_events: list[Event] = []
        self._classify()
        while self.world.paid:
            receipts.append(self._fire())
        receipts += self._deliver_messages()
        self.basefees = self._next_basefees()
        return Report(receipts, self.block_events, refused)

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
                return base + costs["deploy"], len(code)
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
            (1012, self.used[0] + tx.cycles_limit <= limits["block_cycles_max"]),
            (1006, tx.cells_limit >= least_cells),
            (1012, self.used[1] + tx.cells_limit <= limits["block_cells_max"]),
            (1008, tx.max_fee_per_cycle >= prices[0] and tx.max_fee_per_cell >= prices[1]),
            (1004, gas <= sender.balance),
            (1003, gas + sent <= sender.balance),
        )
        for code, holds in checks:
            if not holds:
                raise Refused(code)

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
        return self._settle(
            "transaction",
            lambda: self._instruction(tx, meter),
            meter,
            sender=tx.sender,
            payer=tx.sender,
            reserved=reserved,
            prices=prices,
            tips=tips,
        )

    def _settle(
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
        burned = cycles * prices[0] + cells * prices[1]
        tip = cycles * tips[0] + cells * tips[1]
        self.world.credit(payer, reserved - burned - tip)
        self.world.credit(self.proposer, tip)
        self.world.burned += burned
        self.used[0] += cycles
        self.used[1] += cells
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

    # The end of a block. Spec: CIP-5 §5.1, §6.5

    def _classify(self) -> None:
        """Go through the due timers once: removed, deferred, or paid and queued."""
        rules = self.rules["timers"]
        due = sorted(
            (timer for timer in self.world.timers if timer.height <= self.height),
            key=lambda timer: (timer.height, timer.sequence),
        )
        lane, gc = rules["lane_cycles_per_block"], rules["gc_cycles_per_block"]
        for timer in due[: rules["due_examined_max"]]:
            required = self._max_cost(timer, self.rules)
            available = self.world.account(timer.fee_payer).balance
            if self.height > timer.expires_at:
                end, fields = "expired", {"expires_at": timer.expires_at, "current_height": self.height}
            elif available < required:
                end, fields = "unfunded", {"fee_payer": timer.fee_payer, "required": required, "available": available}
            elif timer.gas_limit > lane:
                self._defer(timer, "lane_full")
                continue
            else:
                lane -= timer.gas_limit
                self.world.credit(timer.fee_payer, -required)
                self.world.timers.remove(timer)
                self.world.paid.append((timer, required))
                continue
            if gc < rules["gc_cycles_per_timer"]:
                self._defer(timer, "gc_exhausted")
                continue
            gc -= rules["gc_cycles_per_timer"]
            self.world.timers.remove(timer)
            self.world.totals[end] += 1
            name = {"expired": "TimerExpired", "unfunded": "TimerCancelledInsufficientFunds"}[end]
            self._announce(name, timer, **fields)

    def _defer(self, timer: Timer, reason: str) -> None:
        """Let a timer wait; written and told when it begins or its reason changes. Decision: D-44."""
        if timer.deferred_for != reason:
            since = timer.deferred_since or self.height
            self.world.replace_timer(timer, timer._replace(deferred_since=since, deferred_for=reason))
            self._announce("timer.deferred", timer, reason=reason, gas_limit=timer.gas_limit, height=timer.height)

    def _announce(self, name: str, timer: Timer, **fields: Any) -> None:
        self.block_events.append(Event(name, timer.actor, {"timer_id": timer.timer_id, **fields}, timer.timer_id))

    def _fire(self) -> Receipt:
        """Run the first of the paid timers. Spec: CIP-5 §5.2, §6.3."""
        timer, paid = self.world.paid.pop(0)
        meter = Meter(timer.gas_limit, self.rules["timers"]["max_cells_per_fire"])
        frame = Frame(timer.actor, timer.handler, timer.payload, timer.actor, timer.actor)

        self.world.totals["fired"] += 1
        receipt = self._settle(
            "timer",
            lambda: self.interpreter.run(frame, meter),
            meter,
            sender=timer.actor,
            payer=timer.fee_payer,
            reserved=paid,
            prices=self._prices("timer", self.rules),
            timer_id=timer.timer_id,
        )
        fields = {
            "timer_id": timer.timer_id,
            "reverted": receipt.status == "reverted",
            "cycles_used": receipt.cycles_used,
            "cells_used": receipt.cells_used,
            "fee_payer": timer.fee_payer,
            "fee_paid": paid - receipt.refund,
            "refund": receipt.refund,
            "blocks_deferred": self.height - timer.deferred_since if timer.deferred_since else 0,
        }
        return receipt._replace(events=(*receipt.events, Event("timer.fired", timer.actor, fields, timer.timer_id)))

    def _deliver_messages(self) -> list[Receipt]:
        """Deliver the oldest messages; those sent meanwhile wait. Decision: D-42."""
        limits = self.rules["limits"]
        count = limits["messages_delivered_max"]
        receipts = []
        prices = self._prices("user", self.rules)
        taken, self.world.messages = self.world.messages[:count], self.world.messages[count:]
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
        return self._settle(
            "message",
            lambda: self.interpreter.run(frame, meter),
            meter,
            sender=message.sender,
            payer=message.sender,
            reserved=required,
            prices=prices,
        )
