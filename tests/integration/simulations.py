"""What the scenarios of simulations share: one actor that does the same under every mechanism."""

from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
SET = {
    "fifo": "pvm_host.schedule_timer_ex(height, label, gas_limit=gas)",
    "lane": "pvm_host.schedule_timer_ex(height, label, gas_limit=gas)",
    "auction": "pvm_host.set_timeout(height, label, pvm_host.self_address(), gas)",
    "globalbox": "pvm_host.set_timeout(pvm_host.self_address(), height, label, gas_limit=gas)",
}
BUSY = '''
"""Sets timers, and does in a call or a fire what a word asks for."""


def get_gas_bid(payload):
    return {"max_fee_per_cycle": 10**6, "tip_per_cycle": 3}


def arm(payload):
    for item in payload.split():
        label, height, gas = item.split(b":")
        pvm_host.set_state(b"id:" + label, set_timer(int(height), label, int(gas)))


def set_timer(height, label, gas):
    return SET


def do(word):
    print("doing", word)
    pvm_host.set_state(b"last", word)
    verb, _, rest = word.partition(b"/")
    if verb == b"raise":
        raise ValueError("as asked")
    if verb == b"spin":
        while True:
            pass
    if verb == b"deep":
        pvm_host.call_actor(pvm_host.self_address(), "do", rest, 60_000, 0)
    if verb == b"cancel":
        pvm_host.cancel_timer(CANCEL)
    if verb == b"arm":
        arm(rest)
    if verb == b"again":
        set_timer(pvm_host.block_height() + 3, word, 100_000)
    if verb == b"count":
        count = int(pvm_host.get_state(b"count") or b"0") + 1
        pvm_host.set_state(b"count", b"%d" % count)
        pvm_host.set_state(b"at:%d" % count, b"x")
        return b"%d" % len(pvm_host.scan_state_prefix(b"at:", 10))
    return word


def handle_timer(label):
    return do(label)
'''


def busy(chain: LocalChain, mechanism: str, value: int = 1_000 * CBY) -> ActorHandle:
    """Deploy the actor."""
    cancel = 'pvm_host.get_state(b"id:" + rest)'
    if mechanism == "globalbox":
        cancel = f"pvm_host.self_address(), {cancel}"
    source = BUSY.replace("SET", SET[mechanism]).replace("CANCEL", cancel)
    return chain.deploy(source, sender=chain.accounts[0], value=value)


def arm(actor: ActorHandle, *orders: str) -> list[bytes]:
    """Set timers, each ``label:height:gas``, in a block of its own; return their ids."""
    actor.call("arm", " ".join(orders).encode(), sender=actor.chain.accounts[0], check=True)
    return [actor.storage[b"id:" + order.split(":")[0].encode()] for order in orders]
