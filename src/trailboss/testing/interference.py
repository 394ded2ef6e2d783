"""The rules that every `ActorMachine` has: what a chain, strangers and governance do to an actor."""

from contextlib import suppress
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import asdict

from trailboss.chain import Snapshot
from trailboss.model.configs import amount_of
from trailboss.model.timers import Timer
from trailboss.model.transactions import SetGovParam, UpdateBasefeeConfig, UpdateTimerConfig
from trailboss.primitives.errors import Rejection
from trailboss.testing import strategies
from trailboss.testing.parties import ActorHandle, RevertedError
from trailboss.testing.script import ScriptedChain

REORG_DEPTH: Final = 8  # blocks
SNAPSHOTS_KEPT: Final = 3
STRANGERS: Final = 4  # timers of one crowd; as many of the largest fill the lane
DELAY: Final = 8  # blocks
FAR: Final = 10_000  # blocks: a fire that is farther ahead is not waited for
LANE_CYCLES: Final = b"system:cip1:lane_timer_cycles"
PRICE_FACTOR: Final = 20

WEIGHTS: Final = {"pass_blocks": 4, "pass_to_fire": 4, "reorganize": 2, "delay": 3}
"""How often a rule is chosen, where it is not once."""


class Interference(RuleBasedStateMachine):
    """Rules for a chain and an actor on it. What the chain refuses changes nothing.

    Attributes:
        chain: The chain.
        actor: The actor.
        floor: Height of the chain when the actor was ready: reorgs do not go below it.
    """

    chain: ScriptedChain
    actor: ActorHandle
    floor: int
    marks: list[Snapshot]

    @rule(number=strategies.blocks())
    def pass_blocks(self, number: int) -> None:
        """Build empty blocks."""
        self.chain.mine(number)

    @rule(before=st.integers(0, 2))
    def pass_to_fire(self, before: int) -> None:
        """Build empty blocks up to the next height at which a timer of the actor is due, or to shortly before it."""
        ahead = self._next_fire() - before - self.chain.height
        if 1 <= ahead <= FAR:
            self.chain.mine(ahead)

    @rule(depth=st.integers(1, REORG_DEPTH), late=st.integers(0, 2), again=st.booleans())
    def reorganize(self, depth: int, late: int, again: bool) -> None:
        """Drop blocks, build some empty ones, and perhaps send the dropped transactions again, each in a block."""
        chain = self.chain
        depth = min(depth, chain.height - self.floor)
        if depth < 1:
            return
        dropped = [each for block in chain.chain.blocks[chain.height - depth + 1 :] for each in block.transactions]
        chain.reorg(depth)
        if late:
            chain.mine(late)
        known = {account.address: account for account in (*chain.accounts, chain.deployer)}
        for transaction in dropped if again else ():
            if transaction.sender in known:
                chain.send(transaction.instruction, sender=known[transaction.sender])

    @rule()
    def take_snapshot(self) -> None:
        """Remember this point."""
        self.marks = [*self.marks, self.chain.snapshot()][-SNAPSHOTS_KEPT:]

    @precondition(lambda self: self.marks)
    @rule(number=st.integers(0, SNAPSHOTS_KEPT - 1))
    def go_back(self, number: int) -> None:
        """Go back to a point that was remembered, if the chain still holds it."""
        with suppress(Rejection):
            self.chain.revert(self.marks[number % len(self.marks)])

    @rule(number=st.integers(0, 2), amount=strategies.amounts())
    def set_funds(self, number: int, amount: int) -> None:
        """Set what a payer of the actor's timers holds, the actor first: it runs dry, or comes to money."""
        payers = list(dict.fromkeys((self.actor.address, *(timer.fee_payer for timer in self._timers()))))
        with suppress(RevertedError):
            self.chain.set_balance(payers[number % len(payers)], amount)

    @rule(amount=strategies.amounts(), sender=strategies.accounts())
    def transfer_in(self, amount: int, sender: int) -> None:
        """Somebody sends the actor money."""
        self.chain.transfer(self.actor, amount, sender=self.account(sender))

    @rule(count=st.integers(1, STRANGERS), ahead=st.integers(-1, 1))
    def crowd(self, count: int, ahead: int) -> None:
        """Strangers schedule timers as large as can be, each in a block, around the actor's next height."""
        height = max(self._next_fire() + ahead, self.chain.height + count + 1)
        for number in range(count):
            with suppress(RevertedError, Rejection):
                self.chain.schedule(height, sender=self.account(-1 - number))

    @rule(number=st.integers(0, 2), by=st.integers(1, DELAY))
    def delay(self, number: int, by: int) -> None:
        """One of the actor's timers is late, as in a lane without room."""
        ahead = [timer for timer in self._timers() if timer.height > self.chain.height]
        if ahead:
            timer = ahead[number % len(ahead)]
            with suppress(RevertedError, Rejection):
                self.chain.hold(timer.timer_id, until=min(timer.height + by, timer.expires_at))

    @rule(most=st.sampled_from((1, 2, 1_000)))
    def limit_timers(self, most: int) -> None:
        """Governance sets how many live timers an actor may have."""
        self.chain.system(UpdateTimerConfig(**{**asdict(self._rules().timer), "max_timers_per_actor": most}))

    @rule(factor=st.integers(1, PRICE_FACTOR))
    def raise_prices(self, factor: int) -> None:
        """Governance sets the least that a cycle and a cell cost, as a multiple of what it is at genesis."""
        now = self._rules().basefee
        self.chain.system(
            UpdateBasefeeConfig(
                alpha=now.alpha,
                max_change_denom=now.max_change_denominator,
                min_basefee=factor * self.chain.chain.params.fees.min_basefee,
                max_basefee=amount_of(now.max_basefee),
                block_cycles_target=now.cycles_target,
                block_cells_target=now.cells_target,
                block_access_target=now.access_target,
                access_weight_scalar_ppm=now.access_weight_scalar_ppm,
            )
        )

    @rule(fires=st.integers(1, STRANGERS))
    def narrow_lane(self, fires: int) -> None:
        """Governance sets how many of the largest fires there is room for in a block, where there is a lane."""
        cycles = fires * self._rules().timer.max_cycles_per_fire
        self.chain.system(SetGovParam(LANE_CYCLES, cycles.to_bytes(8, "big")))

    @rule()
    def activate_lane(self) -> None:
        """Governance activates the timer lane, where it can, as early as it can."""
        with suppress(RevertedError):
            self.chain.activate_lane()

    def account(self, number: int) -> Any:
        """Return a funded account; numbers beyond the last begin again."""
        return self.chain.accounts[number % len(self.chain.accounts)]

    def _timers(self) -> list[Timer]:
        return [timer for timer in self.chain.chain.timers() if timer.actor == self.actor.address]

    def _next_fire(self) -> int:
        ahead = (timer.height for timer in self._timers() if timer.height > self.chain.height)
        return next(ahead, self.chain.height + 1)

    def _rules(self) -> Any:
        return self.chain.chain.rules()
