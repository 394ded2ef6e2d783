"""Gas bidding agents: what counts as a bid, what they are told, and what becomes of a timer whose agent has none."""

from collections.abc import Iterator
from typing import Any

import cbor2
import pytest

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.agents import read_bid
from trailboss.execution.lane.market import TIP
from trailboss.mechanisms.context import Bid
from trailboss.model.decisions import ExaminedTimer, FeeSource
from trailboss.model.timers import ASK_AGENT, NO_FEES
from trailboss.primitives.units import Price
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Event

CBY = 10**9
PRICE_MAX = 2**127 - 1
CELL_BASEFEE = 10_000
FAIR = {"max_fee_per_cycle": 5_000, "max_priority_fee_per_cycle": 300}


def answered(**fees: Any) -> Bid | None:
    """Read a fair bid with some fees changed; None leaves a fee out."""
    bid = {name: fee for name, fee in (FAIR | fees).items() if fee is not None}
    return read_bid(encode_canonical(bid), TIP)


@pytest.mark.spec("L-20")
@pytest.mark.parametrize(
    "fees",
    [
        {},
        {"max_priority_fee_per_cycle": 0},
        {"max_priority_fee_per_cycle": 5_000},
        {"max_fee_per_cycle": 0, "max_priority_fee_per_cycle": 0},
        {"max_fee_per_cycle": PRICE_MAX, "max_priority_fee_per_cycle": PRICE_MAX},
        {"max_fee_per_cell": CELL_BASEFEE},
        {"max_fee_per_cell": PRICE_MAX, "max_priority_fee_per_cell": PRICE_MAX},
        {"max_fee_per_cell": CELL_BASEFEE - 1},
        {"max_fee_per_cell": 0},
        {"max_priority_fee_per_cell": 0},
        {"max_fee_per_cell": CELL_BASEFEE, "max_priority_fee_per_cell": 1},
    ],
)
def test_answer_is_a_bid_when_it_has_two_fees_or_four(fees: dict[str, int]) -> None:
    """At the edges too; a cap per cell below the basefee is a bid, which cannot run yet."""
    wanted = FAIR | fees
    cell_fees = wanted.get("max_fee_per_cell"), wanted.get("max_priority_fee_per_cell", 0)
    assert answered(**fees) == Bid(
        Price(wanted["max_fee_per_cycle"]),
        Price(wanted["max_priority_fee_per_cycle"]),
        FeeSource.AGENT,
        cell_fees=None if cell_fees[0] is None else cell_fees,
    )


@pytest.mark.spec("L-20")
@pytest.mark.parametrize(
    "fees",
    [
        {"max_fee_per_cycle": None},
        {"max_priority_fee_per_cycle": None},
        {"max_fee_per_cycle": None, "max_priority_fee_per_cycle": None},
        {"max_priority_fee_per_cycle": 5_001},
        {"max_fee_per_cycle": -1, "max_priority_fee_per_cycle": -1},
        {"max_priority_fee_per_cycle": -1},
        {"max_fee_per_cycle": PRICE_MAX + 1},
        {"max_fee_per_cycle": 2**128, "max_priority_fee_per_cycle": PRICE_MAX + 1},
        {"max_fee_per_cycle": True, "max_priority_fee_per_cycle": False},
        {"max_priority_fee_per_cycle": "300"},
        {"max_priority_fee_per_cycle": b"300"},
        {"max_fee_per_cycle": [5_000]},
        {"max_fee_per_cycle": {"a": 1}},
        {"max_fee_per_cell": PRICE_MAX + 1},
        {"max_fee_per_cell": "much"},
        {"max_fee_per_cell": CELL_BASEFEE, "max_priority_fee_per_cell": CELL_BASEFEE + 1},
        {"max_priority_fee_per_cell": 1},
        {"max_priority_fee_per_cell": -1},
        {"max_priority_fee_per_cell": False},
        {"max_fee": 5_000},
        {"tip": 0},
    ],
)
def test_answer_is_no_bid_when_a_fee_is_missing_or_wrong(fees: dict[str, Any]) -> None:
    """Below nothing, above the highest price, no integer, a tip above its cap or without one, other names."""
    assert answered(**fees) is None


@pytest.mark.spec("L-20")
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00",
        encode_canonical(5_000),
        encode_canonical(None),
        encode_canonical([5_000, 300]),
        encode_canonical(b"fees"),
        encode_canonical({}),
        encode_canonical({1: 5_000, 2: 300}),
        encode_canonical(FAIR | {b"max_fee_per_cell": 10**6}),
        encode_canonical(FAIR) + b"\x00",
        encode_canonical(FAIR)[:-1],
        # The same map in another order, with a longer integer, twice the same key, without an end, as JSON.
        cbor2.dumps(dict(reversed(FAIR.items()))),
        encode_canonical(FAIR).replace(b"\x19\x01\x2c", b"\x1a\x00\x00\x01\x2c"),
        b"\xa2" + 2 * (encode_canonical("max_fee_per_cycle") + b"\x05"),
        b"\xbf" + encode_canonical(FAIR)[1:] + b"\xff",
        b'{"max_fee_per_cycle": 5000, "max_priority_fee_per_cycle": 300}',
        cbor2.dumps(FAIR | {"max_fee_per_cycle": 5_000.0}),
        cbor2.dumps(FAIR | {"max_fee_per_cycle": cbor2.undefined}),
        b"\x81" * 100_000,
        b"\xa1\x00" * 100_000,
        b"\xff",
    ],
)
def test_answer_is_no_bid_when_it_is_no_canonical_map_of_fees(answer: bytes) -> None:
    """Whatever bytes an agent returns: they are no bid, and nothing breaks."""
    assert read_bid(answer, TIP) is None


# Through a chain

ACTOR = """
def choose(payload):
    pvm_host.set_gas_bidding_agent(payload or None)


def arm(payload):
    for label in payload.split():
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, label, gas_limit=200_000)


def handle_timer(label):
    while label[:1] == b"~":
        pass
    pvm_host.set_state(b"fired", (pvm_host.get_state(b"fired") or b"") + label)
"""

AGENT = """
def answer(payload):
    pvm_host.set_state(b"answer", payload)


def misbehave(payload):
    pvm_host.set_state(b"deed", payload)


def get_gas_bid(context):
    deed = pvm_host.get_state(b"deed") or b""
    if deed == b"spin":
        while True:
            pass
    if deed == b"echo":
        return context
    return pvm_host.get_state(b"answer")
"""


class Scene:
    """An actor whose timers an agent prices, on a chain under the lane."""

    def __init__(self, **params: int) -> None:
        self.chain = LocalChain(mechanism="lane", params=params)
        self.owner = self.chain.accounts[0]
        self.agent = self.chain.deploy(AGENT, sender=self.owner, value=CBY)
        self.actor = self.chain.deploy(ACTOR, sender=self.owner, value=1_000 * CBY)
        self.call(self.agent, "answer", encode_canonical({"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": 7}))
        self.call(self.actor, "choose", bytes(self.agent.address))

    def call(self, actor: ActorHandle, handler: str, payload: bytes) -> None:
        actor.call(handler, payload, sender=self.owner, check=True)

    def fire(self, labels: bytes = b"a") -> list[ExaminedTimer]:
        """Schedule timers, let them fall due, and return what the block has decided about them."""
        self.call(self.actor, "arm", labels)
        assert {timer.fees for timer in self.chain.chain.timers()} == {ASK_AGENT}
        self.chain.mine()
        self.chain.check_invariants()
        record = self.chain.chain.decisions(self.chain.height)
        assert record is not None
        return list(record.examined)

    def fallbacks(self) -> list[Event]:
        return self.chain.events("gba.fallback")


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    with scene.chain:
        yield scene


@pytest.mark.spec("L-20")
def test_agents_answer_is_what_the_timer_offers(scene: Scene) -> None:
    """Its cap, its tip, and the cycles of the question among those of the fire."""
    (item,) = scene.fire()
    assert (item.outcome, item.fee_source, item.max_fee, item.tip) == ("fire", FeeSource.AGENT, 10**6, 7)
    record = scene.chain.chain.decisions(scene.chain.height)
    assert record is not None
    assert 10_000 < record.agent_cycles < item.cycles_used
    assert scene.fallbacks() == []


@pytest.mark.spec("L-20")
def test_agent_is_told_the_prices_of_its_block(scene: Scene) -> None:
    """All eight facts, and no others; the answer is the question itself, which is no bid."""
    told: list[Any] = []

    def keep(answer: bytes, *_: object) -> None:
        told.append(decode_canonical(answer))

    scene.call(scene.agent, "misbehave", b"echo")
    scene.call(scene.actor, "arm", b"a")
    chain = scene.chain
    parent, rules, balance = chain.block().header, chain.chain.rules(), chain.balance(scene.actor)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trailboss.execution.agents.read_bid", keep)
        chain.mine()
    assert told == [
        {
            "trigger_block_height": chain.height,
            "current_block_height": chain.height,
            "basefee_cycle": rules.timer_basefees()[0],
            "basefee_cell": rules.timer_basefees()[1],
            "basefee_lane_timer": rules.market.basefee,
            "last_block_cycle_usage": parent.cycles_used,
            "previous_block_p50_priority_tip_per_cycle": 0,
            "owner_actor_balance": balance,
        }
    ]


@pytest.mark.spec("L-20")
def test_timer_takes_the_default_fees_when_its_actor_has_no_agent_any_more(scene: Scene) -> None:
    """The question that cannot be asked costs a frame's base."""
    scene.call(scene.actor, "arm", b"a")
    with scene.chain.one_block():
        scene.actor.call("choose", b"", sender=scene.owner)
    record = scene.chain.chain.decisions(scene.chain.height)
    assert record is not None
    (item,) = record.examined
    assert (item.outcome, item.fee_source, record.agent_cycles) == ("fire", FeeSource.FALLBACK, 10_000)
    assert [event.data["reason"] for event in scene.fallbacks()] == ["no_agent"]
    assert [event.data["agent"] for event in scene.fallbacks()] == [b""]


@pytest.mark.spec("L-20")
def test_timers_are_asked_about_in_due_order_while_the_budget_lasts() -> None:
    """Two questions of up to 50,000 cycles fit 100,000 here, as the first two use up all of theirs."""
    scene = Scene(**{"lane.gba_cycles_per_block": 100_000})
    scene.call(scene.agent, "misbehave", b"spin")
    items = scene.fire(b"a b c d")
    record = scene.chain.chain.decisions(scene.chain.height)
    assert record is not None
    assert record.agent_cycles == 100_000
    assert {item.fee_source for item in items} == {FeeSource.FALLBACK}
    reasons = [event.data["reason"] for event in scene.fallbacks()]
    assert sorted(reasons) == ["budget", "budget", "out_of_cycles", "out_of_cycles"]
    asked = [event.timer_id for event in scene.fallbacks() if event.data["reason"] == "out_of_cycles"]
    scheduled = [event.timer_id for event in scene.chain.events("timer.scheduled")]
    assert asked == scheduled[:2]
    # A fire that the budget has passed over is told of just before it, the others when they were asked.
    assert reasons[:2] == ["out_of_cycles"] * 2


@pytest.mark.spec("L-20")
def test_timer_is_asked_about_later_when_the_budget_passed_it_over_and_it_waits() -> None:
    """Nothing is written about it then, and no event tells: it has its agent still, and its turn comes.

    Two of four timers fit the lane in a block, one question the budget. The first has lost its agent, which spins.
    """
    scene = Scene(**{"lane.gba_cycles_per_block": 50_000, "timers.lane_cycles_per_block": 550_000})
    scene.call(scene.agent, "misbehave", b"spin")
    items = scene.fire(b"~a ~b ~c ~d")
    chain = scene.chain
    ids = [event.timer_id for event in chain.events("timer.scheduled")]
    fired = {item.timer_id for item in items if item.outcome == "fire"}
    assert len(fired) == 2
    waiting = {timer.timer_id: timer.fees for timer in chain.chain.timers()}
    assert waiting == {
        timer_id: NO_FEES if timer_id == ids[0] else ASK_AGENT for timer_id in ids if timer_id not in fired
    }
    reasons = {event.timer_id: event.data["reason"] for event in scene.fallbacks()}
    assert reasons == dict.fromkeys(fired, "budget") | {ids[0]: "out_of_cycles"}
    chain.mine()
    chain.check_invariants()
    later = {event.timer_id: event.data["reason"] for event in scene.fallbacks() if event.block_height == chain.height}
    asked = next(timer_id for timer_id in ids if waiting.get(timer_id) == ASK_AGENT)
    assert later[asked] == "out_of_cycles"
    assert chain.timers() == []
