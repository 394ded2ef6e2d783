"""What the scenarios of the auction share: a bidder, its own agent by default, and short ways to drive and read it."""

from typing import Any

from trailboss.execution.auction.standings import find_actor
from trailboss.model.auction import AuctionActor
from trailboss.model.decisions import DecisionRecord, ExaminedTimer
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import Timer
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Event

CBY = 10**9
GAS = 100_000
CAP = 10**6

BIDDER = '''
"""Sets timers, bids for them itself unless told otherwise, and notes what ran."""


def arm(payload):
    agent = pvm_host.get_state(b"agent") or pvm_host.self_address()
    for item in payload.split():
        label, height, gas_limit = item.split(b":")
        timer_id = pvm_host.set_timeout(int(height), label, agent, int(gas_limit))
        pvm_host.set_state(b"id:" + label, timer_id)


def choose(payload):
    pvm_host.set_state(b"agent", payload)


def price(payload):
    pvm_host.set_state(b"bid", payload)


def note(payload):
    pvm_host.set_state(b"noted", payload)


def drop(payload):
    pvm_host.cancel_timer(pvm_host.get_state(b"id:" + payload))


def try_to_set(payload):
    height, size, agent, gas_limit = payload.split()
    try:
        pvm_host.set_timeout(int(height), bytes(int(size)), bytes.fromhex(agent.decode()), int(gas_limit))
    except pvm_host.HostError as error:
        return b"%d %s" % (error.code, str(error).encode())


def get_gas_bid(payload):
    bid = pvm_host.get_state(b"bid") or b"1000000 0"
    if bid == b"loops":
        while True:
            pass
    if bid == b"raises":
        raise ValueError("no bid today")
    if bid == b"writes":
        pvm_host.set_state(b"trace", b"x")
    if bid == b"sets":
        pvm_host.set_timeout(pvm_host.block_height() + 1, b"trace", pvm_host.self_address(), 100000)
    if bid == b"pays":
        pvm_host.transfer_balance(bytes(19) + b"\\x77", 1)
    if bid == b"garbage":
        return b"\\xff\\xff"
    if bid == b"echo":
        return payload
    if bid == b"lane":
        return {"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": 1}
    if bid == b"more":
        return {"max_fee_per_cycle": 10**6, "tip_per_cycle": 1, "bid": 1}
    if bid == b"cells":
        return {"max_fee_per_cycle": 10**6, "tip_per_cycle": 1, "tip_per_cell": 1}
    if bid == b"swallows":
        try:
            pvm_host.set_state(b"trace", b"x")
        except Exception:
            pass
        bid = b"1000000 7"
    cap, tip = bid.split()
    return {"max_fee_per_cycle": int(cap), "tip_per_cycle": int(tip)}


def handle_timer(label):
    pvm_host.set_state(b"saw:" + label, pvm_host.get_state(b"noted") or b"nothing")
    pvm_host.set_state(b"ran", (pvm_host.get_state(b"ran") or b"") + b" " + label)
    deed, _, name = label.partition(b"/")
    if deed == b"drop":
        pvm_host.cancel_timer(pvm_host.get_state(b"id:" + name))
    if label[:3] == b"big":
        pvm_host.set_state(label, bytes(549_000))
    while label[:1] == b"~":
        pass
'''


def open_auction(**params: int) -> LocalChain:
    """Start a chain with epochs of four blocks; parameters are written with two underscores for the dot."""
    overrides = {name.replace("__", "."): value for name, value in params.items()}
    return LocalChain(mechanism="auction", preset="minimal", params=overrides)


def bidder(chain: LocalChain, bid: str = "", value: int = 1_000 * CBY) -> ActorHandle:
    """Deploy a bidder that bids ``cap tip``, or misbehaves as its source has it."""
    actor = chain.deploy(BIDDER, sender=chain.accounts[0], value=value)
    if bid:
        price(actor, bid)
    return actor


def price(actor: ActorHandle, bid: str) -> None:
    """Have a bidder answer otherwise from now on."""
    tell(actor, "price", bid)


def tell(actor: ActorHandle, handler: str, payload: str = "", **options: Any) -> None:
    """Call a handler in a transaction, in a block of its own or in the open one."""
    actor.call(handler, payload.encode(), sender=actor.chain.accounts[0], check=True, **options)


def arm(actor: ActorHandle, *labels: str, height: int, gas_limit: int = GAS) -> list[bytes]:
    """Set timers with these labels and return their ids."""
    tell(actor, "arm", " ".join(f"{label}:{height}:{gas_limit}" for label in labels))
    return [actor.storage[b"id:" + label.encode()] for label in labels]


def ran(actor: ActorHandle) -> list[str]:
    """Return the labels whose handlers have run and kept their writes, in order."""
    return actor.storage.get(b"ran", b"").decode().split()


def fired(chain: LocalChain, height: int | None = None) -> list[bytes]:
    """Return the ids of the timers that fired in a block, in order."""
    return [receipt.timer_id for receipt in chain.receipts(height or chain.height, origin="timer")]


def timer_of(chain: LocalChain, timer_id: bytes) -> Timer:
    """Return the record of a live timer."""
    return next(timer for timer in chain.chain.timers() if timer.timer_id == timer_id)


def terms(chain: LocalChain, timer_id: bytes) -> AuctionTerms:
    """Return what the auction keeps with a live timer."""
    kept = timer_of(chain, timer_id).terms
    assert isinstance(kept, AuctionTerms)
    return kept


def record(chain: LocalChain) -> DecisionRecord:
    """Return the decision record of the last block."""
    found = chain.chain.decisions(chain.height)
    assert found is not None
    return found


def examined(chain: LocalChain) -> dict[bytes, ExaminedTimer]:
    """Return what the last block decided, by timer."""
    return {item.timer_id: item for item in record(chain).examined}


def told(chain: LocalChain, name: str) -> list[Event]:
    """Return the events of a name, oldest first."""
    return list(chain.events(name))


def standing(actor: ActorHandle) -> AuctionActor:
    """Return the auction's record of a bidder."""
    found = find_actor(actor.chain.chain.store.read, actor.address)
    assert found is not None
    return found
