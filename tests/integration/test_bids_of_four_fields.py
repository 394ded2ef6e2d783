"""Bids that state what they offer for a cell, and agents that price one timer of an actor."""

import pytest

from trailboss.model.decisions import ExaminedTimer
from trailboss.model.timers import ASK_AGENT, Timer
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Receipt

CBY = 10**9
BASEFEE = 10_000
FIRE_CELLS = 550_000
GAS_LIMIT = 100_000

AGENT = """
def get_gas_bid(payload):
    facts = (pvm_host.get_state(b"bid") or b"1000000 77").split()
    names = ("max_fee_per_cycle", "TIP_per_cycle", "max_fee_per_cell", "TIP_per_cell")
    return {name: int(fact) for name, fact in zip(names, facts)}


def bid(payload):
    pvm_host.set_state(b"bid", payload)


def fill(payload):
    pvm_host.set_state(b"x", bytes(1_000_000))
"""
LANE_ACTOR = """
def arm(payload):
    agent = payload or None
    return pvm_host.schedule_timer(pvm_host.block_height() + 2, b"", None, 100_000, gas_bidding_agent=agent)


def arm_later(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 9, b"", None, 100_000, gas_bidding_agent=payload)


def arm_sdk(payload):
    height = pvm_host.block_height() + 2
    return pvm_host.schedule_timer_ex(height, b"", b"", 100_000, 0, 0, gas_bidding_agent=payload)


def arm_priced(payload):
    height = pvm_host.block_height() + 2
    return pvm_host.schedule_timer(height, b"", max_fee_per_cycle=10**6, gas_bidding_agent=payload)


def hire(payload):
    pvm_host.set_gas_bidding_agent(payload or None)


def handle_timer(payload):
    pvm_host.set_state(b"fired", b"12345")
"""
AUCTION_ACTOR = """
def arm(payload):
    return pvm_host.set_timeout(pvm_host.block_height() + 2, b"", payload, 100_000)


def handle_timer(payload):
    pvm_host.set_state(b"fired", b"12345")
"""


class Scene:
    """A chain, its agent and its actor."""

    def __init__(self, mechanism: str, **params: int) -> None:
        self.chain = LocalChain(
            mechanism=mechanism, params={name.replace("__", "."): value for name, value in params.items()}
        )
        self.owner = self.chain.accounts[0]
        tip = "max_priority_fee" if mechanism != "auction" else "tip"
        source = AUCTION_ACTOR if mechanism == "auction" else LANE_ACTOR
        self.agent = self.deploy(AGENT.replace("TIP", tip))
        self.actor = self.deploy(source)

    def deploy(self, source: str) -> ActorHandle:
        """Deploy an actor that has money."""
        return self.chain.deploy(source, sender=self.owner, value=1_000 * CBY)

    def call(self, actor: ActorHandle, handler: str, payload: bytes = b"", cells_limit: int = 250_000) -> bytes:
        """Call a handler, which must not fail."""
        return actor.call(handler, payload, sender=self.owner, check=True, cells_limit=cells_limit).return_value

    def arm(self, bid: str) -> bytes:
        """Have the agent bid, and set a timer that it prices."""
        self.call(self.agent, "bid", bid.encode())
        return self.call(self.actor, "arm", bytes(self.agent.address))

    def fires(self) -> list[Receipt]:
        """Return the receipts of the last block's fires."""
        return self.chain.receipts(self.chain.height, origin="timer")


@pytest.mark.spec("L-19", "L-20", "A-03")
@pytest.mark.parametrize("mechanism", ["lane", "auction"])
@pytest.mark.parametrize(
    ("bid", "cell_tip"), [("1000000 0 10000 0", 0), ("1000000 0 10900 900", 900), ("1000000 0 10300 900", 300)]
)
def test_fire_tips_the_proposer_per_cell_when_its_agent_offers_so(mechanism: str, bid: str, cell_tip: int) -> None:
    """The tip is held to what the cap leaves above the basefee; the reservation includes it, the rest returns."""
    scene = Scene(mechanism)
    scene.arm(bid)
    proposer = scene.chain.balance(scene.chain.proposer)
    scene.chain.mine(2)
    (fire,) = scene.fires()
    record = scene.chain.chain.decisions(scene.chain.height)
    cycle_price = BASEFEE + (record.lane_basefee if mechanism == "lane" else 0)
    assert fire.cells_used == 10
    assert fire.tip == cell_tip * 10 == scene.chain.balance(scene.chain.proposer) - proposer
    assert fire.fee_paid + fire.refund == GAS_LIMIT * cycle_price + FIRE_CELLS * (BASEFEE + cell_tip)
    scene.chain.check_invariants()


@pytest.mark.spec("L-09", "L-20", "A-08")
@pytest.mark.parametrize("mechanism", ["lane", "auction"])
def test_timer_waits_when_its_agent_offers_less_for_a_cell_than_the_basefee(mechanism: str) -> None:
    """It is priced out, which is no fallback: it stays asked, and fires once the agent offers enough."""
    scene = Scene(mechanism)
    timer_id = scene.arm("1000000 5 9999 0")
    scene.chain.mine(4)
    assert scene.chain.timers(actor=scene.actor)[0].timer_id == timer_id
    assert (scene.chain.events("gba.fallback"), scene.chain.events("timer.fired")) == ([], [])
    life = scene.chain.explain(timer_id)
    assert "offered too little for a cell" in life.waited
    scene.call(scene.agent, "bid", b"1000000 5 10000 0")
    scene.chain.mine(2)
    assert scene.chain.events("timer.fired")[0].timer_id == timer_id
    scene.chain.check_invariants()


@pytest.mark.spec("A-03", "A-08")
def test_standing_bid_is_set_aside_when_cells_have_become_dearer_than_it_offers() -> None:
    """Its agent is not asked again; it is told once, and passed over for others until it is asked and offers enough."""
    scene = Scene("auction", auction__gba_cycles_per_block=50_000, limits__block_cells_max=2_200_000)
    other = scene.deploy(AUCTION_ACTOR)
    scene.call(scene.agent, "bid", b"1000000 5 10001 0")
    with scene.chain.one_block():
        # One question a block: the first is asked at once, and has no room until the second has been asked.
        armed = [who.call("arm", bytes(scene.agent.address), sender=scene.owner) for who in (scene.actor, other)]
    first = armed[0].return_value
    scene.call(scene.agent, "fill", b"", cells_limit=2_000_000)
    assert scene.chain.chain.rules().timer_basefees()[1] > 10_001
    scene.chain.mine(2)
    (told,) = scene.chain.events("timer.deferred")
    assert (told.timer_id, told.data["reason"]) == (first, "priced_out")
    scene.chain.mine(3)
    assert len([event for event in scene.chain.events("timer.deferred") if event.timer_id == first]) == 1


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("handler", ["arm", "arm_sdk"])
def test_timer_is_priced_by_its_own_agent_when_it_names_one(handler: str) -> None:
    """Another timer of its actor takes the default fees, and the one of an actor with an agent takes that agent's."""
    scene = Scene("lane")
    own = scene.call(scene.actor, handler, bytes(scene.agent.address))
    other = scene.call(scene.actor, "arm")
    hired = scene.deploy(AGENT.replace("TIP", "max_priority_fee"))
    scene.call(hired, "bid", b"1000000 11")
    scene.call(scene.actor, "hire", bytes(hired.address))
    with scene.chain.one_block():
        both = [scene.actor.call("arm", agent, sender=scene.owner) for agent in (b"", bytes(scene.agent.address))]
    views = {timer.timer_id: timer for timer in scene.chain.timers(actor=scene.actor)}
    assert [views[receipt.return_value].gas_bidding_agent for receipt in both] == [None, scene.agent.address]
    scene.chain.mine(2)
    tips = {
        item.timer_id: (item.tip, item.fee_source)
        for height in range(scene.chain.height + 1)
        for item in _examined(scene, height)
    }
    assert tips == {
        own: (77, "agent"),
        other: (0, "frozen"),
        both[0].return_value: (11, "agent"),
        both[1].return_value: (77, "agent"),
    }


def _examined(scene: Scene, height: int) -> tuple[ExaminedTimer, ...]:
    record = scene.chain.chain.decisions(height)
    return () if record is None else record.examined


@pytest.mark.spec("L-14", "L-20")
@pytest.mark.parametrize("active", [0, 1])
def test_timer_is_refused_when_it_has_an_agent_and_fees_or_an_agent_that_is_no_actor(active: int) -> None:
    """Which of the two prices it is for its owner to say; the refusal names both, and nothing is scheduled."""
    scene = Scene("lane" if active else "fifo")
    refused = scene.actor.call("arm_priced", bytes(scene.agent.address), sender=scene.owner)
    assert (refused.status, refused.error.context["gas_bidding_agent"]) == ("reverted", str(scene.agent.address))
    assert "max_fee_per_cycle is 1000000 and gas_bidding_agent is" in refused.error.what
    nowhere = scene.actor.call("arm", bytes(scene.owner.address), sender=scene.owner)
    assert "there is no actor at" in nowhere.error.what
    assert scene.chain.timers() == []


@pytest.mark.spec("L-20", "L-31")
def test_agent_of_one_timer_prices_it_after_the_activation_when_it_was_scheduled_before() -> None:
    """Its record names the agent from the beginning; until the lane begins, nobody asks."""
    scene = Scene("fifo", lane__activation_height=6)
    timer_id = scene.call(scene.actor, "arm_later", bytes(scene.agent.address))
    timer = load_timer_of(scene, timer_id)
    assert timer.fees == ASK_AGENT + scene.agent.address
    scene.chain.advance_to(timer.height)
    (item,) = _examined(scene, timer.height)
    assert (item.tip, item.fee_source) == (77, "agent")


@pytest.mark.spec("L-20")
def test_failing_agent_of_one_timer_leaves_it_to_the_default_for_good() -> None:
    """As an actor's own agent does: one event names it, and the record forgets it."""
    scene = Scene("lane")
    timer_id = scene.arm("-1 0")
    scene.chain.mine(2)
    (event,) = scene.chain.events("gba.fallback")
    assert (event.timer_id, event.data["agent"], event.data["reason"]) == (timer_id, scene.agent.address, "malformed")


@pytest.mark.spec("L-20")
def test_order_names_an_agent_when_it_is_given_one() -> None:
    """The stock actor schedules it so, the event tells it, and the story of its life too."""
    scene = Scene("lane")
    view = scene.chain.schedule(scene.chain.height + 5, gas_bidding_agent=scene.agent)
    assert (view.gas_bidding_agent, view.fees) == (scene.agent.address, "agent")
    (event,) = [each for each in scene.chain.events("timer.scheduled") if each.timer_id == view.timer_id]
    assert event.data["gba"] == scene.agent.address
    life = scene.chain.explain(view.timer_id)
    assert f"its agent {scene.agent.address} bids for it" in life.steps[0].story
    assert "with what its agent answers" in life.outlook


def load_timer_of(scene: Scene, timer_id: bytes) -> Timer:
    """Return a live timer's record."""
    return next(timer for timer in scene.chain.chain.timers() if timer.timer_id == timer_id)
