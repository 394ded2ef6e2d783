"""What a test does to a local chain that nobody could do to another: money out of nothing, timers out of their time."""

from abc import ABC

from trailboss.chain.development import draft_drop, draft_force, draft_hold
from trailboss.model.transactions import SetBalance
from trailboss.testing.local_timers import LocalTimers
from trailboss.testing.parties import Party, TestAccount, address_of_party
from trailboss.views import Receipt


class LocalFaults(LocalTimers, ABC):
    """The part of a `LocalChain` that interferes. Each call is a transaction of the deployer, which the chain records.

    It stands in a block of its own, or in the open one; a block of its own is built as any other, and due timers run in
    it. Decision: D-69.

    Attributes:
        deployer: Who may send system instructions.
    """

    deployer: TestAccount

    def set_balance(self, party: Party, amount: int) -> Receipt:
        """Set what an account or an actor holds; the supply moves with it.

        Args:
            party: Whose; the account is made if it is not there.
            amount: Base units.

        Raises:
            RevertedError: If the chain refuses it: for a system actor, and for the deployer itself, which pays for it.
        """
        return self.send(SetBalance(address_of_party(party), amount), sender=self.deployer, check=True)

    def hold(self, timer_id: bytes, until: int | None = None) -> Receipt:
        """Hold a timer back: it is due at another height instead.

        Args:
            timer_id: Of a live timer that is to come; in the auction, where a block's timers run before its
                transactions, one that the next block runs is not.
            until: The height; None for the last one at which it may fire.

        Raises:
            RevertedError: If the chain refuses it: for a state watch, a timer that is due, or a height that is past or
                beyond the timer's expiry.
            Rejection: ``NOT_FOUND`` if there is no such timer.
        """
        return self.send(draft_hold(self.chain, timer_id, until), sender=self.deployer, check=True)

    def force(self, timer_id: bytes) -> Receipt:
        """Make a timer due now: it runs at the end of the block that this builds; in the auction, in the one after it.

        It runs as any due timer does: it may have to wait, or its payer may not be able to pay.

        Args:
            timer_id: Of a live timer, as `hold` takes it.

        Raises:
            RevertedError: As `hold`.
            Rejection: ``NOT_FOUND`` if there is no such timer.
        """
        return self.send(draft_force(self.chain, timer_id), sender=self.deployer, check=True)

    def drop(self, timer_id: bytes) -> Receipt:
        """Take a timer away without running it, due or not.

        Args:
            timer_id: Of a live timer; what Globalbox has put into the mailbox runs all the same.

        Raises:
            RevertedError: If the chain refuses it.
            Rejection: ``NOT_FOUND`` if there is no such timer.
        """
        return self.send(draft_drop(self.chain, timer_id), sender=self.deployer, check=True)
