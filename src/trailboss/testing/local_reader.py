"""What can be asked of a local chain: nothing here changes it."""

from collections.abc import Sequence
from functools import partial

from trailboss.chain import Chain
from trailboss.chain.proofs import Proof, Subject, timer_subject
from trailboss.model.blocks import Block
from trailboss.model.decisions import DecisionRecord
from trailboss.model.timers import Timer
from trailboss.primitives.octets import Hash32
from trailboss.testing.parties import Party, address_of_party
from trailboss.views import Event, Receipt, TimerLife, TimerView, explain_timer
from trailboss.views.explain.life import events_since
from trailboss.views.forecast.quote import WITHIN, Quote, quote_timer
from trailboss.views.forecast.recent import BLOCKS
from trailboss.views.forecast.runway import Runway, runway_of
from trailboss.views.mechanism.auction_records import AuctionView, auction_of
from trailboss.views.mechanism.globalbox_records import (
    EndedView,
    FireView,
    MailboxView,
    ended_timer_of,
    globalbox_of,
    mailbox_of,
)
from trailboss.views.mechanism.registry import views_for
from trailboss.views.read_only_calls import try_timer
from trailboss.views.records import receipt_view
from trailboss.views.rehearsal.rehearse import REHEARSED_BLOCKS, ActivationRehearsal, rehearse_activation
from trailboss.views.timer_list import timer_view


class LocalReader:
    """The looking half of a `LocalChain`.

    Attributes:
        chain: The chain beneath.
    """

    chain: Chain

    @property
    def height(self) -> int:
        """Height of the last block."""
        return self.chain.height

    @property
    def state_root(self) -> Hash32:
        """Root of the state after the last block."""
        return self.chain.state_root

    @property
    def burned(self) -> int:
        """Base units burned since genesis."""
        return self.chain.economy()[1]

    @property
    def supply(self) -> int:
        """Base units that genesis created, and what `set_balance` has added or taken since."""
        return self.chain.economy()[0]

    def balance(self, party: Party) -> int:
        """Return a balance in base units."""
        return self.chain.balance(address_of_party(party))

    def block(self, height: int | None = None) -> Block:
        """Return a block; the last one if no height is given."""
        return self.chain.head if height is None else self.chain.blocks[height]

    def decisions(self, height: int) -> DecisionRecord | None:
        """Return how the block of a height chose among its due timers; None if it had no choice."""
        return self.chain.decisions(height)

    @property
    def lane_basefee(self) -> int:
        """Lane basefee of the next block, base units per cycle; before the activation the cycle basefee."""
        return self.chain.rules().market.basefee

    def receipts(self, since: int = 0, *, origin: str | None = None, actor: Party | None = None) -> list[Receipt]:
        """Return receipts from block ``since`` on, inclusive, in the order in which they ran.

        Args:
            since: Height of the first block.
            origin: ``transaction``, ``timer`` or ``message``, if only those are wanted.
            actor: The actor that ran, if only its are wanted.
        """
        wanted = None if actor is None else address_of_party(actor)
        views = (
            receipt_view(item, block.height) for block in self.chain.blocks.eventful(since) for item in block.receipts
        )
        return [view for view in views if origin in (None, view.origin) and wanted in (None, view.actor)]

    def events(self, name: str | None = None, since: int = 0) -> list[Event]:
        """Return events from block ``since`` on, inclusive; with a name only those."""
        return list(events_since(self.chain, since, name))

    def timers(self, actor: Party | None = None, height: int | None = None) -> list[TimerView]:
        """Return live timers by height and then order of insertion, of one actor or one height if given."""
        found = self.chain.timers() if height is None else iter(self.chain.timers_at(height))
        wanted = None if actor is None else address_of_party(actor)
        return [self._view(timer) for timer in found if wanted is None or timer.actor == wanted]

    def mailbox(self, target: Party | None = None) -> list[MailboxView]:
        """Return the entries that wait in the mailbox, in the order in which they will run, of one target if given.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain has no Globalbox.
        """
        return mailbox_of(self.chain, None if target is None else address_of_party(target))

    def globalbox(self, limit: int | None = None) -> list[FireView]:
        """Return the queued fires of Globalbox in their order, the first ones if there is a limit.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain has no Globalbox.
        """
        return globalbox_of(self.chain, limit)

    def auction(self) -> AuctionView:
        """Return the auction's epoch and the weights of its actors.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain has no auction.
        """
        return auction_of(self.chain)

    def ended_timer(self, timer_id: bytes) -> EndedView | None:
        """Return what is remembered of a timer of Globalbox that has ended; None if nothing is."""
        return ended_timer_of(self.chain, timer_id)

    def explain(self, timer_id: bytes) -> TimerLife:
        """Tell a timer's whole life, and why each decision fell as it did.

        Raises:
            TypeError: If it is no id: an event that is about no timer has None.
            Rejection: ``NOT_FOUND`` if no block of this chain scheduled it.
        """
        if not isinstance(timer_id, bytes):
            raise TypeError(f"explain({timer_id!r}): give a timer's id, the 32 bytes that `timers` and events have")
        return explain_timer(self.chain, timer_id, attempt=partial(try_timer, self.chain))

    def quote(
        self,
        height: int,
        gas_limit: int,
        tip: int | None = None,
        *,
        actor: Party | None = None,
        within: Sequence[int] = WITHIN,
        blocks: int = BLOCKS,
    ) -> Quote:
        """Say what a timer scheduled now would cost, and how often one like it would have run lately.

        Arguments and refusals are those of `quote_timer`.
        """
        owner = None if actor is None else address_of_party(actor)
        return quote_timer(self.chain, height, gas_limit, tip, actor=owner, within=within, blocks=blocks)

    def runway(self, payer: Party, *, blocks: int = BLOCKS) -> Runway:
        """Say how many fires a purse still pays for, and in which block it runs dry; see `runway_of`."""
        return runway_of(self.chain, address_of_party(payer), blocks=blocks)

    def rehearse_activation(self, height: int, blocks: int = REHEARSED_BLOCKS) -> ActivationRehearsal:
        """Play the activation of the timer lane through on a copy, and tell what becomes of each timer.

        Args:
            height: First block under the lane's rules.
            blocks: How many more to build after it.

        Raises:
            Rejection: ``INVALID_PARAMETER`` for a height that governance would refuse.
        """
        return rehearse_activation(self.chain, height, blocks)

    def prove(self, subject: Subject | bytes, *, height: int | None = None) -> Proof:
        """Prove what the state holds, to somebody who has only `state_root`: ``proof.verify(root)`` needs no chain.

        Args:
            subject: A timer's id, or an `AccountSubject`, `SlotSubject`, `StorageSubject`, `TimerSubject` or
                `TimersSubject`: what is not there is proven to be absent, a range to be complete.
            height: For the id of a timer that is gone: the height that it was due at.

        Raises:
            Rejection: ``NOT_FOUND`` for an id of no live timer without a height.
        """
        if isinstance(subject, bytes):
            subject = timer_subject(self.chain.store, subject, height)
        return self.chain.prove(subject)

    def check_invariants(self) -> None:
        """Check that money and timers add up and that state and queue agree; raises InvariantError if not."""
        self.chain.check_invariants()

    def _view(self, timer: Timer) -> TimerView:
        return timer_view(timer, self.chain.tier(timer), self.chain.rules(), views_for(self.chain))
