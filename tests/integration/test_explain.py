"""explain: a timer's whole life, and why each decision fell as it did."""

import pytest

from tests.integration.helpers import answers, deploy_puppet, max_cost, perform, schedule, script, step
from trailboss.model.transactions import CancelTimer, ExtendTimer
from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import format_cby
from trailboss.testing import LocalChain
from trailboss.views.explain import life as lives
from trailboss.views.mechanism.base import OutlookKind, StepKind


def stories(chain: LocalChain, timer_id: bytes) -> list[str]:
    """Return what explain tells, with the blocks."""
    return [f"{step.block_height}: {step.story}" for step in chain.explain(timer_id).steps]


def test_life_tells_who_scheduled_and_what_it_cost_when_the_timer_fired(chain: LocalChain) -> None:
    """From the transaction to the refund, amounts included."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    timer_id = schedule(actor, height, b"tick", gas_limit=80_000)
    scheduled_at = chain.height
    chain.advance_to(height)
    (receipt,) = chain.receipts(height)
    life = chain.explain(timer_id)
    assert (life.timer_id, life.state, life.outlook, life.outlook_kind) == (timer_id, "fired", "", None)
    assert [each.kind for each in life.steps] == [StepKind.PLAIN, StepKind.RAN]
    assert stories(chain, timer_id) == [
        f"{scheduled_at}: scheduled by a transaction of {chain.accounts[0].address} for height {height}: calls "
        f"handle_timer with at most 80,000 cycles, paid by {actor.address}, expires after {scheduled_at + 2_592_000}",
        f"{height}: fired: {receipt.cycles_used:,} cycles and {receipt.cells_used:,} cells cost {actor.address} "
        f"{format_cby(receipt.fee_paid)} CBY, {format_cby(receipt.refund)} CBY of the pre-charge returned",
    ]
    assert str(life).startswith(f"timer 0x{timer_id.hex()}: fired\n  block {scheduled_at}: scheduled by")


def test_life_names_the_parent_when_a_fire_scheduled_the_timer(chain: LocalChain) -> None:
    """Lives link up through the ids."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    parent = schedule(actor, height, script(step("schedule_timer", 100, b"child")))
    chain.advance_to(height)
    (child,) = actor.timers()
    assert f"scheduled by the fire of timer 0x{parent.hex()} for height 100" in stories(chain, child.timer_id)[0]


def test_life_tells_the_error_when_the_fire_reverted(chain: LocalChain) -> None:
    """Code, slug and the actor's own words."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    timer_id = schedule(actor, height, script(step("raise", "no luck")))
    chain.advance_to(height)
    last = stories(chain, timer_id)[-1]
    assert chain.explain(timer_id).steps[-1].kind is StepKind.REVERTED
    assert last.startswith(f"{height}: fired and reverted (E1210 pvm_error: ")
    assert "no luck" in last


def test_life_tells_required_and_available_when_the_payer_was_broke(chain: LocalChain) -> None:
    """Both numbers, and whose purse it was."""
    actor = deploy_puppet(chain, value=5)
    height = chain.height + 4
    timer_id = schedule(actor, height, gas_limit=80_000)
    life = chain.explain(timer_id)
    assert life.outlook_kind is OutlookKind.UNFUNDED
    assert life.outlook == (
        f"removed unfunded at height {height} as things stand: a fire costs up to "
        f"{format_cby(max_cost(80_000))} CBY, {actor.address} holds 0.000000005 CBY"
    )
    chain.advance_to(height)
    life = chain.explain(timer_id)
    assert (life.state, life.steps[-1].kind) == ("unfunded", StepKind.UNFUNDED)
    assert stories(chain, timer_id)[-1] == (
        f"{height}: removed without running: a fire costs up to {format_cby(max_cost(80_000))} CBY and "
        f"its payer {actor.address} held 0.000000005 CBY"
    )


def test_life_tells_both_heights_when_the_timer_expired(chain: LocalChain) -> None:
    """And the outlook has said so before."""
    actor = deploy_puppet(chain)
    height = chain.height + 8
    timer_id = schedule(actor, height, b"", expires_at=height - 2)
    life = chain.explain(timer_id)
    assert life.outlook_kind is OutlookKind.EXPIRES
    assert life.outlook == f"expires unfired at height {height}: it may fire up to {height - 2} only"
    chain.advance_to(height)
    life = chain.explain(timer_id)
    assert (life.state, life.steps[-1].kind) == ("expired", StepKind.EXPIRED)
    assert (
        stories(chain, timer_id)[-1] == f"{height}: expired: it could fire up to height {height - 2}, this is {height}"
    )


def test_life_tells_every_change_when_owner_and_governance_touch_the_timer(chain: LocalChain) -> None:
    """Extended by both, cancelled by one."""
    actor = deploy_puppet(chain)
    one, two = schedule(actor, 100), schedule(actor, 100)
    answers(perform(actor, step("extend_timer", one, 500)))
    chain.system(ExtendTimer(one, 600))
    chain.system(CancelTimer(one))
    answers(perform(actor, step("cancel_timer", two)))
    assert [story.split(": ", 1)[1] for story in stories(chain, one)[1:]] == [
        "extended by its actor: may now fire up to height 500",
        "extended by governance: may now fire up to height 600",
        "cancelled by governance",
    ]
    assert stories(chain, two)[-1].endswith("cancelled by its actor")
    assert [chain.explain(timer_id).state for timer_id in (one, two)] == ["cancelled", "cancelled"]


@pytest.mark.spec("F-74")
def test_life_tells_why_a_timer_waits_when_the_lane_is_full(chain: LocalChain) -> None:
    """The deferral with its reason while it waits, and how long it took when it is over."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(4))))
    chain.advance_to(height)
    life = chain.explain(ids[3])
    assert life.state == "live"
    assert (life.steps[-1].kind, life.outlook_kind) == (StepKind.WAITS, OutlookKind.RUNS)
    assert life.steps[-1].story == (
        f"due at {height}, deferred (lane_full): its 550,000 cycles did not fit what was left of the block's timer "
        "lane; it stays due"
    )
    assert life.outlook.startswith(
        f"fires at height {height + 1} as things stand: a fire costs up to {format_cby(max_cost())} CBY"
    )
    assert life.outlook.endswith("; it waits because of lane_full")
    chain.mine()
    assert "fired, after 1 deferred block: " in stories(chain, ids[3])[-1]


@pytest.mark.trailboss(params={"timers.gc_cycles_per_block": 200})
def test_life_tells_why_a_dead_timer_waits_when_the_clean_up_budget_is_spent(chain: LocalChain) -> None:
    """It says that the timer is to be removed."""
    actor = deploy_puppet(chain, value=0)
    height = chain.height + 4
    answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(2))))
    chain.advance_to(height)
    (timer,) = chain.timers()
    assert stories(chain, timer.timer_id)[-1] == (
        f"{height}: due at {height}, deferred (gc_exhausted): it is to be removed and the block's clean-up budget was "
        "spent; it stays due"
    )


def test_explaining_is_refused_when_no_block_scheduled_the_timer(chain: LocalChain) -> None:
    """An unknown id, and one whose block was reverted."""
    actor = deploy_puppet(chain)
    mark = chain.snapshot()
    timer_id = schedule(actor, 100)
    chain.revert(mark)
    for unknown in (timer_id, bytes(32)):
        with pytest.raises(Rejection, match=f"no block of this chain scheduled timer 0x{unknown.hex()}"):
            chain.explain(unknown)


NARROW = {
    "timers.lane_cycles_per_block": 100_000,
    "timers.max_cycles_per_fire": 100_000,
    "lane.max_cycles_per_fire": 60_000,
}
"""A lane for a few fires of a puppet."""


def crowd(chain: LocalChain, height: int, count: int, room: int, tip: int = 100) -> list[bytes]:
    """Have an actor schedule timers of equal tips whose max_fee leaves some room above the present lane basefee."""
    actor = deploy_puppet(chain, sender=chain.accounts[1])
    offer = {"max_fee_per_cycle": chain.lane_basefee + room, "max_priority_fee_per_cycle": tip}
    steps = (step("schedule_timer", height, b"%d" % each, gas_limit=40_000, **offer) for each in range(count))
    return answers(perform(actor, *steps))


@pytest.mark.spec("L-09")
@pytest.mark.trailboss(mechanism="lane", params=NARROW)
def test_life_tells_price_and_rank_of_every_wait_when_the_lane_is_contended(chain: LocalChain) -> None:
    """The basefee rises beyond its cap while others fire, falls back, and its turn comes: reasons, ranks, numbers."""
    chain.mine(12)
    height = chain.height + 6
    crowd(chain, height, 40, room=5_000)
    timer_id = schedule(
        deploy_puppet(chain),
        height,
        gas_limit=40_000,
        max_fee_per_cycle=chain.lane_basefee + 60,
        max_priority_fee_per_cycle=5,
    )
    chain.advance_to(height + 18)
    life = chain.explain(timer_id)
    first, last = chain.decisions(height), chain.decisions(life.steps[-1].block_height)
    assert first is not None
    assert last is not None
    assert life.state == "fired"
    assert life.waited.startswith(f"deferred {len(life.waits)} times: outranked at {height}")
    assert "cut-off 6" in life.waited
    assert f"(max_fee {life.steps[0].event.data['max_fee_per_cycle']:,} < lane basefee " in life.waited
    assert [wait.height for wait in life.waits] == list(range(height, life.steps[-1].block_height))
    assert f"fired at rank {last.examined[0].rank} of 1 with a tip of " in life.steps[-1].story
    assert f" and W 2.0, after {len(life.waits)} deferred blocks: " in life.steps[-1].story
    assert [label for label, _ in life.lines()][-2] == "waited"


@pytest.mark.spec("L-05", "L-31")
@pytest.mark.trailboss(params=NARROW)
def test_life_tells_that_a_timer_is_stranded_when_the_lane_begins_above_it(chain: LocalChain) -> None:
    """Before, at and after the crossing; and what comes of it."""
    actor = deploy_puppet(chain)
    large, small = schedule(actor, 20, expires_at=30), schedule(actor, 20, b"s", gas_limit=50_000)
    assert chain.explain(large).outlook.startswith("fires at height 20 as things stand")
    begins = chain.activate_lane(12)
    stranded = (
        "waits until it expires after height 30: its gas limit of 100,000 is above the 60,000 cycles that one fire may "
        "use in the timer lane; cancel it and schedule it again with less"
    )
    assert chain.explain(large).outlook == stranded
    assert chain.explain(large).outlook_kind is OutlookKind.WAITS
    assert chain.explain(small).outlook_kind is OutlookKind.RUNS
    assert chain.explain(small).outlook.startswith("competes at height 20 with a tip of 0 a cycle, as things stand: ")
    chain.advance_to(25)
    life = chain.explain(large)
    assert [step.story for step in life.steps[1:]] == [
        f"the timer lane begins: from {begins} on it competes there once it is due",
        "due at 20, deferred (over_cap): its 100,000 cycles are more than one fire may use in the timer lane; it stays "
        "due and is not ranked",
    ]
    assert (life.waited, life.outlook) == (
        "deferred 6 times: over the cap of 60,000 cycles a fire at 20 to 25",
        stranded,
    )
    assert chain.explain(small).state == "fired"
    chain.advance_to(31)
    assert chain.explain(large).state == "expired"
    assert chain.explain(large).waited.endswith("at 20 to 30")


@pytest.mark.spec("L-02", "L-16")
@pytest.mark.trailboss(mechanism="lane", params=NARROW)
def test_life_tells_clamp_and_price_when_the_timer_states_its_fees(chain: LocalChain) -> None:
    """What it offers, what was held, what a cycle costs now, and that it is priced out once it is."""
    actor = deploy_puppet(chain)
    basefee, height = chain.lane_basefee, chain.height + 20
    timer_id = schedule(
        actor, height, gas_limit=40_000, max_fee_per_cycle=basefee + 7, max_priority_fee_per_cycle=9_000
    )
    life = chain.explain(timer_id)
    expires_at = life.steps[0].event.data["expires_at"]
    assert life.steps[0].story.endswith(f", offers up to {basefee + 7:,} a cycle in the timer lane, 7 of it as a tip")
    assert life.steps[1].story == (
        "its priority fee of 9,000 a cycle is held at 7: its max_fee leaves no more above the lane basefee"
    )
    present = chain.lane_basefee
    price = 10_000 + present + 7
    assert f"a cycle costs 10,000 + {present:,} for the lane + 7 tip, " in life.outlook
    assert f"a fire costs up to {format_cby(40_000 * price + 550_000 * 10_000)} CBY" in life.outlook
    crowd(chain, chain.height + 4, 48, room=9_000)
    chain.mine(9)
    assert chain.lane_basefee > basefee + 7
    assert chain.explain(timer_id).outlook == (
        f"priced out as things stand: its max_fee of {basefee + 7:,} is below the lane basefee of "
        f"{chain.lane_basefee:,}; it waits for a lower one until it expires after height {expires_at}"
    )


@pytest.mark.spec("L-20")
@pytest.mark.trailboss(mechanism="lane", params=NARROW)
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("return b'x'", "answered something that is no bid (its answer is no bid: 0x78)"),
        ("raise ValueError", "failed (E1210 pvm_error: ValueError)"),
        ("raise ValueError('no ' + chr(0xD800))", "failed (E1210 pvm_error: ValueError: no \ud800)"),
        ("pvm_host.set_state(b'k', b'v')", "failed ("),
        ("while True: pass", "used up the cycles of a question (needs "),
    ],
)
def test_life_tells_what_its_agent_did_when_it_takes_the_default_fees(
    chain: LocalChain, answer: str, told: str
) -> None:
    """The failure is told before the fire of the same block."""
    alice = chain.accounts[0]
    source = (
        "import pvm_host\n\ndef adopt(payload):\n    pvm_host.set_gas_bidding_agent(pvm_host.self_address())\n\n"
        "def plan(payload):\n    return pvm_host.schedule_timer(pvm_host.block_height() + 4, b'')\n\n"
        f"def get_gas_bid(payload):\n    {answer}\n\ndef handle_timer(payload):\n    pass\n"
    )
    actor = chain.deploy(source, sender=alice, value=100 * 10**9)
    actor.call("adopt", sender=alice, check=True)
    timer_id = actor.call("plan", sender=alice, check=True).return_value
    assert "with what its agent answers" in chain.explain(timer_id).outlook
    chain.mine(4)
    life = chain.explain(timer_id)
    story = life.steps[1].story
    begin = f"the default agent's fees from now on: its agent {actor.address} {told}"
    assert story == begin if told.endswith(")") else story.startswith(begin)
    assert story.endswith(")")
    assert life.steps[2].story.startswith("fired")
    assert (life.waited, life.state) == ("", "fired")


@pytest.mark.trailboss(mechanism="lane", params=NARROW)
def test_life_expects_the_default_offer_when_the_actor_has_no_agent_any_more(chain: LocalChain) -> None:
    """Nobody is asked then, so nobody's answer decides."""
    alice = chain.accounts[0]
    actor = chain.deploy(
        "import pvm_host\n\ndef adopt(payload):\n    pvm_host.set_gas_bidding_agent(payload or None)\n\n"
        "def plan(payload):\n    return pvm_host.schedule_timer(pvm_host.block_height() + 9, b'')\n\n"
        "def get_gas_bid(payload):\n    return None\n\ndef handle_timer(payload):\n    pass\n",
        sender=alice,
        value=100 * 10**9,
    )
    actor.call("adopt", actor.address, sender=alice, check=True)
    timer_id = actor.call("plan", sender=alice, check=True).return_value
    assert "with what its agent answers" in chain.explain(timer_id).outlook
    actor.call("adopt", b"", sender=alice, check=True)
    assert "with a tip of 0 a cycle" in chain.explain(timer_id).outlook


@pytest.mark.trailboss(params=NARROW)
def test_life_goes_through_the_last_blocks_only_when_a_timer_waits_for_long(
    chain: LocalChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count is of all blocks that deferred it, the reasons of the last ones."""
    monkeypatch.setattr(lives, "BLOCKS_MAX", 10)
    timer_id = schedule(deploy_puppet(chain), 20)
    chain.activate_lane()
    chain.advance_to(59)
    life = chain.explain(timer_id)
    assert life.waited == ("deferred 40 times, of which the last 10: over the cap of 60,000 cycles a fire at 50 to 59")
    assert len(life.waits) == 10


BIDDER = """
import pvm_host
from cowboy_sdk import codec

def adopt(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())

def plan(payload):
    height = pvm_host.block_height() + 2
    return b"".join(pvm_host.schedule_timer(height, b"%d" % each) for each in range(int(payload)))

def get_gas_bid(payload):
    return codec.encode({"max_fee_per_cycle": 4_000, "max_priority_fee_per_cycle": 10})

def handle_timer(payload):
    pass
"""


def plan(chain: LocalChain, count: int) -> list[bytes]:
    """Have an actor whose agent caps at 4,000 schedule timers for two blocks ahead; return their ids."""
    alice = chain.accounts[0]
    bidder = chain.deploy(BIDDER, sender=alice, value=1_000 * 10**9)
    bidder.call("adopt", sender=alice, check=True)
    ids = bidder.call("plan", b"%d" % count, sender=alice, check=True).return_value
    return [ids[start : start + 32] for start in range(0, len(ids), 32)]


@pytest.mark.spec("L-20")
@pytest.mark.trailboss(mechanism="lane", params=NARROW)
def test_life_tells_that_its_agent_offered_too_little_when_the_basefee_was_above_the_bid(chain: LocalChain) -> None:
    """While it lives and when it has ended: what an agent offered in such a block is recorded nowhere."""
    (timer_id,) = plan(chain, 1)
    chain.mine(2)
    due = chain.height
    assert chain.explain(timer_id).waited == f"deferred once: its agent offered too little at {due}"
    while chain.explain(timer_id).state == "live":
        chain.mine()
    life = chain.explain(timer_id)
    assert life.waited == (
        f"deferred {chain.height - due} times: its agent offered too little at {due} to {chain.height - 1}"
    )
    assert " at rank 1 of 1 with a tip of 10 a cycle and W 2.0, after " in life.steps[-1].story


@pytest.mark.spec("L-20")
@pytest.mark.trailboss(mechanism="lane", params={"lane.gba_cycles_per_block": 50_000})
def test_life_tells_that_its_agent_was_not_asked_when_the_budget_for_questions_was_spent(chain: LocalChain) -> None:
    """One question a block: the second timer fires at the default's fees, and is told why before its fire."""
    asked, left = plan(chain, 2)
    chain.mine(2)
    life = chain.explain(left)
    assert [step.event.name for step in life.steps] == ["timer.scheduled", "gba.fallback", "timer.fired"]
    assert life.steps[1].story == (
        "the default agent's fees in this block: the block's budget for questions was spent before its own agent"
    )
    assert chain.explain(asked).state == "live"


@pytest.mark.spec("L-18")
def test_life_tells_that_the_old_argument_has_no_effect_when_it_is_given(chain: LocalChain) -> None:
    """Beside the timer that it was given for."""
    timer_id = schedule(deploy_puppet(chain), 20, bid=5)
    assert chain.explain(timer_id).steps[1].story == (
        "bid is ignored, it has no effect; once the timer lane is active, scheduling with it is refused"
    )
