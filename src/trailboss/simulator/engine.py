"""Frames without programs: what a fire does and uses is drawn, what an agent bids it is asked.

`AgentEngine` is the engine of a simulated chain. A mechanism alone asks it for bids only.
"""

from collections.abc import Callable
from typing import Final, TypeVar, cast

from trailboss.execution.agents import HANDLER as GET_BID
from trailboss.execution.host import ChainHost
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.timers import TimerRequest
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.simulator.dialects import ASKING
from trailboss.simulator.ground import ORDER_CELLS, ORDER_CYCLES, SLOT, Ground
from trailboss.simulator.orders import BlockResult, Cancel, Fund, Order, PlannedTimer, Schedule, Touch, View, Work
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.failures import exhaustion
from trailboss.vm.host import Host

ORDER: Final = "order"  # handler of a transaction: it carries out the order of the number in its payload
NUMBER_WIDTH: Final = 8
FAILED: Final = Rejection(RejectionReason.PVM_ERROR, "this fire is drawn to fail")
T = TypeVar("T")


def fits(order: Schedule, meter: Meter) -> bool:
    """Return whether what a fire uses is within what it may use."""
    return order.cycles <= meter.cycles_left and order.cells <= meter.cells_left


def use_up(order: Schedule | Work, meter: Meter, frame: int = 0) -> None:
    """Charge what an execution uses in all; ``frame`` cycles of it are charged already. `OutOfGas` if it may not."""
    meter.charge_cells(max(order.cells - meter.cells_used, 0))
    meter.charge_cycles(order.cycles - frame)


class AgentEngine:
    """An engine whose frames do what agents have ordered.

    Attributes:
        view: What the agents see of the block that is built.
        orders: Those of the block's transactions, with the numbers of their agents.
        refused: Those that a rule has refused.
        accepted: Timers that the block has scheduled.
    """

    view: View

    def __init__(self, ground: Ground, find: Callable[[bytes], PlannedTimer]) -> None:
        """Run the frames of a ground's actors; ``find`` returns the plan of a live timer."""
        self._ground, self._find = ground, find
        self._frame = ground.params.costs.frame_base
        self.orders: list[tuple[int, Order]] = []
        self.refused: list[tuple[int, Order]] = []
        self.accepted: list[PlannedTimer] = []

    def version(self) -> str:
        """Return the engine's name and version."""
        return "agents 1"

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Accept the one source."""

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names that can be called."""
        return frozenset({ORDER, GET_BID})

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Note nothing."""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame: a question for a bid, a transaction with an order, or a fire."""
        scope = cast(ChainHost, host).scope
        kind = scope.session.context.rules.market.kind
        if frame.handler == GET_BID:
            plan = self._find(scope.envelope.timer_id)
            return FrameOutcome(ASKING[kind].answer(self._ground.agents[plan.agent].bid(plan, self.view)), None)
        try:
            if frame.handler == ORDER:
                self._carry_out(*self.orders[int.from_bytes(frame.payload, "big")], host, meter, kind)
                return FrameOutcome(b"", None)
            return self._fire(self._find(scope.envelope.timer_id), host, meter, kind)
        except OutOfGas:
            return FrameOutcome(b"", exhaustion(meter))

    def _carry_out(self, number: int, order: Order, host: Host, meter: Meter, kind: MarketKind) -> None:
        addresses = self._ground.addresses
        try:
            match order:
                case Schedule():
                    self._schedule(number, order, host, kind)
                case Cancel(plan):
                    self._cancel(plan, host)
                case Fund(actor, amount):
                    host.transfer(addresses[actor], amount)
                case Touch():
                    count = int.from_bytes(host.read_slot(SLOT) or b"", "big") + 1
                    host.write_slot(SLOT, count.to_bytes(NUMBER_WIDTH, "big"))
        except Rejection:
            self.refused.append((number, order))
        spent = order if isinstance(order, Work) else Work(ORDER_CYCLES, ORDER_CELLS)
        use_up(spent, meter, meter.cycles_used)

    def _fire(self, plan: PlannedTimer, host: Host, meter: Meter, kind: MarketKind) -> FrameOutcome:
        order = plan.order
        # The frame's base is charged, and it is part of what the fire uses.
        meter.cycles_used -= self._frame
        is_ok = not order.fails and fits(order, meter)
        meter.cycles_used += self._frame
        if is_ok:
            for again in self._ground.agents[plan.agent].again(plan, self.view):
                try:
                    self._schedule(plan.agent, again, host, kind)
                except Rejection:
                    self.refused.append((plan.agent, again))
        use_up(order, meter, self._frame)
        return FrameOutcome(b"", FAILED.error() if order.fails else None)

    def _schedule(self, number: int, order: Schedule, host: Host, kind: MarketKind) -> None:
        form, request = ASKING[kind].request(self._ground, order)
        if isinstance(request, TimerRequest):
            timer_id = host.schedule_timer(request)
        else:
            timer_id = bytes(host.market_call(form, request))
        self.accepted.append(PlannedTimer(order, number, timer_id, self.view.height))

    def _cancel(self, plan: PlannedTimer, host: Host) -> None:
        if host.has_call(calls.CANCEL_GLOBALBOX):
            host.market_call(calls.CANCEL_GLOBALBOX, (self._ground.addresses[plan.order.called], plan.timer_id))
        else:
            host.cancel_timer(plan.timer_id)

    def perform(self, action: Callable[[], T]) -> T:
        """Run an action here."""
        return action()

    def prepare(self) -> None:
        """Load nothing."""

    def close(self) -> None:
        """Release nothing."""


def show(ground: Ground, block: BlockResult) -> None:
    """Show the agents what has become of their orders and timers, each its own."""
    agents = ground.agents
    for plan in block.accepted:
        agents[plan.agent].saw_plan(plan, block.view)
    for fire in block.fires:
        agents[fire.plan.agent].saw_fire(fire, block.view)
    for ending in block.endings:
        agents[ending.plan.agent].saw_ending(ending, block.view)
    for number, order in block.refused:
        agents[number].was_refused(order, block.view)
