"""Vesting: equal instalments, every one of them scheduled on the first day, at the deployer's expense.

An actor may name the sender of the running transaction as the payer of a timer. That is the deployer during the
deployment, and nobody but the actor itself during a fire. So all timers are scheduled in the deployment. The fires cost
the actor nothing, and every unit that it holds reaches the beneficiary.

Deploy with ``init`` and JSON: {"beneficiary": "0x..", "instalment": base units, "count": 4, "every": blocks}.
"""

import json

import pvm_host

GAS_LIMIT = 40_000


class Vesting:
    def init(self, payload):
        terms = json.loads(payload)
        terms["start"] = pvm_host.block_height()
        pvm_host.set_state(b"terms", json.dumps(terms).encode())
        for number in range(1, terms["count"] + 1):
            # A timer lives 2,592,000 blocks at most: a longer plan needs a timer that schedules the next stretch.
            timer_id = pvm_host.schedule_timer_ex(
                terms["start"] + number * terms["every"], b"%d" % number, fee_payer=self.deployer, gas_limit=GAS_LIMIT
            )
            pvm_host.set_state(b"open/%d" % number, timer_id)

    # trailboss: ignore[TB005] whoever calls, an instalment whose time has come is paid once
    def handle_timer(self, payload):
        self._pay_out(int(payload), "vested")

    def claim(self, payload):
        """Anybody may push out an instalment whose time has come, should its timer have ended without paying."""
        self._pay_out(int(payload), "claimed")

    def revoke(self, payload):
        """The deployer takes back what has not vested yet."""
        if pvm_host.context()["sender"] != self.deployer:
            raise ValueError("only the deployer may revoke")
        terms = json.loads(pvm_host.get_state(b"terms"))
        elapsed = (pvm_host.block_height() - terms["start"]) // terms["every"]
        # trailboss: ignore[TB006] no more instalments than one deployment could pay for
        for number in range(elapsed + 1, terms["count"] + 1):
            slot = b"open/%d" % number
            timer_id = pvm_host.get_state(slot)
            if timer_id is None:
                raise ValueError("the plan is revoked already")
            pvm_host.cancel_timer(timer_id)
            pvm_host.delete_state(slot)
            pvm_host.transfer_balance(self.deployer, terms["instalment"])

    def _pay_out(self, number, why):
        terms = json.loads(pvm_host.get_state(b"terms"))
        slot = b"open/%d" % number
        timer_id = pvm_host.get_state(slot)
        if timer_id is None:
            raise ValueError("instalment %d is not open" % number)
        if pvm_host.block_height() < terms["start"] + number * terms["every"]:
            raise ValueError("instalment %d has not vested" % number)
        # Cancelling a timer that is gone, such as the one that fires just now, does nothing.
        pvm_host.cancel_timer(timer_id)
        pvm_host.delete_state(slot)
        pvm_host.transfer_balance(bytes.fromhex(terms["beneficiary"][2:]), terms["instalment"])
        pvm_host.emit_event(why, json.dumps({"instalment": number}).encode())
