"""Escrow: the price waits here, and goes to the seller when a deadline passes without a word from anybody.

One timer is the deadline. If the deal ends sooner, whoever ends it cancels the timer in the same transaction, so that
the money moves once and nobody pays for a fire that has nothing left to do. The buyer deploys; as the sender of that
transaction, the buyer may be named as the payer of the deadline.

Deploy with ``init`` and JSON: {"seller": "0x..", "price": base units, "blocks": 100}; fund the actor with the price.
"""

import json

import pvm_host

GAS_LIMIT = 40_000


class Escrow:
    def init(self, payload):
        deadline = pvm_host.block_height() + json.loads(payload)["blocks"]
        timer_id = pvm_host.schedule_timer_ex(deadline, b"", fee_payer=self.deployer, gas_limit=GAS_LIMIT)
        pvm_host.set_state(b"terms", payload)
        pvm_host.set_state(b"deadline", timer_id)

    def handle_timer(self, payload):
        """Nobody objected: the seller is paid."""
        self._settle(self.address, "released")

    def confirm(self, payload):
        """The buyer has the goods: the seller is paid at once."""
        self._settle(self.deployer, "confirmed")

    def give_back(self, payload):
        """The seller cannot deliver: the buyer is paid back."""
        self._settle(self._seller(), "returned")

    def dispute(self, payload):
        """The buyer objects: the deadline no longer decides, the seller can only give back, the buyer only confirm."""
        self._require(self.deployer, "dispute")
        pvm_host.cancel_timer(pvm_host.get_state(b"deadline"))

    def _settle(self, who, how):
        self._require(who, how)
        if pvm_host.get_state(b"settled") is not None:
            raise ValueError("the escrow is settled already")
        pvm_host.set_state(b"settled", how.encode())
        # In the fire itself the timer is gone already, and this does nothing.
        pvm_host.cancel_timer(pvm_host.get_state(b"deadline"))
        price = json.loads(pvm_host.get_state(b"terms"))["price"]
        pvm_host.transfer_balance(self.deployer if how == "returned" else self._seller(), price)
        pvm_host.emit_event("escrow.settled", json.dumps({"how": how}).encode())

    def _require(self, who, what):
        if pvm_host.context()["sender"] != who:
            raise ValueError("the sender may not say %r" % what)

    def _seller(self):
        return bytes.fromhex(json.loads(pvm_host.get_state(b"terms"))["seller"][2:])
