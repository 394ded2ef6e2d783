"""Retry with backoff: calls another actor until it answers, waiting twice as long after every failure.

All that an attempt has to know travels in its timer's payload, so the actor needs no storage, and any number of
deliveries can be under way. A failing callee must not fail the attempt itself, or the next one would be rolled back
with it: the call is caught, and it gets a cycles limit of its own, so that a callee that never returns leaves enough
to schedule the next attempt.
"""

import base64
import json

import pvm_host

FIRST_DELAY = 2  # blocks
ATTEMPTS_MAX = 4
GAS_LIMIT = 150_000
CALL_CYCLES = 80_000


class Courier:
    def deliver(self, payload):
        """Start a delivery; JSON {"target": "0x..", "handler": name, "payload": text}. Only the deployer may."""
        if pvm_host.context()["sender"] != self.deployer:
            raise ValueError("only the deployer may send this courier")
        _schedule_attempt(json.loads(payload), 1, 1)

    def attempt(self, payload):
        if pvm_host.context()["sender"] != self.address:
            raise ValueError("only the actor's own timer may attempt")
        job = json.loads(payload)
        number = job["attempt"]
        try:
            target = bytes.fromhex(job["target"][2:])
            pvm_host.call_actor(target, job["handler"], job["payload"].encode(), CALL_CYCLES, 0)
        except pvm_host.HostError as error:
            if number == ATTEMPTS_MAX:
                _tell("delivery.failed", number, error.name)
            else:
                _tell("delivery.delayed", number, error.name)
                _schedule_attempt(job, number + 1, FIRST_DELAY * 2 ** (number - 1))
        else:
            _tell("delivery.done", number, "")


def _schedule_attempt(job, number, delay):
    job["attempt"] = number
    # The envelope of CIP-5: this fire calls `attempt` with the inner payload, not `handle_timer`.
    inner = base64.b64encode(json.dumps(job).encode()).decode()
    envelope = json.dumps({"_handler": "attempt", "_payload": inner}).encode()
    pvm_host.schedule_timer_ex(pvm_host.block_height() + delay, envelope, gas_limit=GAS_LIMIT)


def _tell(name, number, why):
    pvm_host.emit_event(name, json.dumps({"attempt": number, "why": why}).encode())
