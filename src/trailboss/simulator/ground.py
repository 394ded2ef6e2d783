"""What a simulation stands on: a mechanism with its parameters, agents, their actors and money; and how orders run.

The same ground carries a mechanism alone (`trailboss.simulator.alone`) and a whole chain (`trailboss.simulator.whole`).
Every actor has one program, which is no program: its frames do what the agents have ordered.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from trailboss.chain.development import CHAIN_ID, PROPOSER, development_account
from trailboss.chain.drafts import draft_deployment
from trailboss.crypto.digest import keccak256
from trailboss.execution.genesis import Genesis, apply_genesis
from trailboss.execution.globalbox.records import read_globalbox
from trailboss.governance.markets import GLOBALBOX_KEY, LANE_KEY
from trailboss.governance.parameters import Read, system_slot_key
from trailboss.governance.rules import BASEFEES_KEY, LANE_MULTIPLIERS, Rules
from trailboss.mechanisms.base import DeliveryPolicy
from trailboss.mechanisms.registry import build_mechanism
from trailboss.model import calls
from trailboss.model.actors import TIMER_SCHEDULE, Account, decode_account, encode_account, encode_manifest
from trailboss.model.configs import Basefees, LaneMultipliers, LaneState, MarketKind, amount_octets, encode_record
from trailboss.params import ChainParams
from trailboss.primitives.octets import Address
from trailboss.simulator.agents.base import Agent
from trailboss.simulator.orders import BlockResult, PlannedTimer, View
from trailboss.state.keys import account_key, code_key, manifest_key
from trailboss.state.slots import encode_slot
from trailboss.state.store import MemoryStore

SOURCE: Final = b"# What frames of this actor do is drawn.\n"
CODE_HASH: Final = keccak256(SOURCE)
BANK: Final = 0  # number of the actor that has no agent, and money for all orders of money
BANK_FUNDS: Final = 10**30
WALLET_FUNDS: Final = 10**30
ORDER_CYCLES: Final = 60_000  # cycles that a transaction with an order uses
ORDER_CELLS: Final = 600  # cells of it
SLOT: Final = b"touched"


class Ground(Struct, frozen=True, kw_only=True, dict=True):
    """A scenario, ready to run; agents keep what they have seen, so each run needs its own."""

    mechanism: str
    preset: str
    overrides: Mapping[str, int]
    funds: Sequence[int]  # what each actor has, base units; the bank, number 0, is not among them
    agents: Sequence[Agent] = field(default_factory=list)
    timer_multiplier: int | None = None  # of a fire's cycle and cell basefees, in parts of `lane_multiplier_unit`

    @cached_property
    def addresses(self) -> list[bytes]:
        """Addresses of all actors, the bank's first."""
        deployer = development_account(PROPOSER).address
        numbers = range(len(self.funds) + 1)
        return [bytes(draft_deployment(deployer, SOURCE, b"actor %d" % number)[1]) for number in numbers]

    @cached_property
    def numbers(self) -> dict[bytes, int]:
        """Number of each actor by address."""
        return {address: number for number, address in enumerate(self.addresses)}

    @cached_property
    def agent_of(self) -> dict[int, int]:
        """Number of each actor's agent."""
        return {actor: number for number, agent in enumerate(self.agents) for actor in agent.actors}

    @cached_property
    def genesis(self) -> Genesis:
        """What the chain begins from."""
        balances = {self.wallet: WALLET_FUNDS, Address(self.addresses[BANK]): BANK_FUNDS}
        balances |= {Address(address): funds for address, funds in zip(self.addresses[1:], self.funds, strict=True)}
        return Genesis(
            chain_id=CHAIN_ID,
            preset=self.preset,
            mechanism=self.mechanism,
            proposer=development_account(PROPOSER).address,
            accounts=balances,
            overrides=self.overrides,
        )

    @cached_property
    def params(self) -> ChainParams:
        """Parameters of the chain."""
        return self.genesis.params()

    @cached_property
    def wallet(self) -> Address:
        """Who sends all transactions."""
        return development_account("simulator").address

    @cached_property
    def policy(self) -> DeliveryPolicy:
        """What the mechanism does differently."""
        return build_mechanism(self.mechanism, self.params).policy

    def view(self, rules: Rules, balance_of: Callable[[int], int], last: BlockResult | None) -> View:
        """Return what agents see of a block with these rules, after the last one."""
        timer_cycle, timer_cell = rules.timer_basefees()
        return View(
            height=rules.height,
            user_basefee=rules.user_basefees()[0],
            timer_basefee=timer_cycle,
            cell_basefee=timer_cell,
            lane_basefee=rules.market.lane_basefee or 0,
            previous_tip=rules.market.previous_tip,
            marginal_tip=0 if last is None else last.marginal_tip,
            lane_cycles_max=rules.market.timer_cycles_max,
            has_mailbox=calls.SET_STATE_WATCH in self.policy.calls,
            balance_of=balance_of,
            addresses=self.addresses,
        )

    def first_state(self) -> dict[bytes, bytes | None]:
        """Return the state after genesis: actors are there, each agent has deployed its own, basefees are at floors."""
        kept = _Kept()
        apply_genesis(self.genesis, kept)
        state, fees = kept.written, self.params.fees
        for number, address in enumerate(self.addresses):
            record = state[account_key(address)]
            account = decode_account(record) if record is not None else Account()
            owner, agent = bytes(self.wallet), b""
            if number in self.agent_of:
                owner = keccak256(b"deployer %d" % self.agent_of[number])[-Address.WIDTH :]
                agent = bytes(address) if self.agents[self.agent_of[number]].asked else b""
            account = replace(account, code_hash=CODE_HASH, owner=owner, agent=agent)
            state[account_key(address)] = encode_account(account)
            state[manifest_key(address)] = encode_manifest([TIMER_SCHEDULE])
        state[code_key(CODE_HASH)] = SOURCE
        floor = amount_octets(fees.min_basefee)
        state[BASEFEES_KEY] = encode_record(Basefees(floor, floor))
        if self.timer_multiplier is not None:
            unit = fees.lane_multiplier_unit
            record = encode_record(LaneMultipliers(unit, unit, self.timer_multiplier, unit))
            state[system_slot_key(self.params, LANE_MULTIPLIERS)] = encode_slot(LANE_MULTIPLIERS, record)
        if self.policy.keeps in _FIRST_RECORDS:
            key, market = _FIRST_RECORDS[self.policy.keeps](self.params)
            state[key] = encode_record(market)
        return state


_FIRST_RECORDS: Final[Mapping[MarketKind, Callable[[ChainParams], tuple[bytes, LaneState]]]] = {
    MarketKind.LANE: lambda params: (LANE_KEY, LaneState(amount_octets(params.lane.basefee_min)))
}
"""Market to state key and record of one that has come to rest."""


class _Kept(MemoryStore):
    """A store that keeps what genesis writes."""

    def commit(self, height: int, changes: Mapping[bytes, bytes | None]) -> Any:
        self.written = dict(changes)
        return super().commit(height, changes)


class Plans:
    """The plans of live timers, and of those that have ended while Globalbox's mailbox holds fires of them."""

    def __init__(self, read: Read) -> None:
        """Follow the timers of a state."""
        self._read, self._has_mailbox = read, read(GLOBALBOX_KEY) is not None
        self.live: dict[bytes, PlannedTimer] = {}
        self._gone: dict[bytes, PlannedTimer] = {}

    def add(self, plan: PlannedTimer) -> None:
        """Follow a timer."""
        self.live[plan.timer_id] = plan

    def find(self, timer_id: bytes) -> PlannedTimer:
        """Return the plan of a timer that lives, or whose fire is in the mailbox."""
        plan = self.live.get(timer_id)
        return self._gone[timer_id] if plan is None else plan

    def end(self, timer_id: bytes) -> PlannedTimer:
        """Take out a timer that has ended, and return its plan."""
        plan = self.live.pop(timer_id)
        if self._has_mailbox:
            self._gone[timer_id] = plan
        return plan

    def settle(self) -> None:
        """Forget, after a block, what nothing asks for any more."""
        if self._gone:
            box = read_globalbox(self._read)
            if box.first == box.next:
                self._gone.clear()
