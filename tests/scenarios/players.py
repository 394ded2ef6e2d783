"""A small market: actors that keep timers in the lane, and what each of them gets out of it."""

from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
GAS_LIMIT = 20_000
MAX_FEE = 10**9

PLAYER = """
def start(payload):
    count = int(payload.split()[0])
    pvm_host.set_state(b"plan", payload)
    for number in range(count):
        again()


def again():
    count, every, tip, first = (int(part) for part in pvm_host.get_state(b"plan").split())
    height = max(first, pvm_host.block_height() + every)
    pvm_host.schedule_timer(height, b"", gas_limit=20_000, max_fee_per_cycle=10**9, max_priority_fee_per_cycle=tip)


def once(payload):
    height, tip, label = payload.split()
    return pvm_host.schedule_timer(int(height), label, gas_limit=20_000, max_fee_per_cycle=10**9,
                                   max_priority_fee_per_cycle=int(tip))


def handle_timer(payload):
    if payload == b"":
        again()
"""


def lane_chain(**params: int) -> LocalChain:
    """Return a chain whose lane takes eight of the players' fires a block."""
    lane = {"timers.lane_cycles_per_block": 100_000, "timers.max_cycles_per_fire": 100_000}
    return LocalChain(
        mechanism="lane", params=lane | {path.replace("__", "."): value for path, value in params.items()}
    )


def player(chain: LocalChain, owner: int, value: int = 50_000 * CBY) -> ActorHandle:
    """Deploy an actor of one of the funded accounts."""
    return chain.deploy(PLAYER, sender=chain.accounts[owner % len(chain.accounts)], value=value)


def start(chain: LocalChain, actor: ActorHandle, timers: int, *, tip: int, every: int = 1, first: int = 0) -> None:
    """Let an actor keep timers in the lane: each schedules the next when it fires."""
    plan = b"%d %d %d %d" % (timers, every, tip, first)
    actor.call("start", plan, sender=chain.accounts[0], check=True)


def fires_by_actor(chain: LocalChain, since: int) -> dict[bytes, int]:
    """Return how often each actor has fired from a height on."""
    fires: dict[bytes, int] = {}
    for receipt in chain.receipts(since, origin="timer"):
        fires[bytes(receipt.actor)] = fires.get(bytes(receipt.actor), 0) + 1
    return fires
