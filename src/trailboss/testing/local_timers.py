"""Timers of a local chain without an actor of one's own."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from trailboss.chain.stock_timers import (
    TimerChange,
    TimerOrder,
    WatchOrder,
    draft_cancel,
    draft_schedule,
    draft_update,
    draft_watch,
    ended_refusal,
)
from trailboss.codec.canonical import decode_canonical
from trailboss.model.events import TIMER_CANCELLED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.sdk import PriorityTier
from trailboss.testing.local_reader import LocalReader
from trailboss.testing.parties import Party, TestAccount, address_of_party
from trailboss.views import Receipt, TimerView


class LocalTimers(LocalReader, ABC):
    """The half of a `LocalChain` that schedules, watches, changes and cancels for people.

    Every timer belongs to a stock actor, one a sender, which is deployed when it is first needed. Unless Globalbox
    calls another target, that actor emits the event ``timer.payload`` with the payload when the timer fires. What the
    mechanism of the chain does not have is refused by name.

    Attributes:
        accounts: Funded accounts.
    """

    accounts: tuple[TestAccount, ...]

    @abstractmethod
    def send(self, instruction: Instruction, *, sender: TestAccount, check: bool = False) -> Receipt:
        """Sign an instruction and put it into a block."""

    @abstractmethod
    def one_block(self) -> AbstractContextManager[None]:
        """Gather the transactions sent within and build one block of them at the end."""

    @abstractmethod
    def _check_closed_block(self, verb: str) -> None:
        """Refuse what needs a block of its own while one is open."""

    def schedule(
        self,
        height: int,
        payload: bytes = b"",
        *,
        sender: TestAccount | None = None,
        fee_payer: Party | None = None,
        gas_limit: int | None = None,
        expires_at: int | None = None,
        max_fee_per_cycle: int | None = None,
        max_priority_fee_per_cycle: int | None = None,
        priority_tier_hint: PriorityTier | None = None,
        gas_bidding_agent: Party | None = None,
        target: Party | None = None,
        bid: int | None = None,
        client_nonce: bytes | None = None,
        value: int | None = None,
    ) -> TimerView:
        """Schedule a timer, in a block of its own.

        Args:
            height: Block height at which it fires.
            payload: For the event at most 4,096 bytes.
            sender: Who schedules; the first account unless told otherwise.
            fee_payer: Who pays for the fire: the sender, or None for the stock actor. FIFO and lane.
            gas_limit: Cycles that the fire may use; None for the most that it may have.
            expires_at: Last height at which it may fire; None for the farthest one. Not in the auction.
            max_fee_per_cycle: Cap of lane basefee and tip together, in the auction of cycle basefee and tip; base
                units; None for the default.
            max_priority_fee_per_cycle: Tip, base units; None for the default. In the auction a stock agent bids both.
            priority_tier_hint: The tip as a multiple of the last block's, in place of one in base units. Lane.
            gas_bidding_agent: Actor that prices this timer, in place of fees. Lane.
            target: Actor whose handler runs, with the stock actor as its caller; None for the stock actor. Globalbox.
            bid: Q32.96, as from `trailboss.sdk.bid`. Globalbox.
            client_nonce: A name: the same one again gives the timer that has it. Globalbox.
            value: Base units that the stock actor gets besides; None for 100 CBY when it is deployed, and then none.

        Raises:
            RevertedError: If the chain refuses the timer, with the reason in its receipt.
            Rejection: ``INVALID_INPUT`` for an option that the mechanism does not have, ``NOT_FOUND`` if the timer of
                the client nonce has ended already.
            TrailbossError: If a block is open.
        """
        self._check_closed_block("schedule a timer")
        owner = sender or self.accounts[0]
        order = TimerOrder(
            height=height,
            payload=payload,
            fee_payer=None if fee_payer is None else address_of_party(fee_payer),
            gas_limit=gas_limit,
            expires_at=expires_at,
            max_fee_per_cycle=max_fee_per_cycle,
            max_priority_fee_per_cycle=max_priority_fee_per_cycle,
            priority_tier_hint=None if priority_tier_hint is None else priority_tier_hint.value,
            gas_bidding_agent=None if gas_bidding_agent is None else address_of_party(gas_bidding_agent),
            target=None if target is None else address_of_party(target),
            bid=bid,
            client_nonce=client_nonce,
        )
        return self._ordered(owner, draft_schedule(self.chain, owner.address, order, value))

    def watch(
        self,
        watch_keys: Sequence[bytes],
        payload: bytes = b"",
        *,
        sender: TestAccount | None = None,
        target: Party | None = None,
        gas_limit: int | None = None,
        bid: int | None = None,
        expires_at: int | None = None,
        client_nonce: bytes | None = None,
        value: int | None = None,
    ) -> TimerView:
        """Set a timer of Globalbox that fires whenever one of the keys has changed, in a block of its own.

        Args:
            watch_keys: Beginnings of the keys that it watches, as from `trailboss.sdk.watch_key`.
            payload: For the event at most 4,096 bytes.
            sender: Who sets it; the first account unless told otherwise.
            target: Actor whose handler runs, with the stock actor as its caller; None for the stock actor.
            gas_limit: Cycles that a fire may use; None for the most that it may have.
            bid: Q32.96, as from `trailboss.sdk.bid`.
            expires_at: Last height at which it may fire; None for the farthest one.
            client_nonce: A name: the same one again gives the timer that has it.
            value: Base units that the stock actor gets besides; None for 100 CBY when it is deployed, and then none.

        Raises:
            RevertedError: If the chain refuses it, with the reason in its receipt.
            Rejection: ``UNSUPPORTED`` if the mechanism has no state watches, ``NOT_FOUND`` if the timer of the client
                nonce has ended already.
            TrailbossError: If a block is open.
        """
        self._check_closed_block("set a state watch")
        owner = sender or self.accounts[0]
        order = WatchOrder(
            watch_keys=watch_keys,
            payload=payload,
            target=None if target is None else address_of_party(target),
            gas_limit=gas_limit,
            bid=bid,
            expires_at=expires_at,
            client_nonce=client_nonce,
        )
        return self._ordered(owner, draft_watch(self.chain, owner.address, order, value))

    def update_timer(
        self,
        timer_id: bytes,
        *,
        payload: bytes | None = None,
        gas_limit: int | None = None,
        bid: int | None = None,
        sender: TestAccount | None = None,
    ) -> bool:
        """Change what later fires of a timer bring, in a block of its own, and return whether there will be one.

        Args:
            timer_id: A live timer of the sender's stock actor.
            payload: What its event tells, or the handler of its target gets; None stays as it is.
            gas_limit: Cycles that a fire may use; None stays as it is.
            bid: Q32.96, as from `trailboss.sdk.bid`; None stays as it is.
            sender: Who set it; the first account unless told otherwise.

        Raises:
            RevertedError: If the chain refuses the change, with the reason in its receipt.
            Rejection: ``UNSUPPORTED`` if the mechanism has no such call, ``NOT_FOUND`` if there is no such timer.
            TrailbossError: If a block is open.
        """
        self._check_closed_block("change a timer")
        owner = sender or self.accounts[0]
        change = TimerChange(timer_id=timer_id, payload=payload, gas_limit=gas_limit, bid=bid)
        receipt = self.send(draft_update(self.chain, owner.address, change), sender=owner, check=True)
        return decode_canonical(receipt.return_value) is True

    def cancel(self, timer_id: bytes, *, sender: TestAccount | None = None) -> bool:
        """Cancel a timer, in a block of its own, and return whether it was still there to cancel.

        Args:
            timer_id: A live timer of the sender's stock actor.
            sender: Who set or scheduled it; the first account unless told otherwise.

        Raises:
            RevertedError: If the chain refuses, with the reason in its receipt: the timer is another's.
            Rejection: ``NOT_FOUND`` if there is no such timer.
            TrailbossError: If a block is open.
        """
        self._check_closed_block("cancel a timer")
        owner = sender or self.accounts[0]
        receipt = self.send(draft_cancel(self.chain, owner.address, timer_id), sender=owner, check=True)
        return any(event.name == TIMER_CANCELLED and event.timer_id == timer_id for event in receipt.events)

    def _ordered(self, owner: TestAccount, instructions: Mapping[str, Instruction]) -> TimerView:
        with self.one_block():
            sent = [self.send(instruction, sender=owner, check=True) for instruction in instructions.values()]
        identity = sent[-1].return_value
        timer = self.chain.timer(identity)
        if timer is None:
            raise ended_refusal(self.chain, Hash32(identity))
        return self._view(timer)
