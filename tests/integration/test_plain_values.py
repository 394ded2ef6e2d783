"""What a program gets from the chain: values of Python's own types exactly, and nothing of the host's."""

import json

import pytest

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.testing import LocalChain
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED

CBY = 10**9
PLAIN = ["NoneType", "bool", "bytes", "dict", "int", "list", "str", "tuple"]

WALK = '''
"""Makes every host call, and returns by call the types of all that came back, or the error's."""

import json

HERE = pvm_host.self_address
NOW = pvm_host.block_height
GONE = bytes(32)
CALLS = {
    "context": lambda: pvm_host.context(),
    "current_block": lambda: pvm_host.current_block(),
    "block_height": lambda: pvm_host.block_height(),
    "runtime_config": lambda: pvm_host.runtime_config(),
    "self_address": lambda: pvm_host.self_address(),
    "actor_owner": lambda: pvm_host.actor_owner(),
    "gas_left": lambda: pvm_host.gas_left(),
    "charge_gas": lambda: pvm_host.charge_gas(1),
    "randomness": lambda: pvm_host.randomness(b"domain"),
    "keccak256": lambda: pvm_host.keccak256(b"data"),
    "verify_signature": lambda: pvm_host.verify_signature(2, bytes(32), b"", bytes(64)),
    "set_state": lambda: pvm_host.set_state(b"slot", b"value"),
    "get_state": lambda: pvm_host.get_state(b"slot"),
    "scan_state_prefix": lambda: pvm_host.scan_state_prefix(b"s", 5),
    "delete_state": lambda: pvm_host.delete_state(b"slot"),
    "set_reserved_state": lambda: pvm_host.set_reserved_state(b"__INITIALIZED__", b"1"),
    "delete_reserved_state": lambda: pvm_host.delete_reserved_state(b"__INITIALIZED__"),
    "schedule_timer": lambda: pvm_host.schedule_timer(NOW() + 50, b""),
    "schedule_timer_ex": lambda: pvm_host.schedule_timer_ex(NOW() + 50, b"", b"", 0, 0, 0),
    "extend_timer": lambda: pvm_host.extend_timer(GONE, NOW() + 50),
    "cancel_timer": lambda: pvm_host.cancel_timer(GONE),
    "set_gas_bidding_agent": lambda: pvm_host.set_gas_bidding_agent(HERE()),
    "timer_lane": lambda: pvm_host.timer_lane(),
    "set_timeout": lambda: pvm_host.set_timeout(NOW() + 50, b"", HERE(), None),
    "set_timeout, globalbox": lambda: pvm_host.set_timeout(HERE(), NOW() + 50, b"", None),
    "set_state_watch": lambda: pvm_host.set_state_watch(HERE(), [HERE() + b"slot"], b"", None),
    "update_timer": lambda: pvm_host.update_timer(HERE(), GONE, b"new"),
    "cancel_timer, globalbox": lambda: pvm_host.cancel_timer(HERE(), GONE),
    "emit_event": lambda: pvm_host.emit_event("name", b"data"),
    "create_deferred_tx": lambda: pvm_host.create_deferred_tx("deferred", b"hello"),
    "send_message": lambda: pvm_host.send_message(HERE(), b"hello"),
    "call_actor": lambda: pvm_host.call_actor(HERE(), "told", b"hello", 100_000),
    "transfer_balance": lambda: pvm_host.transfer_balance(HERE(), 1),
}


def walk(payload):
    CALLS["upgrade_self"] = lambda: pvm_host.upgrade_self(payload)
    found = {"": kinds([payload, pvm_host.context()["sender"]])}
    for name, call in CALLS.items():
        try:
            found[name] = kinds(call())
        except pvm_host.HostError as error:
            assert error.name in ("unsupported", "ERR_TIMER_NOT_FOUND"), str(error)
            found[name] = kinds([error.args, error.code, error.name, error.__context__, error.__cause__])
            assert not hasattr(error, "refusal") and not hasattr(error, "_vm_refusal")
    return json.dumps(found).encode()


def told(payload):
    return kinds(payload)[0] + kinds(pvm_host.context()["sender"])[0]


def kinds(value):
    if type(value) is dict:
        return [each for pair in value.items() for item in pair for each in kinds(item)] + ["dict"]
    if type(value) in (list, tuple):
        return [each for item in value for each in kinds(item)] + [type(value).__name__]
    return [type(value).__name__ if type(value).__module__ == "builtins" else str(type(value))]


def handle_message(payload):
    pvm_host.set_state(b"message", (kinds(payload)[0] + kinds(pvm_host.context()["sender"])[0]).encode())


def deferred(payload):
    pvm_host.set_state(b"deferred", (kinds(payload)[0] + kinds(pvm_host.context()["sender"])[0]).encode())


def handle_timer(payload):
    pvm_host.set_state(b"timer", (kinds(payload)[0] + kinds(pvm_host.context()["sender"])[0]).encode())
'''


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_every_host_call_answers_plain_values(mechanism):
    """Nothing of the host's own classes reaches a program, from whatever mechanism the chain has."""
    with LocalChain(mechanism=mechanism) as chain:
        actor = chain.deploy(WALK, sender=chain.accounts[0], value=1_000 * CBY, entitlements=["sys.upgrade"])
        receipt = actor.call("walk", WALK.encode(), sender=chain.accounts[0], check=True)
        found = json.loads(receipt.return_value)

        assert sorted({name.partition(",")[0] for name in found} - {""}) == sorted(HOST_CALLS.keys() - {*UNSUPPORTED})
        assert {kind for kinds in found.values() for kind in kinds} <= {*PLAIN}
        chain.mine(50)
        brought = {slot: value for slot, value in actor.storage.items() if slot in (b"message", b"timer", b"deferred")}
        assert brought == dict.fromkeys((b"message", b"timer", b"deferred"), b"bytesbytes")


AGENT = """
def get_gas_bid(context):
    if type(context) is not bytes or type(pvm_host.context()["sender"]) is not bytes:
        raise TypeError(str(type(context)) + str(type(pvm_host.context()["sender"])))
    raise ValueError("both are bytes")


def choose(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")


def handle_timer(payload):
    pass
"""


@pytest.mark.trailboss(mechanism="lane")
def test_agent_is_asked_with_plain_values(chain):
    """The question to a gas bidding agent brings bytes, from a sender of bytes."""
    actor = chain.deploy(AGENT, sender=chain.accounts[0], value=1_000 * CBY)
    actor.call("choose", sender=chain.accounts[0], check=True)
    chain.mine(2)

    assert ["both are bytes" in failure.what for failure in chain.decisions(chain.height).agent_failures] == [True]
