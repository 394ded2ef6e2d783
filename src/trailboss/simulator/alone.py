"""A mechanism alone: the chain's own mechanisms, markets, fairness and fees over tables in memory.

What decides is the chain's code: `trailboss.mechanisms`, the markets of `trailboss.execution`, admission, fees. What a
chain does beside that is left out: programs, signatures, receipts, events, trees, records on disk. A test holds fires,
order, prices and balances of it to those of a whole chain.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from sortedcontainers import SortedDict

from trailboss.chain.development import CHAIN_ID
from trailboss.codec.canonical import pack
from trailboss.execution.block import close_block
from trailboss.execution.decision_recorder import Recorder
from trailboss.execution.delivery import apply_decision, due_timers, selection_context
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.paid_execution import commit_effect
from trailboss.execution.session import BlockContext, BlockSession, Envelope, Fired, Scope
from trailboss.execution.timers import cancel_timer, schedule_timer
from trailboss.fees import settle
from trailboss.governance.rules import read_rules
from trailboss.mechanisms.base import Charging, Decision, Phase
from trailboss.mechanisms.registry import Succession
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import calls, effects
from trailboss.model.actors import Account, decode_account
from trailboss.model.blocks import Origin
from trailboss.model.configs import amount_of
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import TIMER_CANCELLED_BY_DELAY, TIMER_EXPIRED, TIMER_UNFUNDED
from trailboss.model.timers import Timer, TimerEnd, TimerRequest
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX, Amount, Cells, Cycles, Height
from trailboss.simulator.dialects import ASKING
from trailboss.simulator.engine import AgentEngine, fits, show, use_up
from trailboss.simulator.ground import BANK, ORDER_CELLS, ORDER_CYCLES, SLOT, Ground, Plans
from trailboss.simulator.orders import (
    BlockResult,
    Cancel,
    Fire,
    Fund,
    Order,
    PlannedTimer,
    Schedule,
    Touch,
    UnfiredTimer,
    View,
    Work,
)
from trailboss.state.keys import ACCOUNTS
from trailboss.state.overlay import Overlay, Record
from trailboss.timer_queue.bucket import Pending
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import pending_of

ENDINGS: Final = {
    TIMER_EXPIRED: TimerEnd.EXPIRED,
    TIMER_UNFUNDED: TimerEnd.UNFUNDED,
    TIMER_CANCELLED_BY_DELAY: TimerEnd.CANCELLED,
}


class FlatState(Overlay):
    """The state as one table: what is written stays written."""

    __slots__ = ("_touched", "table")

    def __init__(self, table: dict[bytes, bytes]) -> None:
        self.table = table
        self._touched: list[tuple[bytes, bytes]] = []

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self.table.get(key)

    def write(self, key: bytes, value: bytes | Struct) -> None:
        """Set the value of a key."""
        self.table[key] = pack(value) if isinstance(value, Struct) else value

    def read_record(self, key: bytes, decode: Callable[[bytes], Record]) -> Record | None:
        """Return the record of a key, or None."""
        value = self.table.get(key)
        return None if value is None else decode(value)

    def delete(self, key: bytes) -> None:
        """Remove the value of a key, if it has one."""
        self.table.pop(key, None)

    def touch(self, address: bytes) -> None:
        """Note that an actor's slot changes."""
        self._touched.append((address, SLOT))

    def begin(self) -> None:
        """Begin a block: no slot has changed in it."""
        self._touched.clear()

    def mark(self) -> int:
        """Return a mark of the slots that have changed so far."""
        return len(self._touched)

    def changed_slots(self, mark: int = 0) -> list[tuple[bytes, bytes]]:
        """Return address and name of the slots that have changed since a mark, ascending."""
        return sorted(set(self._touched[mark:]))


class FlatLedger(Ledger):
    """Accounts as records in memory, balances as integers."""

    __slots__ = ("accounts", "balances")

    def __init__(self, accounts: dict[bytes, Account]) -> None:
        self.accounts = accounts
        self.balances = {address: amount_of(account.balance) for address, account in accounts.items()}
        self.burned = 0

    def find(self, address: bytes) -> Account | None:
        """Return the account itself, or None."""
        return self.accounts.get(address)

    def account(self, address: bytes) -> Account:
        """Return the account itself."""
        found = self.accounts.get(address)
        if found is None:
            found = self.accounts[address] = Account()
        return found

    def put(self, address: bytes, account: Account) -> None:
        """Keep an account."""
        self.accounts[address] = account

    def balance(self, address: bytes) -> Amount:
        """Return the balance in base units."""
        return Amount(self.balances.get(address, 0))

    def credit(self, address: bytes, amount: int) -> None:
        """Add to a balance."""
        self.balances[address] = Amount(self.balances.get(address, 0) + amount)

    def debit(self, address: bytes, amount: int) -> None:
        """Take from a balance; ``INSUFFICIENT_BALANCE`` if it holds less."""
        held = self.balances.get(address, 0)
        if held < amount:
            what = f"{Address(address)} holds {held} base units, {amount} are needed"
            raise Rejection(RejectionReason.INSUFFICIENT_BALANCE, what)
        self.balances[address] = Amount(held - amount)

    def put_debited(self, address: bytes, account: Account, amount: int) -> None:
        """Keep an account, and take from its balance."""
        self.put(address, account)
        self.debit(address, amount)

    def code(self, account: Account) -> str:
        """Return no source: none runs."""
        return ""

    def is_entitled(self, actor: bytes, entitlement: str) -> bool:
        """Every actor may schedule."""
        return True


class FarTimers:
    """The timers that the queue does not hold in memory."""

    def __init__(self) -> None:
        self._timers: SortedDict = SortedDict()
        self._heights: dict[bytes, int] = {}

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield timers from a height and an id on, ascending."""
        for key in self._timers.irange((height, timer_id)):
            yield self._timers[key]

    def count_below(self, height: int) -> int:
        """Return how many are due below a height."""
        return int(self._timers.bisect_left((height, b"")))

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None."""
        return self._heights.get(timer_id)

    def commit(self, changes: Mapping[bytes, Pending | None]) -> None:
        """Take in what a block has placed beyond memory, or taken out."""
        for timer_id, timer in changes.items():
            height = self._heights.pop(timer_id, None)
            if height is not None:
                del self._timers[height, timer_id]
            if timer is not None:
                self._timers[timer.height, timer_id] = timer
                self._heights[timer_id] = timer.height


class _Session(BlockSession):
    """A block of a simulation: it counts, and keeps no event."""

    timers: dict[bytes, Timer] = field(default_factory=dict)  # by id, of the whole run
    sums: dict[str, int] = field(default_factory=dict)  # timers by path, of the whole run
    ended: list[tuple[bytes, TimerEnd]] = field(default_factory=list)  # ends of timers that did not fire

    def read_timer(self, height: int, identity: bytes) -> Timer | None:
        """Return a timer by id; no two have one."""
        return self.timers.get(identity)

    def write_timer(self, timer: Timer) -> None:
        """Keep a timer's record."""
        self.timers[timer.timer_id] = timer

    def delete_timer(self, timer: Timer) -> None:
        """Forget a timer's record."""
        del self.timers[timer.timer_id]

    def count(self, path: str, more: int = 1) -> int:
        """Count more timers on their path; return how many there were before."""
        before = self.sums.get(path, 0)
        self.sums[path] = before + more
        return before

    def emit(self, name: str, timer: Timer, facts: Mapping[str, object]) -> None:
        """Note the ends of timers."""
        del facts
        if name in ENDINGS:
            self.ended.append((timer.timer_id, ENDINGS[name]))


Watch = Callable[["Alone", BlockResult], None]
WATCH: Final[ContextVar[Watch | None]] = ContextVar("watch", default=None)
"""What sees each block of the runs that begin while it is set, with their decision records."""


class Alone:
    """A mechanism alone, block after block.

    Attributes:
        height: Of the last block.
        record: How the last block chose among its due timers, if records are kept.
    """

    def __init__(self, ground: Ground, *, keeps_records: bool = False) -> None:
        """Stand on a ground, before block 1."""
        self.ground, self._watch = ground, WATCH.get()
        self._keeps_records = keeps_records or self._watch is not None
        self._params = ground.params
        self._mechanisms = Succession(ground.mechanism, self._params)
        state = {key: value for key, value in ground.first_state().items() if value is not None}
        accounts = {key[1:]: decode_account(value) for key, value in state.items() if key[:1] == ACCOUNTS}
        self._table, self._ledger = FlatState(state), FlatLedger(accounts)
        self._source = FarTimers()
        self._queue = TimerQueue(self._params.calendar, self._source)
        self._plans = Plans(self._table.read)
        self._engine = AgentEngine(ground, self._plans.find)
        self._timers: dict[bytes, Timer] = {}
        self._totals: dict[str, int] = {}
        self._cycles_used = 0
        self._last: BlockResult | None = None
        self.height = 0
        self.record: DecisionRecord | None = None

    # What is held

    def balances(self) -> dict[bytes, int]:
        """Return the balances of all accounts that hold anything."""
        return {address: balance for address, balance in self._ledger.balances.items() if balance}

    def pending(self) -> int:
        """Return how many timers live."""
        return len(self._plans.live)

    def live_plans(self) -> Iterator[PlannedTimer]:
        """Yield the plans of all timers that live, in the order in which they were scheduled."""
        yield from self._plans.live.values()

    # Blocks

    def build(self) -> BlockResult:
        """Build the next block, and let the agents see it."""
        height = self.height + 1
        rules = read_rules(self._params, self._table.read, height)
        hooks, mechanism = MARKETS[rules.market.kind], self._mechanisms.by_market[rules.market.kind]
        context = BlockContext(
            chain_id=CHAIN_ID,
            chain_instance_id=b"",
            height=Height(height),
            timestamp_ms=0,
            parent=b"",
            proposer=self.ground.genesis.proposer,
            parent_cycles_used=self._cycles_used,
            rules=rules,
            parent_state_root=b"",
            mechanism=mechanism.name,
            calls=mechanism.policy.calls,
        )
        self._table.begin()
        self._ledger.burned = 0
        session = _Session(
            context,
            self._table,
            self._ledger,
            self._queue,
            self._engine,
            mechanism,
            hooks,
            timers=self._timers,
            sums=self._totals,
        )
        view = self._engine.view = self.ground.view(rules, self._balance_of, self._last)
        block = _Block(self, session, view)
        self._queue.advance(height)
        mechanism.begin(lambda: iter(()))
        if mechanism.policy.phase is Phase.BEFORE_TRANSACTIONS:
            close = block.deliver(mechanism, self._keeps_records)
            block.transact()
        else:
            block.transact()
            close = block.deliver(mechanism, self._keeps_records)
        close_block(session, close)
        self._source.commit(self._queue.uncommitted())
        self.height, self._cycles_used, self.record = height, session.cycles_used, session.decisions
        result = self._last = block.result(self._queue.due_count)
        self._plans.settle()
        if self._watch is not None:
            self._watch(self, result)
        return result

    def _balance_of(self, actor: int) -> int:
        return self._ledger.balance(self.ground.addresses[actor])


class _Block:
    """One block while it is built."""

    def __init__(self, world: Alone, session: _Session, view: View) -> None:
        self._world, self._session, self._view = world, session, view
        self._ground, self._plans, self._ledger = world.ground, world._plans, world._ledger
        agents = enumerate(self._ground.agents)
        self._orders = [(number, order) for number, agent in agents for order in agent.orders(view)]
        self._accepted: list[PlannedTimer] = []
        self._frame = self._ground.params.costs.frame_base
        self._fires: list[Fire] = []
        self._endings: list[UnfiredTimer] = []
        self._refused: list[tuple[int, Order]] = []
        self._tips = 0
        wallet, most = self._ground.wallet, (Cycles(ORDER_CYCLES), Cells(ORDER_CELLS))
        envelope = Envelope(
            origin=Origin.TRANSACTION,
            sender=wallet,
            signer=wallet,
            payer=wallet,
            cycles_limit=most[0],
            cells_limit=most[1],
        )
        self._scope = Scope(session, envelope)  # of each order in turn

    # Orders

    def transact(self) -> None:
        """Run the agents' orders, each as a transaction."""
        for at, (number, order) in enumerate(self._orders):
            if not self._pay(order):
                # All come from one wallet: what follows one that finds no room has the wrong nonce.
                self._refused += self._orders[at:]
                return
            try:
                self._perform(number, order)
            except Rejection:
                self._refused.append((number, order))

    def _pay(self, order: Order) -> bool:
        """Pay for a transaction, if the block has room for it."""
        session, rules = self._session, self._session.context.rules
        cycles, cells = (order.cycles, order.cells) if isinstance(order, Work) else (ORDER_CYCLES, ORDER_CELLS)
        limits = rules.params.limits
        cycles_used = session.cycles_used - session.timer_cycles_used
        cells_used = session.cells_used - session.timer_cells_used
        if cycles_used + cycles > limits.block_cycles_max or cells_used + cells > limits.block_cells_max:
            return False
        cycle_basefee, cell_basefee = rules.user_basefees()
        cost = cycles * cycle_basefee + cells * cell_basefee
        self._ledger.debit(self._ground.wallet, cost)
        self._ledger.burned += cost
        session.cycles_used += cycles
        session.cells_used += cells
        return True

    def _perform(self, number: int, order: Order) -> None:
        addresses = self._ground.addresses
        match order:
            case Schedule():
                self._schedule(number, order, self._meter())
            case Cancel(plan):
                self._cancel(plan)
            case Fund(actor, amount):
                self._ledger.transfer(addresses[BANK], addresses[actor], amount)
            case Touch(actor):
                self._world._table.touch(addresses[actor])

    def _meter(self) -> Meter:
        return Meter(U64_MAX, U64_MAX)

    def _schedule(self, number: int, order: Schedule, meter: Meter) -> None:
        session, actor = self._session, self._ground.addresses[order.actor]
        form, request = ASKING[session.context.rules.market.kind].request(self._ground, order)
        scope = self._scope
        scope.effects.clear()
        if isinstance(request, TimerRequest):
            timer_id = schedule_timer(scope, actor, request, meter)
        else:
            timer_id = bytes(session.hooks.calls[form](scope, actor, request, meter))
        for effect in scope.effects:
            if isinstance(effect, effects.TimerScheduled):
                session.queue.place(pending_of(effect.timer))
                session.follower.schedule(effect.timer)
        plan = PlannedTimer(order, number, timer_id, session.context.height)
        self._plans.add(plan)
        self._accepted.append(plan)

    def _cancel(self, plan: PlannedTimer) -> None:
        session, actor = self._session, self._ground.addresses[plan.order.actor]
        scope = self._scope
        scope.effects.clear()
        if calls.CANCEL_GLOBALBOX in session.hooks.calls:
            request = self._ground.addresses[plan.order.called], plan.timer_id
            session.hooks.calls[calls.CANCEL_GLOBALBOX](scope, actor, request, self._meter())
        else:
            cancel_timer(scope, plan.timer_id, actor)
        for effect in scope.effects:
            commit_effect(session, effect)
            self._end(plan.timer_id, TimerEnd.CANCELLED)

    def _end(self, timer_id: bytes, end: TimerEnd) -> None:
        self._endings.append(UnfiredTimer(self._plans.end(timer_id), self._view.height, end))

    # Timers

    def deliver(self, mechanism: Any, keeps_record: bool) -> Callable[[], None]:
        """Deliver the due timers, as `trailboss.execution.delivery.deliver_timers` does."""
        session = self._session
        session.has_delivered = True
        if not (session.hooks.opens_empty or session.queue.due_count):
            return lambda: None
        mechanism.expire(session.queue.died())
        recorder = Recorder(session) if keeps_record else None
        opened = session.hooks.open(session)
        context = selection_context(session, opened.market)
        selection = mechanism.select(due_timers(session, mechanism.policy), context)
        all_first = mechanism.policy.charging is Charging.ALL_FIRST
        for decisions in [list(selection)] if all_first else ([decision] for decision in selection):
            for decision in decisions:
                if recorder is not None:
                    recorder.decided(decision)
                apply_decision(session, decision)
            for decision in decisions:
                self._fire(decision, recorder)
        rest = selection.rest()
        if recorder is not None:
            session.decisions = recorder.record(mechanism, context, rest, opened.collected)
        return partial(opened.close, rest)

    def _fire(self, decision: Decision, recorder: Recorder | None) -> None:
        session, timer, prices = self._session, decision.timer, decision.prices
        reservation = session.reservations.pop(timer.timer_id, None)
        if reservation is None:
            return
        plan = self._plans.find(timer.timer_id)
        order = plan.order
        meter = Meter(decision.gas_limit, reservation.cells_limit, decision.agent_cycles)
        is_ok = not order.fails and fits(order, meter)
        if is_ok:
            for again in self._ground.agents[plan.agent].again(plan, self._view):
                try:
                    self._schedule(plan.agent, again, meter)
                except Rejection:
                    self._refused.append((plan.agent, again))
        with suppress(OutOfGas):
            meter.charge_cycles(self._frame)
            use_up(order, meter, self._frame)
        cycles, cells = meter.charged()
        settlement = settle(decision.max_cost, cycles, cells, prices)
        self._ledger.credit(timer.fee_payer, settlement.refund)
        self._ledger.credit(session.context.proposer, settlement.tip)
        self._ledger.burned += settlement.burned
        session.cycles_used += cycles
        session.cells_used += cells
        session.timer_cycles_used += cycles
        session.timer_cells_used += cells
        session.fired.append(Fired(timer.actor, prices.cycle_tip, cycles, cycles * prices.lane_basefee))
        if recorder is not None:
            recorder.fired(decision, cycles)
        if session.hooks.is_last(decision):
            session.ends.fired += 1
            if timer.timer_id in self._plans.live:
                self._plans.end(timer.timer_id)
        due = timer.height if decision.entry is None else decision.entry.hit_height
        self._tips += settlement.tip
        fire = Fire(plan, self._view.height, due, is_ok, cycles, settlement.burned, settlement.tip)
        self._fires.append(fire)

    # The end

    def result(self, waiting: int) -> BlockResult:
        """Return what the block came to, once the agents have seen it."""
        session = self._session
        for timer_id, end in session.ended:
            self._end(timer_id, end)
        result = BlockResult(
            view=self._view,
            accepted=self._accepted,
            fires=self._fires,
            endings=self._endings,
            waiting=waiting,
            timer_cycles=session.timer_cycles_used,
            cycles=session.cycles_used,
            burned=self._ledger.burned,
            tips=self._tips,
            refused=self._refused,
        )
        show(self._ground, result)
        return result
