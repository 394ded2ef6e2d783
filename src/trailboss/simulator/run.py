"""A workload through several mechanisms: each has a chain of its own, with the same actors and transactions."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from trailboss.chain.chain import Chain
from trailboss.chain.development import CHAIN_ID, PROPOSER, DevelopmentAccount, development_account
from trailboss.chain.drafts import Terms, draft_deployment, draft_transaction
from trailboss.execution.genesis import Genesis
from trailboss.model.actors import TIMER_SCHEDULE
from trailboss.model.configs import amount_of
from trailboss.model.transactions import ExecuteActor, FundActor, Instruction, Transaction, Transfer
from trailboss.params import FeeParams
from trailboss.primitives.errors import ConfigurationError, InvariantError
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.simulator import measures
from trailboss.simulator.sources import CROWD, DIALECTS, actor_source
from trailboss.simulator.workload import ActorGroup, Traffic, Workload, asked_fires, check_workload, due_heights

MECHANISMS: Final = tuple(DIALECTS)  # what a workload is run through, in this order
FUNDER: Final = "workload funder"
SENDER: Final = "workload sender"
FEES: Final = 10**9 * BASE_UNITS_PER_CBY  # base units for the fees of those who deploy and send
WARM_UP: Final = 24  # empty blocks at the beginning, in which a basefee that starts high falls to its floor
PRICE_CAP: Final = 1_000_000_000
"""Fee cap of the workload's transactions, base units per cycle or cell: the same under every mechanism."""
DEPLOYMENT: Final = (300_000, 4_000)  # cycles and cells that a deployment may use, without its timers
TIMER: Final = (1_000, 100)  # cycles and cells for each timer that it schedules, without the payload
FUNDING: Final = (20_000, 1_000)  # cycles and cells of what funds an actor
CALL: Final = (40_000, 1_000)  # cycles and cells of a transaction, without what it burns
_Draft = tuple[Instruction, int, int]  # what a transaction does, and the cycles and cells that it may use
FULL: Final = (9, 10)  # a block is full if its fires use at least this part of the budget


class _Member(NamedTuple):
    """An actor of a workload: the number of its group, and its own within it."""

    group: int
    number: int


def compare(
    workload: Workload, mechanisms: Sequence[str] = MECHANISMS, on_block: Callable[[], None] | None = None
) -> tuple[measures.MechanismResult, ...]:
    """Run a workload through mechanisms, one after the other; the same workload gives the same result everywhere.

    ``on_block`` is called after each of the workload's blocks.

    Raises:
        ConfigurationError: If the workload breaks a rule of its own, or of one of the chains.
        InvariantError: If money or timers are lost.
    """
    check_workload(workload, mechanisms)
    results = []
    for mechanism in mechanisms:
        with Chain(_genesis(workload, mechanism)) as chain:
            run = _Run(workload, mechanism, chain)
            run.set_up()
            for block in range(1, workload.blocks + 1):
                run.build(block)
                if on_block is not None:
                    on_block()
            results.append(run.result())
    return tuple(results)


def _genesis(workload: Workload, mechanism: str) -> Genesis:
    funds = sum(group.count * group.funds for group in workload.actors)
    return Genesis(
        chain_id=CHAIN_ID,
        preset=workload.preset,
        mechanism=mechanism,
        proposer=development_account(PROPOSER).address,
        accounts={development_account(FUNDER).address: FEES + funds, development_account(SENDER).address: FEES},
        overrides=workload.overrides(mechanism),
    )


class _Run:
    """One mechanism's chain while a workload runs on it."""

    def __init__(self, workload: Workload, mechanism: str, chain: Chain) -> None:
        self._workload, self._mechanism, self._chain = workload, mechanism, chain
        self._funder, self._sender = development_account(FUNDER), development_account(SENDER)
        self._crowd, self._crowd_address = draft_deployment(self._funder.address, CROWD.encode(), b"")
        self._batches = _batches(workload, chain.params.fees)
        self._start = WARM_UP + 1 + len(self._batches)
        self._members: dict[bytes, _Member] = {}
        self._observer = measures.Observer(len(workload.actors))
        self._included = self._refused = 0
        self._timeline: list[measures.BlockLine] = []
        self._fires: list[measures.Fire] = []

    def set_up(self) -> None:
        """Let the basefees rest, then deploy and fund the actors, each of which schedules its first timers."""
        for _ in self._chain.advance_to(WARM_UP):
            pass
        self._set_up_block([(self._crowd, *DEPLOYMENT)])
        for batch in self._batches:
            self._set_up_block([draft for member in batch for draft in self._deployment(member)])

    def build(self, block: int) -> None:
        """Build one block of the workload."""
        drafts = [
            self._traffic(row)
            for row in self._workload.transactions
            if row.first <= block <= (row.last or self._workload.blocks)
            for _ in range(row.per_block)
        ]
        applied = self._chain.build(self._signed(self._sender, drafts))
        self._included += len(applied.block.transactions)
        self._refused += len(applied.refused)
        fires = self._observer.observe(applied.block)
        self._fires.extend(measures.Fire(block, self._members[actor].group, late) for actor, late in fires)
        header, oldest = applied.block.header, self._observer.oldest(applied.block.height)
        basefee = amount_of(header.cycle_basefee)
        self._timeline.append(measures.BlockLine(block, header.timer_cycles_used, header.cycles_used, basefee, oldest))

    def result(self) -> measures.MechanismResult:
        """Return the results; raises InvariantError if money or timers are lost. Decision: D-35."""
        chain, tallies, members = self._chain, self._observer.tallies, self._members.items()
        self._observer.finish(chain.height)
        chain.check_invariants()
        outcome = measures.outcome_of(list(tallies.values()))
        totals = chain.totals()
        seen = (outcome.scheduled, outcome.delivered, outcome.expired, outcome.unfunded, outcome.cancelled)
        counted = (totals.scheduled, totals.fired, totals.expired, totals.unfunded, totals.cancelled)
        if seen != counted:
            raise InvariantError(f"the events are of {seen} timers, the chain counts {counted}")
        supply, burned = chain.economy()
        budget, (part, whole) = chain.rules().timer_cycles_max(), FULL
        return measures.MechanismResult(
            mechanism=self._mechanism,
            budget_cycles=budget,
            outcome=outcome,
            groups=tuple(
                measures.GroupResult(
                    group.name, measures.outcome_of([tallies[actor] for actor, each in members if each.group == index])
                )
                for index, group in enumerate(self._workload.actors)
            ),
            actors=tuple(self._actor_result(actor, member) for actor, member in members),
            fullest_block=max(line.timer_cycles for line in self._timeline),
            full_blocks=sum(line.timer_cycles * whole >= budget * part for line in self._timeline),
            transactions=self._included,
            transactions_refused=self._refused,
            supply=supply,
            balances=chain.circulating(),
            burned=burned,
            state_root=chain.state_root,
            timeline=tuple(self._timeline),
            fires=tuple(self._fires),
        )

    def _actor_result(self, actor: bytes, member: _Member) -> measures.ActorResult:
        tally, group = self._observer.tallies[actor], self._workload.actors[member.group]
        return measures.ActorResult(group.name, member.number, Address(actor), len(tally.lateness), tally.asked)

    def _set_up_block(self, drafts: Sequence[_Draft]) -> None:
        applied = self._chain.build(self._signed(self._funder, drafts))
        self._observer.observe(applied.block)
        wrong = [str(rejection) for _, rejection in applied.refused]
        wrong += [str(receipt.error) for receipt in applied.block.receipts if receipt.error is not None]
        if wrong:
            raise ConfigurationError(f"the actors cannot be set up under {self._mechanism}: {wrong[0]}")

    def _deployment(self, member: _Member) -> tuple[_Draft, _Draft]:
        group = self._workload.actors[member.group]
        heights = due_heights(self._workload, group, member.number)
        deployment, address = draft_deployment(
            self._funder.address,
            actor_source(group, self._mechanism).encode(),
            f"{member.group} {member.number}".encode(),
            init_payload=" ".join(str(self._start + height) for height in heights).encode(),
            entitlements=[TIMER_SCHEDULE] if self._chain.params.timers.schedule_needs_entitlement else (),
        )
        self._members[bytes(address)] = member
        self._observer.follow(bytes(address), member.group, asked_fires(self._workload, group, member.number))
        return (deployment, *_deployment_limits(group)), (FundActor(address, group.funds), *FUNDING)

    def _traffic(self, row: Traffic) -> _Draft:
        cycles, cells = CALL
        if row.work:
            return ExecuteActor(self._crowd_address, "burn", b"%d" % row.work), cycles + row.work, cells
        return Transfer(self._funder.address, 1), cycles, cells

    def _signed(self, account: DevelopmentAccount, drafts: Sequence[_Draft]) -> list[Transaction]:
        """Return transactions with the same limits and fee caps under every mechanism."""
        chain, key, signed = self._chain, account.private_key, list[Transaction]()
        for waiting, (instruction, cycles, cells) in enumerate(drafts):
            terms = Terms(
                cycles_limit=cycles, cells_limit=cells, max_fee_per_cycle=PRICE_CAP, max_fee_per_cell=PRICE_CAP
            )
            signed.append(draft_transaction(chain, instruction, key, terms=terms, waiting=waiting))
        return signed


def _batches(workload: Workload, fees: FeeParams) -> list[list[_Member]]:
    """Return the actors that are made in each block of the beginning: as many as leave the basefees at rest."""
    batches: list[list[_Member]] = [[]]
    cycles = cells = 0
    for index, group in enumerate(workload.actors):
        own_cycles, own_cells = map(sum, zip(_deployment_limits(group), FUNDING, strict=True))
        for number in range(group.count):
            cycles, cells = cycles + own_cycles, cells + own_cells
            if batches[-1] and (cycles > fees.cycles_target or cells > fees.cells_target):
                batches.append([])
                cycles, cells = own_cycles, own_cells
            batches[-1].append(_Member(index, number))
    return batches


def _deployment_limits(group: ActorGroup) -> tuple[int, int]:
    (cycles, cells), (timer_cycles, timer_cells) = DEPLOYMENT, TIMER
    held = group.timers * group.burst
    return cycles + timer_cycles * held, cells + (timer_cells + group.payload_bytes) * held
