"""A world of a few dictionaries around an engine: enough of a chain to run actors, and nothing more."""

from dataclasses import dataclass, field

from trailboss.metering.meter import Meter
from trailboss.model import calls
from trailboss.params import ChainParams, load_params
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox.engines import image_of, new_engine
from trailboss.testing import LocalChain
from trailboss.vm.engine import Engine, Frame, FrameOutcome

ACTOR = b"\x22" * 20
OWNER = b"\x33" * 20
PLENTY = 10**12
LANE = {
    "active": True,
    "basefee_lane_timer": 1_000,
    "basefee_cycle": 10_000,
    "basefee_cell": 20_000,
    "previous_block_p50_priority_tip_per_cycle": 401,
    "last_block_cycle_usage": 5_000_000,
    "max_cycles_per_fire": 250_000,
    "priority_tier_multipliers": {"economy": 8_000, "standard": 10_000, "fast": 15_000, "urgent": 25_000},
    "priority_tier_unit": 10_000,
}
"""The timer lane of a world, unless a test says otherwise."""


@dataclass
class World:
    """The state that hosts share.

    Attributes:
        params: Prices and limits.
        engine: What runs actors.
        height: Present block height.
        sources: Source of each actor that can be called, by address.
        slots: Storage by (actor, slot).
        timers: Requests accepted, in order.
        updates: Updates of timers of Globalbox, in order.
        events: (name, data) emitted.
        messages: (target, payload) sent.
        transfers: (to, amount) moved.
        printed: Texts printed, in order.
        agents: Gas bidding agents set, in order.
        lane: What `timer_lane` answers.
        missing_calls: Forms of calls about timers that the chain does not have; all others are there.
    """

    params: ChainParams = field(default_factory=lambda: load_params("mainnet"))
    engine: Engine = None
    height: int = 100
    sources: dict = field(default_factory=dict)
    slots: dict = field(default_factory=dict)
    timers: list = field(default_factory=list)
    updates: list = field(default_factory=list)
    events: list = field(default_factory=list)
    messages: list = field(default_factory=list)
    transfers: list = field(default_factory=list)
    printed: list = field(default_factory=list)
    agents: list = field(default_factory=list)
    lane: dict = field(default_factory=lambda: dict(LANE))
    missing_calls: frozenset = frozenset()

    def __post_init__(self):
        self.engine = self.engine or new_engine(self.params, image_of(LocalChain.default_vm))

    def call(self, source, handler, payload=b"", *, cycles=PLENTY, cells=PLENTY, sender=ACTOR, **frame):
        """Run a handler; return its outcome and the meter."""
        meter = Meter(cycles, cells)
        return self.run(source, handler, payload, meter=meter, sender=sender, **frame), meter

    def run(
        self, source, handler, payload, *, meter, sender=ACTOR, actor=ACTOR, depth=0, read_only=False
    ) -> FrameOutcome:
        """Run a handler under a meter that is there already."""
        frame = Frame(source, keccak256(source.encode()), actor, OWNER, handler, payload, read_only, depth)
        return self.engine.run(frame, self.host(frame, meter, sender), meter)

    def host(self, frame, meter, sender):
        """Return the host of a frame."""
        return WorldHost(self, frame, meter, sender)


@dataclass
class WorldHost:
    """The host of one frame."""

    world: World
    frame: Frame
    meter: Meter
    sender: bytes

    def context(self):
        return {
            "chain_id": 1,
            "chain_instance_id": b"\x01" * 32,
            "pvm_version": self.world.engine.version(),
            "sender": self.sender,
            "actor_addr": self.frame.actor,
            "tx_hash": b"\xab" * 32,
            "block_height": self.world.height,
            "timestamp_ms": 1_700_000_000_000,
            "hire_id": None,
        }

    def height(self):
        return self.world.height

    def read_slot(self, slot):
        return self.world.slots.get((self.frame.actor, slot))

    def write_slot(self, slot, content):
        self._check_writable()
        self.meter.charge_cells(len(slot) + len(content))
        self.world.slots[self.frame.actor, slot] = content

    def delete_slot(self, slot):
        self._check_writable()
        self.world.slots.pop((self.frame.actor, slot), None)

    def scan_slots(self, prefix, limit):
        mine = sorted((slot, value) for (actor, slot), value in self.world.slots.items() if actor == self.frame.actor)
        return [(slot, value) for slot, value in mine if slot.startswith(prefix)][:limit]

    def has_call(self, form):
        return form not in self.world.missing_calls

    def schedule_timer(self, request, form=None):
        self._check_writable()
        if request.height <= self.world.height:
            raise Rejection(RejectionReason.INVALID_INPUT, f"height {request.height} is not above {self.world.height}")
        self.world.timers.append(request)
        return len(self.world.timers).to_bytes(32, "big")

    def extend_timer(self, timer_id, expires_at):
        self._check_writable()

    def cancel_timer(self, timer_id):
        self._check_writable()

    def market_call(self, form, request):
        if form in calls.SETTING:
            return self._set_timer(request)
        self._check_writable()
        if form == calls.UPDATE:
            self.world.updates.append(request)
            return True
        return bool(self.world.timers)

    def set_agent(self, agent):
        self._check_writable()
        self.world.agents.append(agent)

    def timer_lane(self):
        return self.world.lane

    def emit_event(self, name, octets):
        self._check_writable()
        self.world.events.append((name, octets))
        return len(self.world.events)

    def send_message(self, target, payload):
        self._check_writable()
        self.world.messages.append((target, payload))

    def call_actor(self, target, handler, payload, cycles_limit):
        depth = self.frame.depth + 1
        if depth > self.world.params.limits.call_depth_max:
            raise Rejection(RejectionReason.FORBIDDEN, f"call depth {depth}")
        if target not in self.world.sources:
            raise Rejection(RejectionReason.NOT_FOUND, f"there is no actor at 0x{target.hex()}")
        meter = Meter(min(cycles_limit, self.meter.cycles_left), self.meter.cells_left)
        outcome = self.world.run(
            self.world.sources[target],
            handler,
            payload,
            meter=meter,
            sender=self.frame.actor,
            actor=target,
            depth=depth,
            read_only=self.frame.read_only,
        )
        self.meter.charge_cells(min(meter.cells_used, meter.cells_limit))
        self.meter.charge_cycles(min(meter.cycles_used, meter.cycles_limit))
        if outcome.error is not None:
            raise Rejection(RejectionReason.PVM_ERROR, f"call of {handler} failed: {outcome.error.what}")
        return outcome.return_value

    def defer_call(self, handler, payload):
        self._check_writable()
        self.world.messages.append((handler, payload))

    def transfer(self, to, amount):
        self._check_writable()
        self.world.transfers.append((to, amount))

    def upgrade(self, code, manifest):
        self._check_writable()
        self.world.sources[self.frame.actor] = code.decode()

    def print_text(self, text):
        self.world.printed.append(text)

    def randomness(self, domain):
        return keccak256(b"randomness" + domain)

    def _set_timer(self, request):
        self._check_writable()
        self.world.timers.append(request)
        return len(self.world.timers).to_bytes(32, "big")

    def _check_writable(self):
        if self.frame.read_only:
            raise Rejection(RejectionReason.FORBIDDEN, "a change in a read-only frame")
