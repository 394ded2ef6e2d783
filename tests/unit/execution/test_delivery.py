"""Delivery under policies that FIFO does not have: before the transactions, in turn, the unfunded deferred.

The order comes from a stand-in mechanism; what is tested is what delivery does with its decisions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from trailboss.mechanisms.base import (
    Charging,
    Decision,
    LaneContext,
    LanePolicy,
    Phase,
    Selection,
    Unfunded,
    Verdict,
)
from trailboss.model.timers import Timer
from trailboss.testing import ActorHandle, LocalChain

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


@dataclass(frozen=True, slots=True)
class AllFire:
    """Lets every due timer fire at the basefees, the last scheduled first."""

    policy: LanePolicy
    name: str = "all_fire"

    def select(self, due: Iterable[Timer], context: LaneContext) -> Selection:
        cells = context.max_cells_per_fire * context.cell_basefee
        decisions = [
            Decision(
                timer=timer,
                verdict=Verdict.FIRE,
                max_cost=timer.gas_limit * context.cycle_basefee + cells,
                available=0,
                reason=None,
                cycle_price=context.cycle_basefee,
                cell_price=context.cell_basefee,
            )
            for timer in due
        ]
        return Selection(tuple(reversed(decisions)), exhausted=False)


def start(
    value: int = 100 * CBY, *, phase: Phase = Phase.AFTER_TRANSACTIONS, unfunded: Unfunded = Unfunded.REMOVE
) -> ActorHandle:
    """Return an actor on a chain that charges timers in turn."""
    chain = LocalChain()
    policy = LanePolicy(phase=phase, unfunded=unfunded, charging=Charging.IN_TURN, examined_max=100)
    chain.chain.mechanism = AllFire(policy)
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=value)


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


def test_timers_run_in_the_order_of_the_decisions_when_charged_in_turn() -> None:
    """The mechanism's order, not the store's."""
    actor = start()
    run(actor, b"a b c")
    assert order(actor) == b"c b a"


@pytest.mark.parametrize(
    ("phase", "seen"), [(Phase.BEFORE_TRANSACTIONS, b"nothing"), (Phase.AFTER_TRANSACTIONS, b"note")]
)
def test_timers_run_where_the_policy_says_when_a_block_has_transactions_too(phase: Phase, seen: bytes) -> None:
    """Before the block's transactions, or after them."""
    actor = start(phase=phase)
    chain = actor.chain
    actor.call("arm", b"a", sender=chain.accounts[0], check=True)
    actor.call("note", b"note", sender=chain.accounts[0], check=True)
    chain.check_invariants()
    assert actor.storage[b"saw:a"] == seen


def test_receipts_go_to_their_transactions_when_timers_come_first() -> None:
    """The fires' receipts stand before them in the block and are not mistaken for theirs."""
    actor = start(phase=Phase.BEFORE_TRANSACTIONS)
    chain = actor.chain
    actor.call("arm", b"a b", sender=chain.accounts[0], check=True)
    receipt = actor.call("note", b"x", sender=chain.accounts[0])
    assert (receipt.origin, receipt.payer) == ("transaction", chain.accounts[0].address)
    assert [item.origin for item in chain.receipts(chain.height)] == ["timer", "timer", "transaction"]


def test_refund_of_one_fire_pays_for_the_next_when_charged_in_turn() -> None:
    """A purse that holds one pre-charge and a little serves three fires, one after another."""
    actor = start(MAX_COST + CBY)
    run(actor, b"a b c")
    assert order(actor) == b"c b a"


def test_timer_is_removed_when_an_earlier_fire_has_spent_its_money_and_the_policy_removes() -> None:
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


def test_timer_waits_when_an_earlier_fire_has_spent_its_money_and_the_policy_defers() -> None:
    """It is told once, keeps its place, and runs when its payer has money again."""
    actor = start(MAX_COST + CBY, unfunded=Unfunded.DEFER)
    chain = run(actor, b"a b", b"b=spend:%d" % CBY)
    chain.mine(3)
    chain.check_invariants()
    (event,) = chain.events("timer.deferred")
    assert event.data["reason"] == "unfunded"
    assert [(timer.deferrals, timer.deferred_for) for timer in actor.timers()] == [(4, "unfunded")]
    chain.transfer(actor, 10 * CBY, sender=chain.accounts[0])
    assert order(actor) == b"b a"
    assert chain.events("timer.fired")[-1].data["blocks_deferred"] == 4


def test_lane_is_filled_by_what_fires_used_when_charged_in_turn() -> None:
    """Seven limits of 500,000 fit a lane of 2,000,000 while little is used; spent for real, four do."""
    frugal = start()
    run(frugal, b"a b c d e f g")
    assert order(frugal) == b"g f e d c b a"
    spendthrift = start()
    chain = run(spendthrift, b"a b c d e f g", *(label + b"=spin" for label in (b"g", b"f", b"e", b"d")))
    deferred = [event.timer_id for event in chain.events("timer.deferred")]
    assert deferred == [spendthrift.storage[label] for label in (b"c", b"b", b"a")]
    assert {event.data["reason"] for event in chain.events("timer.deferred")} == {"lane_full"}


def test_timer_is_left_alone_when_an_earlier_fire_has_cancelled_it() -> None:
    """It was not charged yet, so nothing returns; it is cancelled and nothing else."""
    actor = start()
    chain = run(actor, b"a b c", b"c=cancel:b")
    assert order(actor) == b"c a"
    (event,) = chain.events("timer.cancelled")
    assert event.data == {"timer_id": actor.storage[b"b"], "refund": 0}
    totals = chain.chain.totals()
    assert (totals.scheduled, totals.fired, totals.cancelled) == (3, 2, 1)


def test_extension_stays_when_the_extended_timer_is_deferred_in_the_same_block() -> None:
    """Delivery writes what the timer is now, not what it was when it was selected."""
    actor = start(MAX_COST + CBY, unfunded=Unfunded.DEFER)
    chain = run(actor, b"a b", b"b=extend:a spend:%d" % CBY)
    (timer,) = actor.timers()
    assert (timer.expires_at, timer.deferred_for) == (chain.height + 77, "unfunded")
