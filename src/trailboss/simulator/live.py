"""The agents of a scenario on a development chain that runs: their orders are transactions, their timers real ones.

What only a simulation can do is done as near as a chain allows: a timer that follows a fire is scheduled by a
transaction after it, and an agent that is asked in each block bids once, when its timer is scheduled.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from trailboss.chain.crowd import FUNDS, SPARE_CYCLES, Draft, draft_booking, fire_payload
from trailboss.chain.development import development_account
from trailboss.chain.drafts import Terms, draft_deployment
from trailboss.chain.reader import ChainReader
from trailboss.chain.stock_timers import TimerOrder, options_of, stock_source
from trailboss.codec.canonical import encode_canonical
from trailboss.model.actors import TIMER_SCHEDULE
from trailboss.model.blocks import Block, Origin, Status
from trailboss.model.events import TIMER_ENDINGS, EventRecord
from trailboss.model.globalbox import FRACTION_BITS
from trailboss.model.timers import TimerEnd
from trailboss.model.transactions import ExecuteActor, FundActor, SetBalance
from trailboss.primitives.octets import Address, Hash32
from trailboss.simulator.engine import show
from trailboss.simulator.ground import SLOT
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
from trailboss.simulator.scenario import Scenario
from trailboss.views.records import block_events

ORDER_TERMS: Final = Terms(cycles_limit=100_000)  # of a transaction that cancels, touches or funds
PREPARED_MAX: Final = 40  # transactions of one block that make actors
WORK_CYCLES: Final = 20_000  # that a transaction without timers uses at least


class LiveCrowd:
    """The agents of a scenario, on a chain whose rules are its own.

    After each block `record` shows it to the agents; then `orders` returns what they ask for.
    """

    def __init__(self, scenario: Scenario, chain: ChainReader) -> None:
        """Take the agents of a scenario; they have seen nothing."""
        genesis = chain.genesis
        rules = {"mechanism": genesis.mechanism, "preset": genesis.preset, "params": dict(genesis.overrides)}
        self._ground = replace(scenario, **rules, timer_multiplier=None).ground()
        self._deployments = [
            draft_deployment(
                development_account(_owner(each)).address,
                stock_source("crowd.py"),
                b"agent",
                entitlements=[TIMER_SCHEDULE],
            )
            for each in range(len(self._ground.funds) + 1)
        ]
        self._addresses = [bytes(address) for _, address in self._deployments]
        self._is_ready = False
        self._live: dict[bytes, PlannedTimer] = {}
        self._sent: dict[bytes, tuple[int, Order]] = {}
        self._refused: list[tuple[int, Order]] = []
        self._following: list[tuple[int, Order]] = []  # orders that follow from fires
        self._last: BlockResult | None = None

    def preparation(self, chain: ChainReader) -> list[Draft]:
        """Return the transactions of the next block that make and fund the crowd's actors; empty once all are there."""
        drafts: list[Draft] = []
        for number, (deployment, address) in enumerate(self._deployments):
            account = chain.account(address)
            if account is None:
                wallet, funds = development_account(_owner(number)).address, [0, *self._ground.funds][number]
                drafts += [Draft(SetBalance(wallet, FUNDS)), Draft(SetBalance(address, funds))]
            elif not account.code_hash:
                drafts.append(Draft(deployment, sender=_owner(number)))
            if len(drafts) >= PREPARED_MAX:
                break
        self._is_ready = not drafts
        return drafts

    def orders(self, chain: ChainReader) -> Iterator[tuple[Draft, int, Order]]:
        """Yield what the agents ask of the next block: the transaction, the number of the agent, and the order.

        They ask for nothing until all their actors are there.
        """
        if not self._is_ready:
            return
        view = self._view(chain)
        asked = [(number, order) for number, agent in enumerate(self._ground.agents) for order in agent.orders(view)]
        following, self._following = self._following, []
        for number, order in (*following, *asked):
            yield self._draft(chain, view, number, order), number, order

    def sent(self, tx_hash: Hash32, number: int, order: Order) -> None:
        """Note that an order waits in the mempool, by the hash of its transaction."""
        self._sent[tx_hash] = number, order

    def refuse(self, number: int, order: Order) -> None:
        """Note an order that the mempool does not take."""
        self._refused.append((number, order))

    def drop(self, tx_hash: bytes) -> None:
        """Note that a transaction has left the mempool without a block."""
        found = self._sent.pop(tx_hash, None)
        if found is not None:
            self._refused.append(found)

    def record(self, chain: ChainReader, block: Block) -> None:
        """Show a block to the agents; ``chain`` is the chain after it."""
        view, accepted, fires = self._view(chain), list[PlannedTimer](), list[Fire]()
        for receipt in block.receipts:
            if receipt.origin is Origin.TRANSACTION and receipt.origin_hash in self._sent:
                number, order = self._sent.pop(receipt.origin_hash)
                if receipt.status is not Status.OK:
                    self._refused.append((number, order))
                elif isinstance(order, Schedule):
                    identity = receipt.return_value[: Hash32.WIDTH]
                    plan = self._live[identity] = PlannedTimer(order, number, identity, block.height)
                    accepted.append(plan)
            elif receipt.origin is Origin.TIMER and receipt.timer_id in self._live:
                plan, is_ok = self._live[receipt.timer_id], receipt.status is Status.OK
                paid = receipt.cycles_used, receipt.fee_burned, receipt.tip
                fires.append(Fire(plan, block.height, plan.order.height, is_ok, *paid))
                if is_ok:
                    again = self._ground.agents[plan.agent].again(plan, view)
                    self._following += [(plan.agent, order) for order in again]
        endings = [each for event in block_events(block) if (each := self._ending(event, block.height)) is not None]
        refused, self._refused = self._refused, []
        self._last = BlockResult(
            view=view,
            accepted=accepted,
            fires=fires,
            endings=endings,
            waiting=chain.due_count(),
            timer_cycles=block.header.timer_cycles_used,
            cycles=block.header.cycles_used,
            burned=sum(receipt.fee_burned for receipt in block.receipts),
            tips=sum(receipt.tip for receipt in block.receipts),
            refused=refused,
        )
        show(self._ground, self._last)

    def _view(self, chain: ChainReader) -> View:
        def balance_of(number: int) -> int:
            return chain.balance(Address(self._addresses[number]))

        return replace(self._ground.view(chain.rules(), balance_of, self._last), addresses=self._addresses)

    def _ending(self, event: EventRecord, height: int) -> UnfiredTimer | None:
        """Return the end of a timer that an event is about; None if it fired, or is not the crowd's."""
        if event.name not in TIMER_ENDINGS or event.timer_id not in self._live:
            return None
        plan, end = self._live.pop(event.timer_id), TimerEnd(TIMER_ENDINGS[event.name])
        return None if end is TimerEnd.FIRED else UnfiredTimer(plan, height, end)

    def _draft(self, chain: ChainReader, view: View, number: int, order: Order) -> Draft:
        addresses = self._addresses
        match order:
            case Schedule():
                return self._schedule(chain, view, number, order)
            case Cancel(plan):
                named: dict[str, bytes] = {"target": addresses[plan.order.called]} if view.has_mailbox else {}
                asked = encode_canonical({**named, "timer_id": plan.timer_id})
                actor = plan.order.actor
                return Draft(ExecuteActor(Address(addresses[actor]), "cancel", asked), ORDER_TERMS, _owner(actor))
            case Fund(actor, amount):
                return Draft(FundActor(Address(addresses[actor]), amount), ORDER_TERMS, _owner(actor))
            case Touch(actor):
                return Draft(ExecuteActor(Address(addresses[actor]), "touch", b""), ORDER_TERMS, _owner(actor))
            case Work(cycles, cells):
                limit = max(cycles, WORK_CYCLES)
                used = fire_payload(limit, limit - WORK_CYCLES // 2, cells)
                worker = ExecuteActor(Address(addresses[0]), "handle_timer", used)
                return Draft(worker, Terms(cycles_limit=limit), _owner(0))

    def _schedule(self, chain: ChainReader, view: View, number: int, order: Schedule) -> Draft:
        actor, options = Address(self._addresses[order.actor]), options_of(chain)
        cap, tip = order.cap, order.tip
        if cap is None and tip is None:
            bid = self._ground.agents[number].bid(PlannedTimer(order, number, b"", view.height), view)
            cap, tip = (None, None) if bid is None else (bid[0], min(bid))
        used = min(order.cycles, order.gas_limit - SPARE_CYCLES)
        payload = fire_payload(order.gas_limit, used, order.cells, fails=order.fails)
        wanted: dict[str, Any] = {
            "max_fee_per_cycle": cap,
            "max_priority_fee_per_cycle": tip,
            "bid": None if order.tip is None else order.tip << FRACTION_BITS,
            "expires_at": order.expires_at or None,
            "target": Address(self._addresses[order.called]),
        }
        offered = {name: value for name, value in wanted.items() if name in options}
        if order.watches is None:
            booked = TimerOrder(height=order.height, payload=payload, gas_limit=order.gas_limit, **offered)
            return draft_booking(chain, actor, booked, owner=_owner(order.actor))
        watch = {
            "target": offered["target"],
            "watch_keys": [self._addresses[order.watches] + SLOT],
            "payload": payload,
            "gas_limit": order.gas_limit,
            "bid_fp": offered["bid"] or 0,
        }
        return Draft(ExecuteActor(actor, "watch", encode_canonical(watch)), ORDER_TERMS, _owner(order.actor))


def _owner(number: int) -> str:
    """Return the name of the development account that owns an actor of the crowd, and sends its orders."""
    return f"crowd {number}"
