"""A lively chain for pictures and tests of the explorer: actors that work, run dry, stumble, expire and crowd.

Every mechanism has a cast of its own, as its host calls are its own. Nothing is left to chance: the same steps make
the same chain.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from cowboy_sdk import codec
from msgspec import Struct, field

from trailboss.model.configs import MarketKind
from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import BASE_UNITS_PER_CBY as CBY
from trailboss.testing import ActorHandle, LocalChain

EXAMPLES: Final = "examples/actors"
LIVELY: Final = {
    "fees.cycles_target": 120_000,
    "fees.min_basefee": 1_000,
    "timers.lane_cycles_per_block": 800_000,
    "auction.budget_cycles": 800_000,
    "globalbox.max_fires_per_block": 6,
    "globalbox.max_fires_per_target": 4,
}
"""Parameters under which a few actors already move the prices."""
AUCTION: Final = {**LIVELY, "fees.cycles_target": 700_000}
"""In the auction they bid in every block."""
LEDGER: Final = '''"""Pays out what is due, line by line; the books must balance, and at times they do not."""

import json

import pvm_host

GAS_LIMIT = 120_000


class Ledger:
    def init(self, payload):
        pvm_host.set_state(b"line", b"0")
        self._next(4)

    def handle_timer(self, payload):
        line = int(pvm_host.get_state(b"line")) + 1
        pvm_host.set_state(b"line", b"%d" % line)
        pvm_host.set_state(b"lines/%04d" % line, json.dumps({"line": line, "sum": 17 * line}).encode())
        pvm_host.emit_event("line.settled", json.dumps({"line": line, "sum": 17 * line}).encode())
        self._next(6)

    def check_books(self, payload):
        entry = json.loads(payload)
        self._check(entry)

    def _check(self, entry):
        debit, credit = entry["debit"], entry["credit"]
        if debit != credit:
            raise ValueError("line %d: debit %d and credit %d do not balance" % (entry["line"], debit, credit))

    def _next(self, delay):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + delay, b"", gas_limit=GAS_LIMIT)
'''
CROWD: Final = '''"""A crowd: as many timers for one height as it is asked for, so that a block has to choose."""

import json

import pvm_host

SPENT = 90_000  # cycles of a fire that are left unused


class Crowd:
    def gather(self, payload):
        order = json.loads(payload)
        for number in range(order["count"]):
            offer = {}
            if order["tip"]:
                tip = order["tip"] + 7 * number
                offer = {"max_fee_per_cycle": order["fee"], "max_priority_fee_per_cycle": tip}
            pvm_host.schedule_timer_ex(order["height"] + number % 3, b"%d" % number, gas_limit=200_000, **offer)

    def handle_timer(self, payload):
        while pvm_host.gas_left() > SPENT:
            pass
        pvm_host.set_state(b"done/" + payload, b"yes")
'''
PLANNER: Final = '''"""A planner: appointments near and far."""

import pvm_host

APPOINTMENTS = [25 + 37 * n for n in range(24)] + [3_000 + 977 * n for n in range(60)]
APPOINTMENTS += [150_000 + 41_000 * n for n in range(60)] + [2_592_000 - 300 - 7_919 * n for n in range(12)]


class Planner:
    def init(self, payload):
        now = pvm_host.block_height()
        for number, ahead in enumerate(APPOINTMENTS):
            pvm_host.schedule_timer_ex(now + ahead, b"appointment %d" % number, gas_limit=60_000)
        pvm_host.schedule_timer_ex(now + 40, b"too late", gas_limit=60_000, expires_at=now + 30)

    def handle_timer(self, payload):
        pvm_host.emit_event("appointment", payload)
'''
BIDDERS: Final = '''"""Timers that go on for ever, and bid for their place in each block."""

import pvm_host

from trailboss.sdk import AuctionBidContext, auction_bid


class Bidders:
    def start(self, payload):
        for number in range(int(payload)):
            self.again(b"%d" % number)

    def again(self, payload):
        pvm_host.set_timeout(pvm_host.block_height() + 2, payload, pvm_host.self_address(), 150_000)

    def get_gas_bid(self, payload):
        context = AuctionBidContext.decode(payload)
        waited = context.current_block_height - context.trigger_block_height
        return auction_bid(20 * context.basefee_cycle, 40 + 60 * waited)

    def handle_timer(self, payload):
        self.again(payload)
        while pvm_host.gas_left() > 40_000:
            pass
'''
RINGERS: Final = '''"""Sets alarms for the same heights again and again, more than one block moves to the mailbox."""

import pvm_host

from trailboss.sdk import bid, set_timeout


class Ringers:
    def start(self, payload):
        for number in range(int(payload)):
            self.again(b"%d" % number)

    def again(self, payload):
        set_timeout(
            pvm_host.self_address(), pvm_host.block_height() + 5, payload, 80_000, bid_fp=bid(10 + 5 * int(payload))
        )

    def handle_timer(self, payload):
        pvm_host.emit_event("rang", payload)
        self.again(payload)
'''


class Scene(Struct):
    """A chain and those who act on it.

    Attributes:
        chain: The chain.
        mechanism: Its mechanism.
        step: Which of the scene's steps comes next.
        actors: By name.
    """

    chain: LocalChain
    mechanism: str
    step: int = 0
    actors: dict[str, ActorHandle] = field(default_factory=dict)

    def act(self) -> None:
        """Do what comes next, in one block, the first time in several."""
        turn, self.step = self.step, self.step + 1
        if turn == 0:
            OPENINGS[self.mechanism](self)
            return
        with self.chain.one_block():
            for action in self._actions(turn):
                with suppress(Rejection):
                    action()

    def play(self, steps: int) -> None:
        """Do some steps."""
        for _ in range(steps):
            self.act()

    def deploy(self, name: str, source: str, **options: Any) -> None:
        """Deploy an actor under a name."""
        self.actors[name] = self.chain.deploy(source, **options)

    def _actions(self, turn: int) -> Iterator[Callable[[], object]]:
        chain, accounts = self.chain, self.chain.accounts
        if turn % 5 == 1:
            amount = (1 + turn % 9) * CBY
            yield lambda: chain.transfer(accounts[7], amount, sender=accounts[8])
        yield from ACTIONS[self.mechanism](self, turn)


def _open_timers(scene: Scene) -> None:
    alice, bob, carol, *others = scene.chain.accounts
    scene.deploy("heartbeat", f"{EXAMPLES}/heartbeat.py", sender=alice, value=2_000 * CBY)
    scene.deploy("frail", f"{EXAMPLES}/heartbeat.py", sender=bob, value=8 * CBY)
    scene.deploy("game", f"{EXAMPLES}/game_loop.py", sender=carol, value=500 * CBY)
    feeders = codec.encode([bytes(each.address) for each in (bob, carol, others[0])])
    scene.deploy("oracle", f"{EXAMPLES}/oracle.py", sender=alice, init_payload=feeders)
    terms = {"merchant": bytes(others[2].address), "price": CBY // 2, "every": 15, "mandate": 200}
    scene.deploy("wallet", f"{EXAMPLES}/subscription.py", sender=bob, value=300 * CBY, init_payload=codec.encode(terms))
    plan = json.dumps({"beneficiary": str(others[3].address), "instalment": CBY, "count": 8, "every": 60}).encode()
    scene.deploy("vesting", f"{EXAMPLES}/vesting.py", sender=carol, value=8 * CBY, init_payload=plan)
    scene.deploy("ledger", LEDGER, sender=alice, value=1_500 * CBY)
    scene.deploy("planner", PLANNER, sender=bob, value=5_000 * CBY)
    scene.deploy("crowd", CROWD, sender=carol, value=100_000 * CBY)


def _timer_actions(scene: Scene, turn: int) -> Iterator[Callable[[], object]]:
    chain, actors, accounts = scene.chain, scene.actors, scene.chain.accounts
    if turn % 12 == 3:
        for number, feeder in enumerate(accounts[1:4]):
            price = codec.encode(18_000 + 37 * (turn % 91) + 11 * number)
            yield lambda feeder=feeder, price=price: actors["oracle"].call("report", price, sender=feeder)  # type: ignore[misc]
    if turn % 7 == 2:
        side = b"left" if turn % 3 else b"right"
        yield lambda: actors["game"].call("pull", side, sender=accounts[4])
    if turn % 30 == 8:
        has_lane = chain.chain.rules().market.kind is MarketKind.LANE
        order = {"height": chain.height + 7, "count": 30, "fee": 10_000_000, "tip": 50 + turn % 60 if has_lane else 0}
        payload = json.dumps(order).encode()
        yield lambda: actors["crowd"].call("gather", payload, sender=accounts[2], cycles_limit=4_000_000)
    if turn % 25 == 11:
        entry = json.dumps({"line": turn, "debit": 100 + turn, "credit": 100 + turn // 2}).encode()
        yield lambda: actors["ledger"].call("check_books", entry, sender=accounts[0])
    if turn % 120 == 60:
        source, value = f"{EXAMPLES}/heartbeat.py", 12 * CBY // 10
        yield lambda: scene.deploy(f"lean {turn}", source, sender=accounts[5], value=value)


def _open_auction(scene: Scene) -> None:
    alice, bob, carol, *_ = scene.chain.accounts
    scene.deploy("liquidator", f"{EXAMPLES}/auction_liquidator.py", sender=alice, value=10_000 * CBY)
    scene.actors["liquidator"].call("report", b"200", sender=alice, check=True)
    loan = json.dumps({"units": 10, "debt": 1_000, "reward": 10**12}).encode()
    scene.actors["liquidator"].call("watch", loan, sender=alice, check=True)
    for number, owner in enumerate((bob, carol)):
        scene.deploy(f"bidders {number}", BIDDERS, sender=owner, value=500_000 * CBY)
        scene.actors[f"bidders {number}"].call("start", b"%d" % (5 + 3 * number), sender=owner, check=True)


def _auction_actions(scene: Scene, turn: int) -> Iterator[Callable[[], object]]:
    if turn % 9 == 4:
        price = b"%d" % (160 + turn % 40)
        yield lambda: scene.actors["liquidator"].call("report", price, sender=scene.chain.accounts[0])


def _open_globalbox(scene: Scene) -> None:
    alice, bob, carol, *_ = scene.chain.accounts
    scene.deploy("feed", f"{EXAMPLES}/price_feed.py", sender=alice)
    scene.actors["feed"].call("report", b"150", sender=alice, check=True)
    terms = json.dumps({"feed": str(scene.actors["feed"].address), "stop": 100}).encode()
    scene.deploy("stop loss", f"{EXAMPLES}/stop_loss.py", sender=bob, value=1_000 * CBY, init_payload=terms)
    scene.deploy("ringers", RINGERS, sender=carol, value=100_000 * CBY)
    scene.actors["ringers"].call("start", b"24", sender=carol, check=True, cycles_limit=4_000_000)


def _globalbox_actions(scene: Scene, turn: int) -> Iterator[Callable[[], object]]:
    if turn % 6 == 2:
        price = b"%d" % (150 - turn % 37)
        yield lambda: scene.actors["feed"].call("report", price, sender=scene.chain.accounts[0])


Opening = Callable[[Scene], None]
Actions = Callable[[Scene, int], Iterator[Callable[[], object]]]
OPENINGS: Final[Mapping[str, Opening]] = {
    "fifo": _open_timers,
    "lane": _open_timers,
    "auction": _open_auction,
    "globalbox": _open_globalbox,
}
ACTIONS: Final[Mapping[str, Actions]] = {
    "fifo": _timer_actions,
    "lane": _timer_actions,
    "auction": _auction_actions,
    "globalbox": _globalbox_actions,
}


def open_scene(mechanism: str = "fifo", steps: int = 0, **options: Any) -> Scene:
    """Return a scene on a new chain after some steps.

    Args:
        mechanism: Of the chain.
        steps: To play.
        options: Of `LocalChain`; the parameters are those that make a small cast lively unless they are given.
    """
    scene = Scene(
        LocalChain(mechanism=mechanism, **{"params": AUCTION if mechanism == "auction" else LIVELY, **options}),
        mechanism,
    )
    scene.play(steps)
    return scene


HOSTILE: Final = r'''"""<script>window.pwned = 1</script> {{ 7 * 7 }} ${7 * 7} `${window.pwned = 1}` -->"""

import json

import pvm_host

MARKUP = "<img src=x onerror='window.pwned=1'> {{ constructor.constructor('window.pwned=1')() }} ${window.pwned=1}"
TURNED = "\u202eevil\u202c \u2066x\u2069 \u200b\x1b[2J\x00\x07 `]]> </script><script>window.pwned=1</script>"


class Script_alert_1_:
    def init(self, payload):
        pvm_host.set_state(MARKUP.encode(), TURNED.encode())
        pvm_host.set_state(b"huge", b"A" * 200_000)
        pvm_host.set_state(b"number", json.dumps({"n": 10**300, "deep": [[[[[[1]]]]]]}).encode())
        pvm_host.emit_event("__proto__", MARKUP.encode())
        pvm_host.emit_event(TURNED[:20], json.dumps({MARKUP: TURNED}).encode())
        for number in range(3):
            name = [MARKUP, TURNED, "constructor"][number]
            envelope = json.dumps({"_handler": name, "_payload": ""}).encode()
            try:
                pvm_host.schedule_timer_ex(pvm_host.block_height() + 2 + number, envelope, gas_limit=60_000)
            except pvm_host.HostError:
                pvm_host.schedule_timer_ex(pvm_host.block_height() + 2 + number, b"%d" % number, gas_limit=60_000)

    def handle_timer(self, payload):
        raise ValueError(MARKUP + TURNED)

    def shout(self, payload):
        raise ValueError(MARKUP + TURNED + "x" * 5_000)  # \u202e <script>window.pwned=1</script>
'''
"""An actor that tries what it can to become a part of the page."""


def deploy_hostile(scene: Scene) -> ActorHandle:
    """Deploy the hostile actor, let its timers come, and have it shout."""
    alice = scene.chain.accounts[0]
    scene.deploy("hostile", HOSTILE, sender=alice, value=1_000 * CBY)
    scene.chain.mine(5)
    scene.actors["hostile"].call("shout", b"<b>\xff", sender=alice)
    return scene.actors["hostile"]
