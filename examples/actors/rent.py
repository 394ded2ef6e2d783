"""Rent: a lease that collects every month, tries again when the tenant is short, and never forgets a month.

`every` keeps the schedule: the months stay on their grid however late a fire comes, a month that cannot be paid is
tried twice more, and one that fails for good is counted and does not end the lease. The tenant pays into the lease;
the landlord gets a month's rent out of it. Arrears stay arrears: what the schedule has failed or missed is owed.

Deploy with ``init`` and JSON {"landlord": "0x..", "rent": base units, "month": blocks}.
"""

import json

import pvm_host

from trailboss.sdk import dispatch, every, pause, recurring_timer, resume, stop

GAS_LIMIT = 100_000


class Rent:
    def init(self, payload):
        terms = json.loads(payload)
        pvm_host.set_state(b"landlord", bytes.fromhex(terms["landlord"][2:]))
        pvm_host.set_state(b"rent", b"%d" % terms["rent"])
        # Every overdue month is collected by itself: a lease does not forgive a halt of the chain.
        every("collect", terms["month"], catch_up="all", overlap="queue", attempts=3, backoff=2, gas_limit=GAS_LIMIT)

    def handle_timer(self, payload):
        dispatch(payload)

    def collect(self):
        # It runs in a frame of its own: if the transfer is refused, only this frame is rolled back.
        if pvm_host.context()["sender"] != self.address:
            raise ValueError("only the actor's own timer collects")
        rent = int(pvm_host.get_state(b"rent"))
        pvm_host.transfer_balance(pvm_host.get_state(b"landlord"), rent)
        pvm_host.emit_event("collected", b"%d" % rent)

    def suspend(self):
        """Stop collecting for a while; only the landlord may."""
        self._check_landlord()
        pause("collect")

    def go_on(self):
        self._check_landlord()
        resume("collect")

    def end(self):
        """End the lease; only the landlord may."""
        self._check_landlord()
        ended = _there(stop("collect"))
        return json.dumps({"paid": ended.ok, "owed": ended.failed + ended.missed})

    def account(self):
        """Say how the lease stands; anybody may ask."""
        lease = _there(recurring_timer("collect"))
        return json.dumps({"paid": lease.ok, "owed": lease.failed + lease.missed, "next": lease.slot})

    def _check_landlord(self):
        if pvm_host.context()["sender"] != pvm_host.get_state(b"landlord"):
            raise ValueError("only the landlord may")


def _there(lease):
    if lease is None:
        raise ValueError("the lease has ended")
    return lease
