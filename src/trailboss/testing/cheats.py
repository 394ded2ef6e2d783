"""Interference with a local chain, for tests alone."""

from trailboss.chain import development
from trailboss.model.transactions import SetBalance
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import Party, address_of_party
from trailboss.views import Receipt


class Cheats(BaseChain):
    """Calls that no public chain has.

    Each is a transaction of the deployer, in a block of its own or in the open one, and raises `RevertedError` if the
    chain refuses it, `Rejection` (``NOT_FOUND``) if there is no such timer.
    """

    def set_balance(self, party: Party, amount: int) -> Receipt:
        """Set a balance, base units, and the supply with it; not of a system actor or the deployer. Decision: D-69."""
        return self.system(SetBalance(address_of_party(party), amount), check=True)

    def hold(self, timer_id: bytes, until: int | None = None) -> Receipt:
        """Postpone a timer to another height; None for the last one at which it may fire.

        Refused for a state watch, a timer that is due (in the auction: that the next block runs), and a height that is
        past or beyond the timer's expiry.
        """
        return self.system(development.draft_hold(self.chain, timer_id, until), check=True)

    def force(self, timer_id: bytes) -> Receipt:
        """Make a timer due at the end of the block that this builds, in the auction of the next; refused as `hold` is.

        It runs as any due timer does: it may have to wait, or its payer may not be able to pay.
        """
        return self.system(development.draft_force(self.chain, timer_id), check=True)

    def drop(self, timer_id: bytes) -> Receipt:
        """Remove a timer without running it, due or not; its entries in Globalbox's mailbox still run."""
        return self.system(development.draft_drop(self.chain, timer_id), check=True)
