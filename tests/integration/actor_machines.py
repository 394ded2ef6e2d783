"""Machines of four example actors, each with what must stay true of it, and a bug to plant into its source."""

import json
from typing import NamedTuple

from cowboy_sdk import codec
from hypothesis import strategies as st
from hypothesis.stateful import invariant

from trailboss.chain.development import account_name, development_account
from trailboss.testing import CBY, ActorMachine, strategies

SELLER = str(development_account(account_name(1)).address)
MERCHANT = b"\x4d" * 20
PRICE = 2 * CBY


class SubscriptionMachine(ActorMachine):
    source = "examples/actors/subscription.py"
    value = 100 * CBY
    init_payload = codec.encode({"merchant": MERCHANT, "price": PRICE, "every": 10, "mandate": 35})
    handlers = {
        "renew": strategies.cbor_payloads(st.integers(0, 60)),
        "close": strategies.cbor_payloads(strategies.amounts(100 * CBY)),
        "charge": st.just(b""),
    }

    @invariant()
    def one_charge_waits_at_most(self):
        assert len(self.actor.timers()) <= 1

    @invariant()
    def merchant_gets_the_price_of_each_charge(self):
        assert self.chain.balance(MERCHANT) == PRICE * len(self.chain.events("charged"))


class EscrowMachine(ActorMachine):
    source = "examples/actors/escrow.py"
    value = 50 * CBY
    init_payload = json.dumps({"seller": SELLER, "price": 50 * CBY, "blocks": 30}).encode()
    handlers = dict.fromkeys(("handle_timer", "confirm", "give_back", "dispute"), st.just(b""))

    @invariant()
    def deal_is_settled_once(self):
        settled = [event.data for event in self.chain.events("escrow.settled")]
        assert len(settled) <= 1, settled


class VestingMachine(ActorMachine):
    source = "examples/actors/vesting.py"
    value = 20 * CBY
    init_payload = json.dumps({"beneficiary": SELLER, "instalment": 5 * CBY, "count": 4, "every": 10}).encode()
    weights = {"call_claim": 14, "call_revoke": 1, "pass_to_fire": 8}
    handlers = {"claim": st.sampled_from((b"1", b"2", b"3", b"4")), "revoke": st.just(b"")}

    @property
    def terms(self):
        return json.loads(self.actor.storage[b"terms"])

    @invariant()
    def nothing_is_paid_before_its_time(self):
        terms = self.terms
        for event in (*self.chain.events("vested"), *self.chain.events("claimed")):
            number = json.loads(event.raw)["instalment"]
            assert event.block_height >= terms["start"] + number * terms["every"]

    @invariant()
    def each_instalment_is_paid_once(self):
        events = (*self.chain.events("vested"), *self.chain.events("claimed"))
        paid = [json.loads(event.raw)["instalment"] for event in events]
        assert len(paid) == len(set(paid))

    @invariant()
    def no_timer_fires_in_vain(self):
        reasons = [fire.error.what for fire in self.chain.receipts(origin="timer", actor=self.actor) if not fire.ok]
        assert not any("is not open" in reason for reason in reasons), reasons


class CourierMachine(ActorMachine):
    source = "examples/actors/retry_backoff.py"
    value = 500 * CBY
    handlers = {
        "deliver": strategies.json_payloads(
            st.fixed_dictionaries({"target": st.just(SELLER), "handler": st.just("take"), "payload": st.just("")})
        )
    }

    @invariant()
    def courier_gives_up_after_four_attempts(self):
        deliveries = sum(receipt.origin == "transaction" and receipt.ok for receipt in self._made())
        attempts = [event for event in self.chain.events() if event.name.startswith("delivery.")]
        assert len(attempts) <= 4 * deliveries

    def _made(self):
        return self.chain.receipts(actor=self.actor)[1:]


class Plant(NamedTuple):
    """A bug: in which machine's actor, the line as it is, and as it becomes."""

    machine: type[ActorMachine]
    sound: str
    planted: str


PLANTS = {
    "a renewal forgets the charge that is late": Plant(
        SubscriptionMachine,
        '        else:\n            runtime.cancel_timer(self.storage["next"])\n',
        "        else:\n",
    ),
    "the price is paid twice": Plant(
        EscrowMachine,
        'if pvm_host.get_state(b"settled") is not None:',
        'if pvm_host.get_state(b"settled") == how.encode():',
    ),
    "an instalment can be claimed a block early": Plant(
        VestingMachine,
        'if pvm_host.block_height() < terms["start"] + number * terms["every"]:',
        'if pvm_host.block_height() + 1 < terms["start"] + number * terms["every"]:',
    ),
    "a claim leaves the late timer": Plant(
        VestingMachine,
        "the one that fires just now, does nothing.\n        pvm_host.cancel_timer(timer_id)\n",
        "the one that fires just now, does nothing.\n",
    ),
    "the count of attempts is lost": Plant(
        CourierMachine,
        "_schedule_attempt(job, number + 1, FIRST_DELAY * 2 ** (number - 1))",
        "_schedule_attempt(job, number, FIRST_DELAY * 2 ** (number - 1))",
    ),
}
