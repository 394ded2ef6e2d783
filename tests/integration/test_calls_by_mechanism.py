"""Which host calls about timers an actor has: all calls under all mechanisms, and the errors that Globalbox names."""

import json
from typing import Any

import pytest

from trailboss.codec.canonical import decode_canonical
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.model import calls
from trailboss.testing import ActorHandle, LocalChain
from trailboss.vm.timer_calls import TIMER_CALLS

CBY = 10**9

PROBE = """
HERE = pvm_host.self_address
NOW = pvm_host.block_height
GONE = bytes(32)
CALLS = {
    "schedule_timer": lambda: pvm_host.schedule_timer(NOW() + 50, b""),
    "schedule_timer_ex": lambda: pvm_host.schedule_timer_ex(NOW() + 50, b"", b"", 0, 0, 0),
    "extend_timer": lambda: pvm_host.extend_timer(GONE, NOW() + 50),
    "cancel_timer": lambda: pvm_host.cancel_timer(GONE),
    "set_gas_bidding_agent": lambda: pvm_host.set_gas_bidding_agent(HERE()),
    "timer_lane": lambda: pvm_host.timer_lane(),
    "set_timeout, auction": lambda: pvm_host.set_timeout(NOW() + 50, b"", HERE(), None),
    "set_timeout, globalbox": lambda: pvm_host.set_timeout(HERE(), NOW() + 50, b"", None),
    "set_state_watch": lambda: pvm_host.set_state_watch(HERE(), [HERE() + b"slot"], b"", None),
    "update_timer": lambda: pvm_host.update_timer(HERE(), GONE, b"new"),
    "cancel_timer, globalbox": lambda: pvm_host.cancel_timer(HERE(), GONE),
}


def probe(payload):
    try:
        return ["had", shown(CALLS[payload.decode()]())]
    except pvm_host.HostError as error:
        return ["refused", error.name, error.code, str(error)]


def shown(answer):
    return answer if type(answer) in (bytes, bool) else None


def handle_timer(payload):
    pass
"""
FORMS = {
    "schedule_timer": calls.SCHEDULE,
    "schedule_timer_ex": calls.SCHEDULE_EX,
    "extend_timer": calls.EXTEND,
    "cancel_timer": calls.CANCEL,
    "set_gas_bidding_agent": calls.SET_AGENT,
    "set_timeout, auction": calls.SET_TIMEOUT_AUCTION,
    "set_timeout, globalbox": calls.SET_TIMEOUT_GLOBALBOX,
    "set_state_watch": calls.SET_STATE_WATCH,
    "update_timer": calls.UPDATE,
    "cancel_timer, globalbox": calls.CANCEL_GLOBALBOX,
}
LISTED = {
    "fifo": [calls.CANCEL, calls.EXTEND, calls.SCHEDULE, calls.SET_AGENT],
    "lane": [calls.CANCEL, calls.EXTEND, calls.SCHEDULE, calls.SET_AGENT],
    "auction": [calls.CANCEL, calls.SET_TIMEOUT_AUCTION],
    "globalbox": [
        calls.CANCEL_GLOBALBOX,
        calls.CANCEL,
        calls.SET_STATE_WATCH,
        calls.SET_TIMEOUT_GLOBALBOX,
        calls.UPDATE,
    ],
}


def deploy(chain: LocalChain, source: str = PROBE) -> ActorHandle:
    return chain.deploy(source, sender=chain.accounts[0], value=1_000 * CBY)


def ask(actor: ActorHandle, handler: str, payload: bytes = b"") -> Any:
    receipt = actor.call(handler, payload, sender=actor.chain.accounts[0], check=True)
    return decode_canonical(receipt.return_value)


def test_table_has_every_call_and_every_mechanism() -> None:
    """A new one of either has to come into it."""
    assert sorted({name.partition(",")[0] for name in FORMS}) == sorted(TIMER_CALLS.keys() - {"timer_lane"})
    assert sorted(LISTED) == sorted(MECHANISMS)


@pytest.mark.spec("A-01", "G-04")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_actor_has_the_calls_of_the_mechanism_and_no_other(mechanism: str) -> None:
    """One that it does not have is refused by a HostError that names the mechanism and its calls; nothing is set."""
    had = ", ".join(LISTED[mechanism])
    with LocalChain(mechanism=mechanism) as chain:
        actor = deploy(chain)
        for name, form in FORMS.items():
            before = len(chain.timers())
            answer = ask(actor, "probe", name.encode())
            if calls.is_had(form, set(LISTED[mechanism])):
                # Of a timer that never was, Globalbox says so.
                assert answer[0] == "had" or answer[1] == "ERR_TIMER_NOT_FOUND", (name, answer)
                continue
            what = f"{form} is not a call of mechanism {mechanism}, whose calls are: {had}"
            assert answer == ["refused", "unsupported", 1209, what]
            assert len(chain.timers()) == before
        # What only reads is there under every mechanism.
        assert ask(actor, "probe", b"timer_lane") == ["had", None]


@pytest.mark.parametrize("mechanism", ["auction", "globalbox"])
def test_receipt_says_what_the_mechanism_lacks_when_nobody_catches_it(mechanism: str) -> None:
    """As when an actor that was written for FIFO is deployed on another chain."""
    with LocalChain(mechanism=mechanism) as chain:
        actor = deploy(chain, "def go(p):\n    pvm_host.schedule_timer(pvm_host.block_height() + 5, b'')\n")
        receipt = actor.call("go", b"", sender=chain.accounts[0])
        assert receipt.error is not None
        assert (receipt.error.code, receipt.error.slug) == (1209, "unsupported")
        assert f"is not a call of mechanism {mechanism}" in receipt.error.what
        assert receipt.error.context["traceback"].startswith("line 2, in go")


@pytest.mark.parametrize("mechanism", ["auction", "globalbox"])
def test_sdk_of_the_public_chain_is_refused_in_the_same_words(mechanism: str) -> None:
    """`cowboy_sdk.timer` calls schedule_timer_ex."""
    source = (
        "from cowboy_sdk import timer\n"
        "def go(p):\n    timer.schedule(pvm_host.block_height() + 5, handler='go', gas_limit=50_000)\n"
    )
    with LocalChain(mechanism=mechanism) as chain:
        receipt = deploy(chain, source).call("go", b"", sender=chain.accounts[0])
        assert receipt.error is not None
        assert receipt.error.slug == "unsupported"
        assert f"mechanism {mechanism}" in receipt.error.what


NAMED = """
import json

HERE = pvm_host.self_address()
NOW = pvm_host.block_height()
KEY = HERE + b"slot"
NOBODY = bytes(19) + b"\\x77"


def attempt(payload):
    try:
        perform(*json.loads(payload))
    except pvm_host.HostError as error:
        return [error.name, error.code]
    return ["accepted", 0]


def perform(name, changes):
    given = {
        "set_timeout": {"target": HERE, "due_height": NOW + 5, "payload": b""},
        "set_state_watch": {"target": HERE, "watch_keys": [KEY], "payload": b""},
        "update_timer": {"target": HERE, "timer_id": bytes(32)},
        "cancel_timer": {"target": HERE, "timer_id": bytes(32)},
    }[name]
    for key, value in changes.items():
        given[key] = VALUES.get(value, value) if type(value) is str else value
    HOST[name](**given)


VALUES = {
    "now": NOW,
    "too late": NOW + 2_592_001,
    "nobody": NOBODY,
    "no keys": [],
    "short key": [HERE[:19]],
    "long key": [bytes(85)],
    "twice": [KEY, KEY],
    "many keys": [HERE + bytes([number]) for number in range(17)],
    "large": bytes(65_537),
    "long nonce": bytes(65),
    "no id": b"",
    "long id": bytes(257),
}
HOST = {
    "set_timeout": pvm_host.set_timeout,
    "set_state_watch": pvm_host.set_state_watch,
    "update_timer": pvm_host.update_timer,
    "cancel_timer": pvm_host.cancel_timer,
}


def handle_timer(payload):
    pass
"""
INVALID = "ERR_INVALID_PARAM"
REFUSALS = [
    ("set_timeout", {"due_height": "now"}, INVALID),
    ("set_timeout", {"expiry_height": "now"}, INVALID),
    ("set_timeout", {"expiry_height": "too late"}, INVALID),
    ("set_timeout", {"payload": "large"}, INVALID),
    ("set_timeout", {"gas_limit": 9_999}, INVALID),
    ("set_timeout", {"gas_limit": 550_001}, INVALID),
    ("set_timeout", {"client_nonce": "long nonce"}, INVALID),
    ("set_state_watch", {"watch_keys": "no keys"}, INVALID),
    ("set_state_watch", {"watch_keys": "short key"}, INVALID),
    ("set_state_watch", {"watch_keys": "long key"}, INVALID),
    ("set_state_watch", {"watch_keys": "twice"}, INVALID),
    ("set_state_watch", {"watch_keys": "many keys"}, INVALID),
    ("update_timer", {"timer_id": "no id"}, INVALID),
    ("cancel_timer", {"timer_id": "long id"}, INVALID),
    ("set_timeout", {"target": "nobody"}, "ERR_TARGET_NOT_FOUND"),
    ("set_state_watch", {"target": "nobody"}, "ERR_TARGET_NOT_FOUND"),
    ("update_timer", {"bid_fp": 5}, "ERR_TIMER_NOT_FOUND"),
    ("cancel_timer", {}, "ERR_TIMER_NOT_FOUND"),
    ("set_timeout", {"due_height": 1.5}, "ERR_UNSUPPORTED_TIMER_TYPE"),
    ("set_timeout", {"due_height": 1_700_000_000_000}, "ERR_UNSUPPORTED_TIMER_TYPE"),
    ("set_state_watch", {"expiry_height": 1_700_000_000_000}, "ERR_UNSUPPORTED_TIMER_TYPE"),
]
CODES = {
    INVALID: 1511,
    "ERR_TARGET_NOT_FOUND": 1512,
    "ERR_TIMER_NOT_FOUND": 1513,
    "ERR_QUOTA_EXCEEDED": 1514,
    "ERR_UNSUPPORTED_TIMER_TYPE": 1515,
}


@pytest.mark.spec("G-04")
def test_globalbox_refuses_by_the_names_of_its_text() -> None:
    """Every refusal is a HostError whose name is the code, and sets nothing; the bounds themselves are accepted."""
    with LocalChain(mechanism="globalbox") as chain:
        actor = deploy(chain, NAMED)
        for name, changes, slug in REFUSALS:
            answer = ask(actor, "attempt", json.dumps([name, changes]).encode())
            assert answer == [slug, CODES[slug]], (name, changes)
        assert chain.timers() == []
        for name in ("set_timeout", "set_state_watch"):
            assert ask(actor, "attempt", json.dumps([name, {}]).encode()) == ["accepted", 0]


@pytest.mark.spec("G-04")
def test_globalbox_refuses_one_timer_too_many() -> None:
    """Of one owner, whatever its targets."""
    with LocalChain(mechanism="globalbox", params={"globalbox.max_timers_per_owner": 2}) as chain:
        actor = deploy(chain, NAMED)
        answers = [ask(actor, "attempt", b'["set_timeout", {}]') for _ in range(3)]
        assert answers == [["accepted", 0], ["accepted", 0], ["ERR_QUOTA_EXCEEDED", 1514]]
        assert len(chain.timers()) == 2
