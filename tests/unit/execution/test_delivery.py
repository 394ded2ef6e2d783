"""Delivery under policies that FIFO does not have: before the transactions, in turn, the unfunded deferred.

The decisions come from a stand-in mechanism; what is tested is what delivery tells it and does with its decisions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from trailboss.fees import Prices, max_cost
from trailboss.mechanisms import registry
from trailboss.mechanisms.base import Charging, Decision, DeliveryPolicy, DueTimers, Mechanism, Phase, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.fifo import build_fifo
from trailboss.model.decisions import Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params import load_params
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.mechanism import fifo
from trailboss.views.mechanism import registry as view_registry

CBY = 10**9
BASEFEE = 10_000
GAS_LIMIT = 500_000
MAX_COST = (GAS_LIMIT + 550_000) * BASEFEE

ACTOR = """
def arm(payload):
    for label in payload.split():
        timer_id = pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, label, gas_limit=500_000)
        pvm_host.set_state(label, timer_id)


def plan(payload):
    label, _, deeds = payload.partition(b"=")
    pvm_host.set_state(b"plan:" + label, deeds)


def note(payload):
    pvm_host.set_state(b"noted", payload)


def handle_timer(label):
    order = pvm_host.get_state(b"order") or b""
    pvm_host.set_state(b"order", order + b" " + label)
    pvm_host.set_state(b"saw:" + label, pvm_host.get_state(b"noted") or b"nothing")
    for deed in (pvm_host.get_state(b"plan:" + label) or b"").split():
        verb, _, name = deed.partition(b":")
        if verb == b"cancel":
            pvm_host.cancel_timer(pvm_host.get_state(name))
        elif verb == b"extend":
            pvm_host.extend_timer(pvm_host.get_state(name), pvm_host.block_height() + 77)
        elif verb == b"spend":
            pvm_host.transfer_balance(bytes(19) + b"\\x77", int(name))
        elif verb == b"spin":
            while True:
                pass
"""


@dataclass(kw_only=True)
class AllFire(Mechanism):
    """Lets every due timer fire while lane and payer allow it, the last scheduled first.

    It decides about a timer when it is asked, by what it has heard until then and by what the context answers then.
    Those that have not left are `waiting`, by id, in due order.
    """

    policy: DeliveryPolicy
    unfunded: Verdict = Verdict.UNFUND
    gas_limit: int | None = None
    tip: int = 0
    lane_basefee: int = 0
    agent_cycles: int = 0
    name: str = "all_fire"
    waiting: dict[bytes, Timer] = field(default_factory=dict)

    def leave(self, timer_id: bytes) -> None:
        self.waiting.pop(timer_id, None)

    def replace(self, timer: Timer) -> None:
        if timer.timer_id in self.waiting:
            self.waiting[timer.timer_id] = timer

    def select(self, due: DueTimers, context: SelectionContext[Market]) -> "Turns":
        self.waiting = {timer.timer_id: timer for timer in (*due.waiting, *due.joining)}
        return Turns(self, context)


@dataclass(frozen=True)
class Turns:
    """One block's decisions of `AllFire`."""

    mechanism: AllFire
    context: SelectionContext[Market]

    def __iter__(self) -> Iterator[Decision]:
        for rank, timer_id in enumerate(reversed(list(self.mechanism.waiting)), start=1):
            timer = self.mechanism.waiting.get(timer_id)
            if timer is not None:  # An earlier fire may have cancelled it.
                yield self.decide(timer, rank)

    def decide(self, timer: Timer, rank: int) -> Decision:
        mechanism, context = self.mechanism, self.context
        prices = Prices(context.cycle_basefee, context.cell_basefee, mechanism.tip, 0, mechanism.lane_basefee)
        gas_limit = mechanism.gas_limit or timer.gas_limit
        cost, available = max_cost(gas_limit, context.max_cells_per_fire, prices), context.balance_of(timer.fee_payer)
        verdict, reason = Verdict.FIRE, None
        if gas_limit > context.lane_cycles_left():
            verdict, reason = Verdict.DEFER, DeferralReason.LANE_FULL
        elif available < cost:
            verdict = mechanism.unfunded
            reason = DeferralReason.UNFUNDED if verdict is Verdict.DEFER else None
        return Decision(
            timer=timer,
            verdict=verdict,
            max_cost=cost,
            available=available,
            reason=reason,
            prices=prices,
            gas_limit=gas_limit,
            rank=rank,
            agent_cycles=mechanism.agent_cycles,
        )

    def rest(self) -> Rest:
        return Rest(stopped=Stop.NONE_LEFT)


Start = Callable[..., ActorHandle]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return what starts a chain that charges timers in turn, and returns an actor on it."""

    def started(value: int = 100 * CBY, *, phase: Phase = Phase.AFTER_TRANSACTIONS, **changes: object) -> ActorHandle:
        calls = build_fifo(load_params()).policy.calls
        policy = DeliveryPolicy(phase=phase, charging=Charging.IN_TURN, examined_max=100, calls=calls)
        rows = {**registry.MECHANISMS, "all_fire": lambda _: AllFire(policy=policy, **changes)}
        monkeypatch.setattr(registry, "MECHANISMS", rows)
        views = {**view_registry.MECHANISM_VIEWS, "all_fire": fifo.VIEWS}
        monkeypatch.setattr(view_registry, "MECHANISM_VIEWS", views)
        chain = LocalChain(mechanism="all_fire")
        return chain.deploy(ACTOR, sender=chain.accounts[0], value=value)

    return started


def run(actor: ActorHandle, labels: bytes, *plans: bytes) -> LocalChain:
    """Schedule timers of one height and let it come; return the chain, checked."""
    chain = actor.chain
    for plan in plans:
        actor.call("plan", plan, sender=chain.accounts[0], check=True)
    actor.call("arm", labels, sender=chain.accounts[0], check=True)
    chain.mine()
    chain.check_invariants()
    return chain


def order(actor: ActorHandle) -> bytes:
    return actor.storage.get(b"order", b"").strip()


def test_timers_run_in_the_order_of_the_decisions_when_charged_in_turn(start: Start) -> None:
    """The mechanism's order, not the store's."""
    actor = start()
    run(actor, b"a b c")
    assert order(actor) == b"c b a"


@pytest.mark.parametrize(
    ("phase", "seen"), [(Phase.BEFORE_TRANSACTIONS, b"nothing"), (Phase.AFTER_TRANSACTIONS, b"note")]
)
def test_timers_run_where_the_policy_says_when_a_block_has_transactions_too(
    start: Start, phase: Phase, seen: bytes
) -> None:
    """Before the block's transactions, or after them."""
    actor = start(phase=phase)
    chain = actor.chain
    actor.call("arm", b"a", sender=chain.accounts[0], check=True)
    actor.call("note", b"note", sender=chain.accounts[0], check=True)
    chain.check_invariants()
    assert actor.storage[b"saw:a"] == seen


def test_receipts_go_to_their_transactions_when_timers_come_first(start: Start) -> None:
    """The fires' receipts stand before them in the block and are not mistaken for theirs."""
    actor = start(phase=Phase.BEFORE_TRANSACTIONS)
    chain = actor.chain
    actor.call("arm", b"a b", sender=chain.accounts[0], check=True)
    receipt = actor.call("note", b"x", sender=chain.accounts[0])
    assert (receipt.origin, receipt.payer) == ("transaction", chain.accounts[0].address)
    assert [item.origin for item in chain.receipts(chain.height)] == ["timer", "timer", "transaction"]


def test_refund_of_one_fire_pays_for_the_next_when_charged_in_turn(start: Start) -> None:
    """A purse that holds one pre-charge and a little serves three fires, one after another."""
    actor = start(MAX_COST + CBY)
    run(actor, b"a b c")
    assert order(actor) == b"c b a"


def test_timer_is_removed_when_an_earlier_fire_has_spent_its_money_and_the_policy_removes(start: Start) -> None:
    """What is available is what is left then."""
    actor = start(MAX_COST + CBY)
    chain = run(actor, b"a b", b"b=spend:%d" % CBY)
    fire = chain.receipts(chain.height)[0]
    assert order(actor) == b"b"
    (event,) = chain.events("TimerCancelledInsufficientFunds")
    assert event.timer_id == actor.storage[b"a"]
    assert event.data["required"] == MAX_COST
    assert event.data["available"] == MAX_COST - fire.fee_paid
    assert actor.timers() == []


def test_timer_waits_when_an_earlier_fire_has_spent_its_money_and_the_policy_defers(start: Start) -> None:
    """It is told once, and runs when its payer has money again; it counts the blocks since its height."""
    actor = start(MAX_COST + CBY, unfunded=Verdict.DEFER)
    chain = run(actor, b"a b", b"b=spend:%d" % CBY)
    chain.mine(3)
    chain.check_invariants()
    (event,) = chain.events("timer.deferred")
    assert event.data["reason"] == "unfunded"
    assert [(timer.deferrals, timer.deferred_for) for timer in actor.timers()] == [(4, "unfunded")]
    chain.transfer(actor, 10 * CBY, sender=chain.accounts[0])
    assert order(actor) == b"b a"
    assert chain.events("timer.fired")[-1].data["blocks_deferred"] == 4


def test_lane_is_filled_by_what_fires_used_when_charged_in_turn(start: Start) -> None:
    """Seven limits of 500,000 fit a lane of 2,000,000 while little is used; spent for real, four do."""
    frugal = start()
    run(frugal, b"a b c d e f g")
    assert order(frugal) == b"g f e d c b a"
    spendthrift = start()
    chain = run(spendthrift, b"a b c d e f g", *(label + b"=spin" for label in (b"g", b"f", b"e", b"d")))
    deferred = [event.timer_id for event in chain.events("timer.deferred")]
    assert deferred == [spendthrift.storage[label] for label in (b"c", b"b", b"a")]
    assert {event.data["reason"] for event in chain.events("timer.deferred")} == {"lane_full"}


def test_timer_is_left_alone_when_an_earlier_fire_has_cancelled_it(start: Start) -> None:
    """It was not charged yet, so nothing returns; it is cancelled, the mechanism hears it, and nothing else."""
    actor = start()
    chain = run(actor, b"a b c", b"c=cancel:b")
    assert order(actor) == b"c a"
    (event,) = chain.events("timer.cancelled")
    assert event.data == {"timer_id": actor.storage[b"b"], "refund": 0}
    totals = chain.chain.totals()
    assert (totals.scheduled, totals.fired, totals.cancelled) == (3, 2, 1)


def test_extension_stays_when_the_extended_timer_is_deferred_in_the_same_block(start: Start) -> None:
    """The mechanism hears of the extension, and what is written is the timer as it is then."""
    actor = start(MAX_COST + CBY, unfunded=Verdict.DEFER)
    chain = run(actor, b"a b", b"b=extend:a spend:%d" % CBY)
    (timer,) = actor.timers()
    assert (timer.expires_at, timer.deferred_for) == (chain.height + 77, "unfunded")


def test_fire_has_the_prices_and_the_gas_limit_of_its_decision_when_they_are_not_the_timers(start: Start) -> None:
    """It may use 60,000 cycles and not its own 500,000; tip, lane basefee and basefees are paid for what it used."""
    actor = start(gas_limit=60_000, tip=7, lane_basefee=11)
    chain = actor.chain
    actor.call("plan", b"b=spin", sender=chain.accounts[0], check=True)
    actor.call("arm", b"a b", sender=chain.accounts[0], check=True)
    burned, tips = chain.burned, chain.balance(chain.proposer)
    chain.mine()
    chain.check_invariants()
    spun, done = chain.receipts(chain.height)
    assert (spun.status, spun.cycles_used) == ("reverted", 60_000)
    assert (done.status, done.cycles_used < 60_000) == ("ok", True)
    for receipt, event in zip((spun, done), chain.events("timer.fired"), strict=True):
        cycles, cells = receipt.cycles_used, receipt.cells_used
        assert receipt.tip == event.data["tip"] == cycles * 7
        assert event.data["lane_burned"] == cycles * 11
        assert receipt.fee_burned == cycles * (BASEFEE + 11) + cells * BASEFEE
        assert event.data["fee_paid"] == receipt.fee_burned + receipt.tip
        assert event.data["refund"] == 60_000 * (BASEFEE + 7 + 11) + 550_000 * BASEFEE - event.data["fee_paid"]
    assert chain.burned - burned == spun.fee_burned + done.fee_burned
    assert chain.balance(chain.proposer) - tips == spun.tip + done.tip


def test_cycles_of_an_agents_question_count_into_the_fire_when_there_was_one(start: Start) -> None:
    """They are used before the handler begins: paid, within the gas limit, and out of the lane."""
    plain, asked = start(), start(agent_cycles=30_000)
    used = []
    for actor in (plain, asked):
        chain = run(actor, b"a")
        (receipt,) = chain.receipts(chain.height)
        assert chain.block().header.timer_cycles_used == receipt.cycles_used
        used.append(receipt.cycles_used)
    assert used[1] == used[0] + 30_000
    spent = start(agent_cycles=30_000)
    chain = run(spent, b"a", b"a=spin")
    assert chain.receipts(chain.height)[0].cycles_used == GAS_LIMIT


def test_mechanism_hears_of_every_timer_that_leaves_or_changes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fire, a cancellation, an extension and a deferral, each when it happens, and nothing else."""
    heard: list[tuple[str, bytes]] = []
    leave, replace = AllFire.leave, AllFire.replace

    def hear_leave(mechanism: AllFire, timer_id: bytes) -> None:
        heard.append(("leave", timer_id))
        leave(mechanism, timer_id)

    def hear_replace(mechanism: AllFire, timer: Timer) -> None:
        heard.append(("replace", timer.timer_id))
        replace(mechanism, timer)

    monkeypatch.setattr(AllFire, "leave", hear_leave)
    monkeypatch.setattr(AllFire, "replace", hear_replace)
    actor = start(MAX_COST + CBY, unfunded=Verdict.DEFER)
    run(actor, b"a b c", b"c=extend:a cancel:b spend:%d" % CBY)
    labels = {actor.storage[label]: label for label in (b"a", b"b", b"c")}
    told = [(word, labels[timer_id]) for word, timer_id in heard]
    assert told == [("leave", b"c"), ("replace", b"a"), ("leave", b"b"), ("replace", b"a")]
    heard.clear()
    actor.chain.transfer(actor, 10 * CBY, sender=actor.chain.accounts[0])
    assert [(word, labels[timer_id]) for word, timer_id in heard] == [("leave", b"a")]
