"""Random histories of Globalbox: heights and watches, congestion, fan-out, updates, client nonces, votes by epochs.

They are made of the same parts as those of `tests.model.histories`.
"""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.model import histories as plain
from tests.model.auction_histories import AGENTS, crowding, opening, topping_up
from tests.model.histories import Call, Dice, History

ONE = 2**96
"""A bid of one base unit per cycle."""
BIDS = (0, ONE, 0, 3 * ONE, ONE // 2, 5 * ONE + 1, 2 * ONE, 7_000 * ONE)
FAR = (0, -1, 10**12, 2**64 - 2, 40, 12, 13, 1_763_855_000)
"""Delays at the bounds and beyond, a time in seconds among them."""
FIRE_CYCLES = 25_000
FIRE_CELLS = 1_000 * 10_000
HANDLERS = ("tick", "spend", "purge", "tick", "crowd", "watch", "spend")


@st.composite
def globalbox_histories(draw: Callable[..., Any], blocks_max: int = 14) -> History:
    """Return a strategy for histories."""
    return globalbox_history(Dice(lambda least, most: draw(st.integers(least, most))), blocks_max)


def globalbox_history(dice: Dice, blocks_max: int = 14) -> History:
    """Throw a history."""
    overrides = _overrides(dice)
    fire = 2 * FIRE_CYCLES * overrides["fees.genesis_cycle_basefee"] + FIRE_CELLS
    sources = tuple(json.dumps(_source(dice, fire)) for _ in AGENTS)
    crowd = tuple(_execution(dice, who, dice.pick(("watch", "watch", "crowd"))) for who in AGENTS[:4])
    blocks: list[tuple[Call, ...] | int] = [opening(dice, fire), crowd]
    for _ in range(dice.integer(blocks_max // 2, blocks_max)):
        calls = tuple(_call(dice, fire) for _ in range(dice.integer(0, 5)))
        if dice.often(25):
            calls = (*calls, topping_up(dice))
        if dice.often(5):
            calls = (*calls, *_shortening())
        blocks.append(dice.pick((1, 2, 3, 6)) if dice.often(25) else calls)
        if dice.often(45):
            # Much is hit at once, and changed while it waits in the queue.
            who = dice.pick(AGENTS[:3])
            handlers = dice.pick((("write", "renew"), ("write", "write", "renew")))
            blocks += [(_execution(dice, who, handler),) for handler in handlers]
    blocks.append(dice.pick((4, 14)))
    return plain.with_cells(dice, History(overrides, sources, tuple(blocks), "globalbox"))


def _overrides(dice: Dice) -> dict[str, int]:
    """Return parameters so small that everything overflows soon."""
    genesis = dice.pick((10_000, 6, 2_000))
    fires = dice.pick((4, 1, 2, 8, 3))
    lane = dice.pick((60_000, 60_000, 100_000, 200_000))
    return {
        **plain.small_overrides(dice),
        "fees.min_basefee": genesis,
        "fees.genesis_cycle_basefee": genesis,
        "timers.lane_cycles_per_block": lane,
        "timers.gc_cycles_per_block": dice.pick((5_000, 200, 400)),
        "costs.deploy_byte": 0,
        "limits.block_cycles_max": 1_000_000,
        "limits.block_cells_max": 40_000,
        "globalbox.max_fires_per_block": fires,
        "globalbox.max_fires_per_target": min(fires, dice.pick((2, 1, 8))),
        "globalbox.age_weight": dice.pick((2**32, 1, 2**33, 3 * 2**31, 2**63)),
        "globalbox.bid_weight": dice.pick((1, 1, 0, 3, 2**32)),
        "globalbox.min_gas_limit": dice.pick((10_000, 12_000)),
        "globalbox.payload_bytes_max": dice.pick((65_536, 40)),
        "globalbox.max_timers_per_owner": dice.pick((20, 6, 12)),
        "globalbox.max_timers_per_target": dice.pick((30, 5, 10)),
        "globalbox.bid_min": dice.pick((0, 0, 0, 1)),
        "globalbox.bid_max": dice.pick((2**32 - 1, 4)),
        "globalbox.watch_keys_max": dice.pick((16, 2)),
        "globalbox.watch_key_bytes_max": dice.pick((84, 21)),
        "globalbox.client_nonce_bytes_max": dice.pick((64, 1)),
        "globalbox.joined_max": dice.pick((100, 2, 4)),
        "globalbox.hits_max": fires + 1 + dice.pick((0, 1, 100)),
        "globalbox.passed_over_max": dice.pick((256, 1, 2)),
        "globalbox.ended_kept_blocks": dice.pick((6, 1, 3)),
        "globalbox.epoch_blocks": dice.pick((4, 2, 7)),
        "globalbox.shards": dice.pick((1, 3, 64)),
    }


# Scripts


def _source(dice: Dice, fire: int) -> dict[str, list[Any]]:
    handlers = json.loads(json.dumps(plain.random_source(dice)))
    for operations in handlers.values():
        _translate(dice, operations)
    if dice.often(40):
        # Whoever fires first leaves little for the next.
        amount = fire * dice.pick((3, 1, 10, 50))
        handlers["tick"].insert(0, ["try", [["transfer", dice.pick(("@dan", *AGENTS)), amount]]])
    handlers["crowd"] = [["repeat", dice.pick((2, 3, 4)), [["try", [_aim(dice)]]]] for _ in range(dice.integer(1, 3))]
    handlers["watch"] = [["try", [_watch(dice)]] for _ in range(dice.integer(2, 5))]
    handlers["twice"] = [["try", [_named(dice)]] for _ in range(dice.integer(1, 3))]
    handlers["write"] = [_write(dice) for _ in range(dice.integer(1, 4))]
    for name in ("tick", "spend", "handle_timer", "handle_message"):
        if dice.often(50):
            handlers[name].insert(0, _write(dice))
        if dice.often(40):
            handlers[name].append(["delivery"])
        if dice.often(25):
            handlers[name].append(["try", [dice.pick((_watch(dice), _aim(dice), _update(dice), _drop(dice)))]])
    handlers["change"] = [["try", [_update(dice)]] for _ in range(dice.integer(1, 3))]
    handlers["renew"] = [["try", [_update(dice, place, "self")]] for place in range(4)]
    handlers["touch"] = [
        dice.pick((["cancel", "payload"], ["drop", _target(dice), "payload"], _update(dice, "payload")))
    ]
    handlers["purge"] = [["cancel", place] for place in range(dice.integer(1, 3))]
    return handlers


def _target(dice: Dice) -> str:
    if dice.often(65):
        return "self"
    return dice.pick(AGENTS[:3]) if dice.often(90) else dice.pick(("@ghost", "@alice"))


def _envelope(dice: Dice) -> list[str]:
    handler = "missing" if dice.often(5) else dice.pick(HANDLERS)
    return dice.pick((["cbor", handler, ""], ["json", handler, "07"], ["raw", "07"], ["cbor", handler, "0102"]))


def _more(dice: Dice, delay: int) -> list[Any]:
    """Return payload, gas limit, bid, life and client nonce."""
    gas_limit = dice.pick((25_000, 20_000, None, 40_000, 15_000)) if dice.often(95) else dice.pick((9_999, 10**6))
    bid = dice.pick(BIDS) if dice.often(95) else dice.pick((2**128 - 1, 5 * ONE, 2**127))
    life = None
    if dice.often(45):
        # One that is shorter than the delay ends before its height.
        lives = (delay, delay + 1, delay + 3, 12, 2, 4, max(1, delay - 1))
        life = dice.pick(lives) if dice.often(92) else dice.pick((0, 13, -1, 10**12))
    nonce = "" if dice.often(80) else dice.pick(("01", "02", "0102"))
    return [_envelope(dice), gas_limit, bid, life, nonce]


def _aim(dice: Dice) -> list[Any]:
    delay = dice.pick((2, 2, 3, 1, 3, 2, 5, 8)) if dice.often(94) else dice.pick(FAR)
    return ["aim", _target(dice), delay, *_more(dice, max(1, delay % 50))]


def _watch(dice: Dice) -> list[Any]:
    keys = [_key(dice) for _ in range(dice.pick((1, 1, 2, 3)))] if dice.often(97) else []
    return ["watch", _target(dice), keys, *_more(dice, dice.pick((4, 9, 12)))]


def _key(dice: Dice) -> list[str]:
    """Return whose slots a watch key is about, how the slots' names begin, and bytes of the address."""
    slot = dice.pick(("78", "", "79", "", "7879", "69", "6964"))
    return [dice.pick((*AGENTS[:3], "self")), slot, "20"] if dice.often(97) else ["self", "", "19"]


def _named(dice: Dice) -> list[Any]:
    """Return an operation that sets a timer of a name, which another may have set before."""
    operation = dice.pick((_aim(dice), _watch(dice)))
    operation[-1] = dice.pick(("01", "02"))
    return operation


def _write(dice: Dice) -> list[Any]:
    slot = dice.pick(("x", "y", "xy", "x"))
    return ["delete", slot] if dice.often(15) else ["set", slot, dice.pick(("01", "02", "03", "", "0405"))]


def _update(dice: Dice, which: int | str | None = None, target: str | None = None) -> list[Any]:
    changes: dict[str, Any] = {}
    if dice.often(60):
        changes["envelope"] = _envelope(dice)
    if dice.often(50):
        changes["gas"] = dice.pick((25_000, 15_000, 40_000, 9_999))
    if dice.often(60):
        changes["bid"] = dice.pick((*BIDS, 2**128 - 1))
    return ["update", target or _target(dice), dice.integer(0, 3) if which is None else which, changes]


def _drop(dice: Dice) -> list[Any]:
    return ["drop", _target(dice), dice.integer(0, 3)]


def _translate(dice: Dice, operations: list[Any]) -> None:
    """Let a script ask Globalbox in place of what others would, at any depth, but for a few."""
    for operation in operations:
        if operation[0] == "schedule" and dice.often(95):
            operation[:] = dice.pick((_aim(dice), _aim(dice), _watch(dice)))
        elif operation[0] == "extend" and dice.often(90):
            operation[:] = dice.pick((_update(dice), _drop(dice)))
        if operation[0] in ("try", "repeat"):
            _translate(dice, operation[-1])


# Transactions


def _execution(dice: Dice, actor: str, handler: str) -> Call:
    limits = dice.pick((120_000, 160_000)), dice.pick((3_000, 5_000))
    return Call(dice.pick(("alice", "bob")), "ExecuteActor", (actor, handler, b""), *limits, "double", (1, 0), "")


def _call(dice: Dice, fire: int) -> Call:
    if dice.often(15):
        return crowding(dice, dice.pick(AGENTS))
    if dice.often(45):
        handler = dice.pick(("write", "write", "write", "watch", "twice", "change", "purge"))
        return _execution(dice, dice.pick(AGENTS), handler)
    if dice.often(20):
        money = ("FundActor", (dice.pick(AGENTS), fire * dice.pick((1, 3, 10))))
        return Call("alice", *money, 12_000, 600, "double", (0, 0), "")
    if dice.often(22):
        key, value = _vote(dice)
        return Call("governor", "SetGovParam", (key, value.to_bytes(8, "big")), 30_000, 600, "double", (0, 0), "")
    return plain.random_call(dice)


def _shortening() -> tuple[Call, ...]:
    """Return the votes for shorter fires and a shorter lane: what was set before no longer fits."""
    width = 20_000
    limits = (12, width, 1_000, 8, 400)
    lane = (b"system:cip1:lane_timer_cycles", width.to_bytes(8, "big"))
    return (
        Call("governor", "UpdateTimerConfig", limits, 30_000, 600, "double", (0, 0), ""),
        Call("governor", "SetGovParam", lane, 30_000, 600, "double", (0, 0), ""),
    )


def _vote(dice: Dice) -> tuple[bytes, int]:
    name, values = dice.pick(
        (
            ("max_fires_per_block", (1, 2, 6, 0, 1_000)),
            ("max_fires_per_target", (1, 2, 3, 100)),
            ("age_weight", (1, 2**32, 2**34, 0, 2**63 + 1)),
            ("bid_weight", (0, 1, 5, 2**32 + 1)),
            ("min_gas_limit", (10_000, 20_000, 9_999, 10**6)),
            ("payload_bytes_max", (10, 65_536, 2**21)),
            ("max_timers_per_owner", (2, 20, 0)),
            ("max_timers_per_target", (2, 20)),
            ("bid_min", (0, 1, 5, 2**32)),
            ("bid_max", (3, 10, 2**32 - 1)),
            ("watch_keys_max", (1, 2, 16, 65)),
        )
    )
    return b"system:globalbox:" + name.encode(), dice.pick(values)
