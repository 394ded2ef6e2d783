"""The passing of time on a local chain, up to what is next."""

from collections import deque
from collections.abc import Callable

from trailboss.chain.next_fire import WITHIN, advance_to_fire
from trailboss.primitives.errors import Rejection, RejectionReason, TrailbossError
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import Party, optional_address
from trailboss.views import Receipt


class ClockCalls(BaseChain):
    """Calls that let time pass up to an event, however far away it is."""

    def mine_to_next_fire(self, *, actor: Party | None = None, within: int = WITHIN) -> list[Receipt]:
        """Build blocks up to the next in which a timer fires, and return the receipts of its fires, in order.

        Args:
            actor: Actor whose fire is awaited; None for any.
            within: Blocks in which it has to come.

        Raises:
            TrailbossError: If no timer is left that could fire, or none has fired in so many blocks, which are built.
        """
        self._outbox.check_closed("mine")
        _check_within(within)
        begun, wanted = self.height, optional_address(actor)
        # A node at an interval may have built more blocks by now.
        last = deque(advance_to_fire(self.chain, self._advance, begun + within, wanted), maxlen=1)
        fires = self.receipts(last[0].height, origin="timer", actor=actor) if last else []
        if fires:
            return fires
        whose = "" if wanted is None else f" of {wanted}"
        if not self.timers(actor):
            raise TrailbossError(f"no timer{whose} is left that could fire: the chain is at height {self.height}")
        raise TrailbossError(f"no timer{whose} has fired in {within:,} blocks, up to height {self.height:,}")

    def mine_until(self, condition: Callable[[], object], *, within: int = WITHIN) -> int:
        """Build blocks until a condition holds, asked before the first and after each; return the height.

        Raises:
            TrailbossError: If it does not hold after so many blocks, which are built.
        """
        self._outbox.check_closed("mine")
        _check_within(within)
        begun = self.height
        while not condition():
            if self.height == begun + within:
                name = getattr(condition, "__name__", repr(condition))
                raise TrailbossError(f"{name} does not hold after {within:,} blocks, at height {self.height:,}")
            self.mine()
        return self.height


def _check_within(within: int) -> None:
    if within < 1:
        raise Rejection(RejectionReason.INVALID_DATA, f"within = {within}: at least one block", within=within)
