"""What the suite shares: an actor that sets timers by the mechanism's own call, and short ways to drive and read it."""

from collections import Counter
from pathlib import Path
from typing import Final

from tests.conformance.mechanisms import lifo
from trailboss.model.events import TIMER_ENDINGS
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Receipt

MECHANISMS: Final = ("fifo", "lane", "auction", "globalbox", lifo.NAME)
CBY: Final = 10**9
FUNDS: Final = 1_000 * CBY
GAS: Final = 100_000
BUDGET: Final = 300_000
"""Cycles of all fires of one block."""
TIMERS_MAX: Final = 40
PAYLOAD_MAX: Final = 64

_CIP5 = "pvm_host.schedule_timer_ex(height, payload, gas_limit=gas_limit)"
CALLS: Final = {
    "fifo": _CIP5,
    "lane": _CIP5,
    "auction": "pvm_host.set_timeout(height, payload, pvm_host.self_address(), gas_limit)",
    "globalbox": "pvm_host.set_timeout(pvm_host.self_address(), height, payload, gas_limit)",
    lifo.NAME: _CIP5,
}
"""How each mechanism's actors set a timer that calls themselves at a height."""

SOURCE = '''
"""Sets timers and notes which have run. The first sign of a timer's label says what its handler does besides."""


def set_timers(payload):
    for item in payload.split():
        label, height, gas_limit = item.split(b":")
        _set(label, int(height), int(gas_limit))


def set_and_fail(payload):
    set_timers(payload)
    raise ValueError("all of it is taken back")


def drop(payload):
    pvm_host.cancel_timer(payload)


def drop_and_fail(payload):
    pvm_host.cancel_timer(payload)
    raise ValueError("all of it is taken back")


def get_gas_bid(payload):
    return {"max_fee_per_cycle": 10**6, "tip_per_cycle": 0}


def handle_timer(label):
    pvm_host.set_state(b"ran", (pvm_host.get_state(b"ran") or b"") + label + b" ")
    deed, name = label[:1], label[1:]
    if deed == b"!":
        pvm_host.transfer_balance(bytes(19) + b"\\x77", 1)
        raise ValueError("it fails")
    while deed == b"~":
        pass
    if deed == b">":
        _set(b">" + name[1:], pvm_host.block_height() + 1, 100_000) if name else None
    if deed == b"-":
        pvm_host.cancel_timer(pvm_host.get_state(b"id:" + name))


def _set(payload, height, gas_limit):
    timer_id = CALL
    pvm_host.set_state(b"id:" + payload, timer_id)
'''


def open_chain(mechanism: str, data_dir: Path | None = None) -> LocalChain:
    """Start a chain whose blocks have room for a few fires, with a calendar that wraps soon; or open it again."""
    params = {
        "timers.max_cycles_per_fire": GAS,
        "timers.lane_cycles_per_block": BUDGET,
        "timers.max_timers_per_actor": TIMERS_MAX,
        "timers.payload_bytes_max": PAYLOAD_MAX,
        "auction.budget_cycles": BUDGET,
        "globalbox.max_timers_per_owner": TIMERS_MAX,
        "globalbox.payload_bytes_max": PAYLOAD_MAX,
    }
    return LocalChain(mechanism=mechanism, preset="minimal", params=params, data_dir=data_dir)


def deploy_doer(chain: LocalChain, value: int = FUNDS, account: int = 0) -> ActorHandle:
    """Deploy an actor that sets timers by the call of the chain's mechanism."""
    source = SOURCE.replace("CALL", CALLS[chain.chain.mechanism.name])
    return chain.deploy(source, sender=chain.accounts[account], value=value)


def tell(actor: ActorHandle, handler: str, payload: bytes, account: int = 0) -> Receipt:
    """Call a handler in a transaction, in a block of its own or in the open one."""
    return actor.call(handler, payload, sender=actor.chain.accounts[account])


def set_timers(actor: ActorHandle, height: int, *labels: str, gas_limit: int = GAS) -> list[bytes]:
    """Set timers for one height, in a block of their own; return their ids."""
    receipt = tell(actor, "set_timers", wish(height, *labels, gas_limit=gas_limit))
    assert receipt.ok, receipt.error
    return [actor.storage[b"id:" + label.encode()] for label in labels]


def wish(height: int, *labels: str, gas_limit: int = GAS) -> bytes:
    """Return the payload that asks for timers."""
    return " ".join(f"{label}:{height}:{gas_limit}" for label in labels).encode()


def ran(actor: ActorHandle) -> list[str]:
    """Return the labels whose handlers have run and kept their writes, in order."""
    return actor.storage.get(b"ran", b"").decode().split()


def fires_of(chain: LocalChain, timer_id: bytes) -> list[Receipt]:
    """Return the receipts of a timer's fires."""
    return [receipt for receipt in chain.receipts(origin="timer") if receipt.timer_id == timer_id]


def ends_of(chain: LocalChain) -> dict[bytes, list[str]]:
    """Return how each timer has ended, by the events that say so."""
    ends: dict[bytes, list[str]] = {}
    for event in chain.events():
        if event.name in TIMER_ENDINGS:
            ends.setdefault(bytes(event.timer_id), []).append(TIMER_ENDINGS[event.name])
    return ends


def check_sums(chain: LocalChain) -> None:
    """Check that nothing is lost: no base unit, and no timer. Decision: D-35."""
    chain.check_invariants()
    totals, live = chain.chain.totals(), len(chain.timers())
    ended = totals.fired + totals.unfunded + totals.expired + totals.cancelled
    assert totals.scheduled == ended + live
    assert chain.supply == chain.burned + sum(chain.balance(address) for address, _ in chain.chain.accounts())
    counted = Counter(end for ends in ends_of(chain).values() for end in ends)
    told = {name: getattr(totals, name) for name in ("fired", "unfunded", "expired", "cancelled")}
    assert counted == {name: count for name, count in told.items() if count}


def bustle(chain: LocalChain, blocks: int = 12) -> list[ActorHandle]:
    """Have three actors set timers that run, fail, loop, set others, cancel others, and want for room and money."""
    actors = [deploy_doer(chain), deploy_doer(chain, account=1), deploy_doer(chain, value=3 * CBY, account=2)]
    start = chain.height + 4
    for number, actor in enumerate(actors):
        account = number
        with chain.one_block():
            for offset in range(3):
                labels = [f"{sign}{number}{offset}" for sign in ("a", "b", "!", "~", ">>")]
                tell(actor, "set_timers", wish(start + offset, *labels), account)
            tell(actor, "set_timers", wish(start + 1, f"-b{number}2"), account)
            tell(actor, "set_and_fail", wish(start, "c"), account)
    doomed = actors[0].storage[b"id:a02"]
    tell(actors[0], "drop", doomed)
    chain.mine(blocks)
    return actors


def roots(chain: LocalChain) -> list[bytes]:
    """Return the hashes of all blocks."""
    return [bytes(chain.block(height).hash) for height in range(chain.height + 1)]
