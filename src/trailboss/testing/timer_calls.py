"""Timers without an actor of one's own, by calls of a local chain."""

from collections.abc import Mapping, Sequence

from trailboss.chain import stock_timers
from trailboss.codec.canonical import decode_canonical
from trailboss.model.events import TIMER_CANCELLED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.sdk import PriorityTier
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import Party, TestAccount, optional_address
from trailboss.views import TimerView


class TimerCalls(BaseChain):
    """Calls that schedule, change and cancel timers of the sender's stock actor, which is deployed with the first.

    Unless Globalbox calls another target, that actor emits the event ``timer.payload`` at each fire. Each call is a
    block of its own. It raises `RevertedError` if the chain refuses, with the reason in the receipt; `Rejection` with
    ``INVALID_INPUT`` or ``UNSUPPORTED`` for what the mechanism does not have, and with ``NOT_FOUND`` for a timer that
    is not live; `TrailbossError` if a block is open.
    """

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
        """Schedule a timer.

        Args:
            height: Block height at which it fires.
            payload: For the event at most 4,096 bytes.
            sender: Who schedules; the first account by default.
            fee_payer: Payer of the fire: the sender, or None for the stock actor. FIFO and lane.
            gas_limit: Cycles that the fire may use; None for the most allowed.
            expires_at: Last height at which it may fire; None for the farthest one. Not in the auction.
            max_fee_per_cycle: Cap of lane basefee and tip together, in the auction of cycle basefee and tip; base
                units; None for the default.
            max_priority_fee_per_cycle: Tip, base units; None for the default. In the auction a stock agent bids both.
            priority_tier_hint: The tip as a multiple of the last block's, instead of one in base units. Lane.
            gas_bidding_agent: Actor that prices this timer, instead of fees. Lane.
            target: Actor whose handler runs, with the stock actor as its caller; None for the stock actor. Globalbox.
            bid: Q32.96, as from `trailboss.sdk.bid`. Globalbox.
            client_nonce: A name: the same name again returns the same timer. Globalbox.
            value: Additional base units for the stock actor; None for 100 CBY when it is deployed, and then none.
        """
        self._outbox.check_closed("schedule a timer")
        owner = sender or self.accounts[0]
        order = stock_timers.TimerOrder(
            height=height,
            payload=payload,
            fee_payer=optional_address(fee_payer),
            gas_limit=gas_limit,
            expires_at=expires_at,
            max_fee_per_cycle=max_fee_per_cycle,
            max_priority_fee_per_cycle=max_priority_fee_per_cycle,
            priority_tier_hint=None if priority_tier_hint is None else priority_tier_hint.value,
            gas_bidding_agent=optional_address(gas_bidding_agent),
            target=optional_address(target),
            bid=bid,
            client_nonce=client_nonce,
        )
        return self._ordered(owner, stock_timers.draft_schedule(self.chain, owner.address, order, value))

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
        """Set a timer of Globalbox that fires whenever a key that begins with one of these has changed.

        The keys are as from `trailboss.sdk.watch_key`, the other arguments as in `schedule`.
        """
        self._outbox.check_closed("set a state watch")
        owner = sender or self.accounts[0]
        order = stock_timers.WatchOrder(
            watch_keys=watch_keys,
            payload=payload,
            target=optional_address(target),
            gas_limit=gas_limit,
            bid=bid,
            expires_at=expires_at,
            client_nonce=client_nonce,
        )
        return self._ordered(owner, stock_timers.draft_watch(self.chain, owner.address, order, value))

    def update_timer(
        self,
        timer_id: bytes,
        *,
        payload: bytes | None = None,
        gas_limit: int | None = None,
        bid: int | None = None,
        sender: TestAccount | None = None,
    ) -> bool:
        """Change what is not None of a stock actor's timer for its later fires; return whether there will be one."""
        self._outbox.check_closed("change a timer")
        owner = sender or self.accounts[0]
        change = stock_timers.TimerChange(timer_id=timer_id, payload=payload, gas_limit=gas_limit, bid=bid)
        receipt = self.send(stock_timers.draft_update(self.chain, owner.address, change), sender=owner, check=True)
        return decode_canonical(receipt.return_value) is True

    def cancel(self, timer_id: bytes, *, sender: TestAccount | None = None) -> bool:
        """Cancel a timer of the sender's stock actor, and return whether it was still there to cancel."""
        self._outbox.check_closed("cancel a timer")
        owner = sender or self.accounts[0]
        receipt = self.send(stock_timers.draft_cancel(self.chain, owner.address, timer_id), sender=owner, check=True)
        return any(event.name == TIMER_CANCELLED and event.timer_id == timer_id for event in receipt.events)

    def _ordered(self, owner: TestAccount, instructions: Mapping[str, Instruction]) -> TimerView:
        with self.one_block():
            sent = [self.send(instruction, sender=owner, check=True) for instruction in instructions.values()]
        identity = sent[-1].return_value
        timer = self.chain.timer(identity)
        if timer is None:
            raise stock_timers.ended_refusal(self.chain, Hash32(identity))
        return self._view(timer)
