"""What the scenarios share: an actor that does what its payload says, and short ways to drive and read a chain."""

import json
from typing import Any

from trailboss.primitives.octets import Address
from trailboss.testing import ActorHandle, LocalChain, TestAccount
from trailboss.views.records import Event, Receipt

CBY = 10**9
BASEFEE = 10_000
FIRE_CELLS = 550_000
FIRE_CYCLES = 550_000
FRAME_BASE = 10_000
INDEX_CELLS = 40
FUNDS = 1_000 * CBY

PUPPET = '''
"""Does what its payload says, one step after another, and returns what the steps returned, as JSON."""

import json

HOST = {
    "schedule_timer": pvm_host.schedule_timer,
    "schedule_timer_ex": pvm_host.schedule_timer_ex,
    "extend_timer": pvm_host.extend_timer,
    "cancel_timer": pvm_host.cancel_timer,
    "get_state": pvm_host.get_state,
    "set_state": pvm_host.set_state,
    "delete_state": pvm_host.delete_state,
    "emit_event": pvm_host.emit_event,
    "send_message": pvm_host.send_message,
    "call_actor": pvm_host.call_actor,
    "transfer_balance": pvm_host.transfer_balance,
    "randomness": pvm_host.randomness,
}


def perform(payload):
    return json.dumps([show(act(step)) for step in read(json.loads(payload))]).encode()


def handle_timer(payload):
    fires = int(pvm_host.get_state(b"fires") or b"0") + 1
    pvm_host.set_state(b"fires", str(fires).encode())
    pvm_host.set_state(b"payload", payload)
    if payload[:1] == b"[":
        return perform(payload)


def handle_message(payload):
    messages = int(pvm_host.get_state(b"messages") or b"0") + 1
    pvm_host.set_state(b"messages", str(messages).encode())
    if payload[:1] == b"[":
        return perform(payload)


def act(step):
    name, arguments, keywords = step
    if name == "attempt":
        try:
            return act(arguments[0])
        except pvm_host.HostError as error:
            return [error.code, error.name]
    if name == "raise":
        raise ValueError(arguments[0])
    if name == "spin":
        while True:
            pass
    return HOST[name](*arguments, **keywords)


def read(item):
    if isinstance(item, list):
        return [read(one) for one in item]
    if isinstance(item, dict):
        return bytes.fromhex(item["$"]) if "$" in item else {name: read(one) for name, one in item.items()}
    return item


def show(item):
    return {"$": item.hex()} if isinstance(item, bytes) else item
'''


def step(name: str, *arguments: Any, **keywords: Any) -> list[Any]:
    """Return one step of a puppet's script: a host call by name, or ``attempt``, ``raise``, ``spin``."""
    return [name, _written(list(arguments)), _written(keywords)]


def script(*steps: list[Any]) -> bytes:
    """Return the payload that makes a puppet take the steps."""
    return json.dumps(list(steps), separators=(",", ":")).encode()


def deploy_puppet(chain: LocalChain, sender: TestAccount | None = None, value: int = FUNDS) -> ActorHandle:
    """Deploy a puppet, from the first account unless told otherwise."""
    return chain.deploy(PUPPET, sender=sender or chain.accounts[0], value=value)


def perform(actor: ActorHandle, *steps: list[Any], sender: TestAccount | None = None, **options: Any) -> Receipt:
    """Make a puppet take steps in a transaction, from the first account unless told otherwise."""
    return actor.call("perform", script(*steps), sender=sender or actor.chain.accounts[0], **options)


def answers(receipt: Receipt) -> list[Any]:
    """Return what a puppet's steps returned."""
    assert receipt.ok, receipt.error
    return [bytes.fromhex(item["$"]) if isinstance(item, dict) else item for item in json.loads(receipt.return_value)]


def schedule(
    actor: ActorHandle, height: int, payload: bytes = b"", sender: TestAccount | None = None, **keywords: Any
) -> bytes:
    """Schedule one timer of a puppet in a block of its own and return its id."""
    call = "schedule_timer_ex" if keywords else "schedule_timer"
    (timer_id,) = answers(perform(actor, step(call, height, payload, **keywords), sender=sender))
    return timer_id


def fires(actor: ActorHandle) -> int:
    """Return how many fires of a puppet have kept their writes."""
    return int(actor.storage.get(b"fires", b"0"))


def max_cost(gas_limit: int = FIRE_CYCLES, cells: int = FIRE_CELLS, basefee: int = BASEFEE) -> int:
    """Return what a fire is pre-charged while both basefees are the given one."""
    return gas_limit * basefee + cells * basefee


def events_about(chain: LocalChain, timer_id: bytes) -> list[str]:
    """Return the names of all events about a timer, oldest first."""
    return [event.name for event in chain.events() if event.timer_id == timer_id]


def only_event(chain: LocalChain, name: str) -> Event:
    """Return the one event of that name; there must be exactly one."""
    (event,) = chain.events(name)
    return event


def fired_ids(chain: LocalChain, since: int = 0) -> list[bytes]:
    """Return the ids of the timers that fired, in the order of their fires."""
    return [receipt.timer_id for receipt in chain.receipts(since=since) if receipt.timer_id is not None]


def totals(chain: LocalChain) -> tuple[int, int, int, int, int]:
    """Return scheduled, fired, unfunded, expired and cancelled over the chain's whole life."""
    counts = chain.chain.totals()
    return counts.scheduled, counts.fired, counts.unfunded, counts.expired, counts.cancelled


def assert_refused_call(receipt: Receipt, code: int, slug: str, *words: str) -> None:
    """Assert that a transaction reverted with a host call's refusal, which names all the given words."""
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (code, slug)
    for word in words:
        assert word in receipt.error.what, receipt.error.what


def world(chain: LocalChain, without: tuple[Address, ...] = ()) -> dict[str, Any]:
    """Return everything that a transaction may change, but for its fee payer's account, the proposer's and the sums."""
    left_out = {*without, chain.proposer}
    return {
        "accounts": {key: account for key, account in chain.chain.accounts() if key not in left_out},
        "timers": chain.timers(),
        "totals": totals(chain),
        "storage": {key: chain.chain.storage(key) for key, _ in chain.chain.accounts()},
        "queue": chain.chain.queue.statistics(),
    }


def _written(item: Any) -> Any:
    if isinstance(item, bytes):
        return {"$": item.hex()}
    if isinstance(item, list):
        return [_written(one) for one in item]
    if isinstance(item, dict):
        return {name: _written(one) for name, one in item.items()}
    return item
