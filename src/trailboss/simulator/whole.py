"""The same simulation on a whole chain: its blocks have transactions, receipts, events, state roots."""

from collections.abc import Mapping
from typing import Any, Final

from trailboss.chain.block_archive import MemoryArchive
from trailboss.chain.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.history import History
from trailboss.execution.genesis import apply_genesis
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.configs import amount_of
from trailboss.model.events import TIMER_ENDINGS, TIMER_FIRE_RECEIPT, TIMER_QUEUED
from trailboss.model.timers import TimerEnd
from trailboss.model.transactions import ExecuteActor, Transaction, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.simulator.engine import NUMBER_WIDTH, ORDER, AgentEngine, show
from trailboss.simulator.ground import BANK, ORDER_CELLS, ORDER_CYCLES, Ground, Plans
from trailboss.simulator.orders import BlockResult, Cancel, Fire, Order, Schedule, Touch, UnfiredTimer, Work
from trailboss.state.store import MemoryStore
from trailboss.views.records import event_view

PRICE_MAX: Final = 10**18  # fee cap of every transaction, base units a cycle or a cell


class _Prepared(MemoryStore):
    """A store whose first state is that of a ground."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._opening = ground.first_state()

    def commit(self, height: int, written: Mapping[bytes, bytes | None]) -> Any:
        return super().commit(height, self._opening if height == 0 else written)


class Whole:
    """A whole chain, block after block; see `trailboss.simulator.alone.Alone`."""

    def __init__(self, ground: Ground) -> None:
        """Stand on a ground, before block 1."""
        self.ground = ground
        store, params = _Prepared(ground), ground.params
        genesis = apply_genesis(ground.genesis, store)
        self._plans = Plans(store.read)
        self._engine = AgentEngine(ground, self._plans.find)
        blocks = History(MemoryArchive(), params.governance.block_interval_ms, genesis)
        self.chain = Chain.of_parts(ground.genesis, params, self._engine, store, blocks, owns_engine=True)
        self._nonce = 0
        self._last: BlockResult | None = None
        self._hits: dict[tuple[bytes, int], int] = {}  # fires of Globalbox to the heights from which they are due

    @property
    def height(self) -> int:
        """Height of the last block."""
        return self.chain.height

    def balances(self) -> dict[bytes, int]:
        """Return the balances of all accounts that hold anything."""
        accounts = ((address, amount_of(account.balance)) for address, account in self.chain.accounts())
        return {bytes(address): balance for address, balance in accounts if balance}

    def pending(self) -> int:
        """Return how many timers live."""
        return self.chain.timer_count()

    def build(self) -> BlockResult:
        """Build the next block, and let the agents see it."""
        chain, engine, ground = self.chain, self._engine, self.ground
        rules = chain.rules()
        view = engine.view = ground.view(rules, self._balance_of, self._last)
        engine.orders = [(number, order) for number, agent in enumerate(ground.agents) for order in agent.orders(view)]
        engine.refused, engine.accepted = [], []
        transactions = [self._transaction(at, order) for at, (_, order) in enumerate(engine.orders)]
        before = chain.economy()[1]
        applied = chain.build(transactions, signatures_checked=True)
        block = applied.block
        self._nonce += len(block.transactions)
        orders = dict(zip(map(id, transactions), engine.orders, strict=True))
        refused = [orders[id(transaction)] for transaction, _ in applied.refused]
        for plan in engine.accepted:
            self._plans.add(plan)
        fires, endings = self._ends(block)
        result = self._last = BlockResult(
            view=view,
            accepted=engine.accepted,
            fires=fires,
            endings=endings,
            waiting=chain.queue.due_count,
            timer_cycles=block.header.timer_cycles_used,
            cycles=block.header.cycles_used,
            burned=chain.economy()[1] - before,
            tips=sum(fire.tip for fire in fires),
            refused=[*refused, *engine.refused],
        )
        self._plans.settle()
        show(ground, result)
        return result

    def _balance_of(self, actor: int) -> int:
        return self.chain.balance(Address(self.ground.addresses[actor]))

    def _transaction(self, at: int, order: Order) -> Transaction:
        match order:
            case Schedule(actor=actor) | Touch(actor):
                number = actor
            case Cancel(plan):
                number = plan.order.actor
            case _:
                number = BANK
        cycles, cells = (order.cycles, order.cells) if isinstance(order, Work) else (ORDER_CYCLES, ORDER_CELLS)
        blank = Transaction(
            chain_id=self.ground.genesis.chain_id,
            nonce=self._nonce + at,
            instruction=ExecuteActor(Address(self.ground.addresses[number]), ORDER, at.to_bytes(NUMBER_WIDTH, "big")),
            cycles_limit=cycles,
            cells_limit=cells,
            max_fee_per_cycle=PRICE_MAX,
            max_fee_per_cell=PRICE_MAX,
        )
        return sign_transaction(blank, development_account("simulator").private_key)

    def _ends(self, block: Block) -> tuple[list[Fire], list[UnfiredTimer]]:
        """Return the fires and the other ends of a block, in order."""
        fires, endings = list[Fire](), list[UnfiredTimer]()
        for event in block.events:
            if event.name == TIMER_QUEUED:
                facts = event_view(event, block.height).data
                self._hits[event.timer_id, facts["fire_seq"]] = facts["hit_height"]
        for receipt in block.receipts:
            if receipt.origin is Origin.TIMER:
                fires.append(self._fire(receipt, block.height))
        for event in (*block.events, *(event for receipt in block.receipts for event in receipt.events)):
            if event.name in TIMER_ENDINGS:
                plan, end = self._plans.end(event.timer_id), TimerEnd(TIMER_ENDINGS[event.name])
                if end is not TimerEnd.FIRED:
                    endings.append(UnfiredTimer(plan, block.height, end))
        return fires, endings

    def _fire(self, receipt: ReceiptRecord, height: int) -> Fire:
        plan = self._plans.find(receipt.timer_id)
        due = plan.order.height
        for event in receipt.events:
            if event.name == TIMER_FIRE_RECEIPT:
                due = self._hits.pop((event.timer_id, event_view(event, height).data["fire_seq"]))
        is_ok = receipt.status is Status.OK
        return Fire(plan, height, due, is_ok, receipt.cycles_used, receipt.fee_burned, receipt.tip)
