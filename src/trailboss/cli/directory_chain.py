"""The chain of a directory, as commands use it: the command builds its blocks."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final

from trailboss.chain import Chain, Snapshot
from trailboss.chain.development import DEPLOYER, development_account, draft_drop, draft_force, draft_hold
from trailboss.chain.drafts import Terms, draft_transaction, draft_unsigned
from trailboss.chain.jobs import JobAnswer, draft_reply
from trailboss.cli.errors import Mistake
from trailboss.cli.values import parse_hash
from trailboss.forecast.quote import Quote, quote_timer
from trailboss.model.timers import Timer
from trailboss.model.transactions import Instruction, SetRunner, Transaction
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import QueueForecast, ahead_of, forecast_beside, forecast_queue, forecast_timer
from trailboss.rehearsal.overrides import Overrides
from trailboss.rehearsal.simulate import simulate, simulate_fire, state_after
from trailboss.sandbox.engines import can_run
from trailboss.views import Answer, Receipt, TimerLife, explain_timer, timer_list
from trailboss.views.explain import life
from trailboss.views.mechanism.base import Outlook
from trailboss.views.read_only_calls import ask_actor, try_timer
from trailboss.views.records import build_block
from trailboss.views.trace.executions import match_transactions

FOUND_MAX: Final = 20  # transactions that begin alike


class DirectoryChain(Chain):
    """A chain in a directory, with the methods of commands, as `RemoteChain` has them for a node."""

    # Sending

    def submit(self, transactions: Sequence[Transaction]) -> list[Receipt]:
        """Build one block of transactions; one receipt each, in order. If all are refused there is no block."""
        return build_block(self, transactions)

    def waiting(self, _: Address) -> int:
        """Return how many transactions of an account wait: none, as their block is built at once."""
        return 0

    # What only a development chain does

    def mark(self) -> str:
        """Return the present point, as `go_back` takes it."""
        return f"{self.height}:{self.head.hash}"

    def go_back(self, mark: str) -> None:
        """Go back to a mark; raises `Mistake` if it is none, and ``NOT_FOUND`` if its block is gone."""
        height, _, digits = mark.partition(":")
        if not (height.isascii() and height.isdecimal()) or not digits:
            raise Mistake(f"{mark!r} is no mark", "give what `trailboss snapshot` printed: a height, a colon, a hash")
        self.revert(Snapshot(int(height), parse_hash("the mark's hash", digits)))

    def faucet(self, address: Address) -> tuple[int, Receipt]:
        """Raise `Mistake`: a directory has no faucet."""
        raise Mistake(
            f"there is no faucet for {address}: only a node has one", "use `trailboss send`, or `trailboss set-balance`"
        )

    def impersonate(self, address: Address, instruction: Instruction, terms: Terms) -> Receipt:
        """Send an instruction unsigned, as an account's, in a block of its own."""
        return self.submit([draft_unsigned(self, instruction, address, terms=terms)])[0]

    def interfere(self, instruction: Instruction) -> Receipt:
        """Send an instruction of development chains as the deployer, in a block of its own."""
        return self.submit([draft_transaction(self, instruction, development_account(DEPLOYER).private_key)])[0]

    def set_runner(self, jobs_max: int) -> Receipt:
        """Have so many runner jobs wait for replies at most, 0 for no runner."""
        return self.interfere(SetRunner(jobs_max))

    def reply(self, job: int, answer: JobAnswer) -> Receipt:
        """Reply to a runner job, in a block of its own."""
        return self.submit([draft_reply(self, job, answer)])[0]

    def alter_timer(self, call: str, timer_id: Hash32, until: int | None = None) -> Receipt:
        """Postpone a timer, by default to the last height at which it may fire, or ``force`` or ``drop`` it."""
        if call == "hold":
            return self.interfere(draft_hold(self, timer_id, until))
        return self.interfere((draft_force if call == "force" else draft_drop)(self, timer_id))

    # Asking

    def ask_view(self, actor: Address, handler: str, payload: bytes, sender: Address) -> Answer:
        """Run a handler read-only, with as many cycles as a block has."""
        return ask_actor(self, actor, handler, payload, sender=sender)

    def simulate(
        self, instruction: Instruction, sender: Address, terms: Terms, height: int | None, overrides: Overrides
    ) -> Receipt:
        """Return the receipt that an instruction would have, as after the block of a height; None for the last one."""
        past = self if height is None else state_after(self, height)
        return simulate(past, self.engine, instruction, sender, terms=terms, overrides=overrides)

    def simulate_fire(self, timer_id: Hash32, height: int | None, overrides: Overrides) -> Receipt:
        """Return the receipt that a timer's next fire would have, likewise."""
        past = self if height is None else state_after(self, height)
        return simulate_fire(past, self.engine, timer_id, overrides=overrides)

    def forecast(self, blocks: int) -> QueueForecast:
        """Return what becomes of the live timers in the next blocks."""
        return forecast_queue(self, blocks)

    latest_events = life.latest_events
    list_timers = timer_list.list_timers
    match_timers = timer_list.match_timer

    def match_transactions(self, digits: str) -> list[Hash32]:
        """Return the hashes of transactions that begin with hexadecimal digits; a few if there are many."""
        return match_transactions(self, digits, FOUND_MAX)

    def explain(self, timer_id: Hash32) -> TimerLife:
        """Return a timer's whole life; its next fire is tried if this machine can run the chain's actors."""
        if not can_run(self.genesis.image):
            return explain_timer(self, timer_id)

        def ahead(timer: Timer, told: Outlook) -> str:
            return forecast_beside(self, timer, forecast_timer(self, timer), told)

        return explain_timer(self, timer_id, attempt=partial(try_timer, self), ahead=ahead)

    def quote(self, height: int, gas_limit: int, tip: int | None, actor: Address | None, blocks: int) -> Quote:
        """Quote a timer that is scheduled now, with what is ahead of it if this machine can run the chain's actors."""
        with ahead_of(self, height) if can_run(self.genesis.image) else nullcontext() as future:
            return quote_timer(self, height, gas_limit, tip, actor=actor, blocks=blocks, future=future)
