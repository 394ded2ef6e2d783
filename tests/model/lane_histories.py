"""Random histories of the timer lane: chains that cross its activation somewhere, and chains that begin with it.

They are made of the same parts as those of `tests.model.histories`, with offers, agents, and votes on the lane's own
parameters besides.
"""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.model import histories as plain
from tests.model.histories import ACTORS, NAMES, Call, Dice, History

AGENTS = NAMES[4:7]
BASEFEE = "basefee_lane_timer"
TIP = "previous_block_p50_priority_tip_per_cycle"
WHOLE = 10**9
CROWD = (2, 3, 4)
FIRE_CYCLES = 25_000
FIRE_CELLS = 1_000 * 10_000
MAX_FEE, PRIORITY = "max_fee_per_cycle", "max_priority_fee_per_cycle"
CELL_FEE, CELL_PRIORITY = "max_fee_per_cell", "max_priority_fee_per_cell"


@st.composite
def lane_histories(draw: Callable[..., Any], blocks_max: int = 14) -> History:
    """Return a strategy for histories."""
    return lane_history(Dice(lambda least, most: draw(st.integers(least, most))), blocks_max)


def lane_history(dice: Dice, blocks_max: int = 14) -> History:
    """Throw a history; in half of them some of the rules that a chain can turn on are on."""
    written = _as_written(dice, blocks_max)
    return written._replace(overrides=dict(written.overrides) | _rules(dice)) if dice.often(50) else written


def _rules(dice: Dice) -> dict[str, int]:
    """Return rules of the lane that are off unless a chain turns them on."""
    return {
        "lane.basefee_rule": dice.pick((0, 1, 2)),
        "lane.caps_at_fire": dice.pick((0, 1)),
        "lane.weight_per_deployer": dice.pick((0, 1)),
        "lane.fires_median_blocks": dice.pick((1, 2, 3)),
        "lane.weight_age_blocks": dice.pick((0, 1, 3, 40)),
    }


def _as_written(dice: Dice, blocks_max: int) -> History:
    overrides = _overrides(dice)
    fire = 3 * FIRE_CYCLES * overrides["fees.genesis_cycle_basefee"] + FIRE_CELLS
    sources = tuple(json.dumps(_source(dice, fire)) for _ in ACTORS)
    blocks: list[tuple[Call, ...] | int] = [_opening(dice, fire)]
    activation = dice.pick((2, 3, 4, 6, 9, 14, 0, 0))
    if dice.often(60):
        # A crowd that the activation finds waiting, if it comes soon.
        blocks.append(tuple(_crowding(dice, actor) for actor in AGENTS))
    for _ in range(dice.integer(blocks_max // 2, blocks_max)):
        calls = tuple(_call(dice, activation) for _ in range(dice.integer(0, 4)))
        if dice.often(30):
            # Whoever lacks money gets just enough, or one unit less.
            money = (("payer", 0), ("cost", dice.pick((-1, 0))))
            calls = (*calls, Call("dan", "Transfer", money, 12_000, 600, "double", (0, 0), ""))
        blocks.append(dice.pick((1, 2, 3, 6)) if dice.often(20) else calls)
    blocks.append(dice.pick((4, 12)))
    if dice.often(35):
        return plain.with_cells(dice, History(overrides, sources, tuple(blocks), "lane"))
    overrides |= {"lane.activation_height": activation}
    return plain.with_cells(dice, History(overrides, sources, tuple(blocks)))


def _overrides(dice: Dice) -> dict[str, int]:
    """Return parameters so small that everything overflows soon."""
    genesis = dice.pick((10_000, 6, 2_000))
    fire = dice.pick((40_000, 60_000))
    floor = dice.pick((1, 1_800, genesis - 3))
    question = dice.pick((20_000, 12_000, 10_500))
    return {
        **plain.small_overrides(dice),
        "fees.min_basefee": genesis,
        "fees.genesis_cycle_basefee": genesis,
        "timers.max_timers_per_actor": dice.pick((20, 8)),
        "timers.max_cycles_per_fire": fire,
        "timers.lane_cycles_per_block": fire + dice.pick((0, 10_000, 40_000)),
        "lane.max_cycles_per_fire": dice.pick((50_000, 35_000, 25_000)),
        "lane.clamps_gas_limit": dice.pick((0, 1)),
        "lane.alpha": dice.pick((1, 8, 3)),
        "lane.max_change_denominator": dice.pick((8, 4)),
        "lane.elasticity": dice.pick((2, 3)),
        "lane.basefee_min": floor,
        "lane.basefee_max": max(floor, dice.pick((10**24, genesis + 20))),
        "lane.joined_max": dice.pick((100, 4, 2)),
        "lane.passed_over_max": dice.pick((256, 1, 2)),
        "lane.gba_cycles_max": question,
        "lane.gba_cycles_per_block": dice.pick((100_000, 2 * question, question + 10_000, 10**6)),
        "lane.fairness_window_blocks": dice.pick((8, 3, 4, 5, 6, 7)),
        "lane.window_blocks_left_max": dice.pick((1, 16, 2)),
        "lane.weight_min": dice.pick((WHOLE, WHOLE, 1_300_000_000, 1)),
        "lane.weight_max": dice.pick((2 * WHOLE, 2 * WHOLE, 1_600_000_000)),
    }


def _opening(dice: Dice, fire: int) -> tuple[Call, ...]:
    """Return the first block: actors are deployed, and most have money for some fires, and agents."""
    calls = list(plain.opening()[: len(ACTORS)])
    for actor in AGENTS:
        if dice.often(85):
            money = ("FundActor", (actor, fire * dice.pick((60, 12, 4))))
            calls.append(Call("bob", *money, 12_000, 600, "double", (0, 0), ""))
        if dice.often(60):
            calls.append(Call("alice", "ExecuteActor", (actor, "hire", b""), 14_000, 600, "double", (1, 1), ""))
    return tuple(calls)


# Scripts


def _source(dice: Dice, fire: int) -> dict[str, list[Any]]:
    handlers = json.loads(json.dumps(plain.random_source(dice)))
    for operations in handlers.values():
        _spice(dice, operations)
    if dice.often(40):
        # Whoever fires first leaves little for the next.
        amount = fire * dice.pick((3, 1, 10, 50))
        handlers["tick"].insert(0, ["try", [["transfer", dice.pick(("@dan", *AGENTS)), amount]]])
    if dice.often(35):
        # What has just expired, and could not be removed yet, may live again from the next block on.
        handlers["tick"] = [["try", [["extend", place, 6]]] for place in range(4)] + handlers["tick"]
    handlers["hire"] = [["agent", dice.pick((*AGENTS, "self", "@alice"))]]
    handlers["fire"] = [["agent", dice.pick((None, None, None, None, AGENTS[0], "@ghost"))], ["lane"]]
    if dice.often(85):
        handlers["get_gas_bid"] = _bidding(dice)
    # Many timers at one height that offer much and little, and live just long enough to wait.
    handlers["crowd"] = [["repeat", dice.pick(CROWD), [["try", [_offered(dice)]]]] for _ in range(dice.integer(1, 3))]
    if dice.often(30):
        handlers["init"] = [["try", [["agent", dice.pick(("self", AGENTS[0], "@ghost"))]]]]
    return handlers


def _offered(dice: Dice) -> list[Any]:
    """Return an operation that schedules a timer for the lane."""
    delay = dice.pick((2, 2, 3, 1, 3, 2, 5))
    envelope = ["cbor", dice.pick(("tick", "spend", "purge", "tick")), ""]
    gas_limit = dice.pick((25_000, 20_000, 34_000, None, 15_000, 12_000, 9_999))
    life = min(12, delay + dice.integer(0, 5)) if dice.often(40) else None
    payer = dice.pick((None, None, None, "@alice", "@bob", "sender"))
    return ["schedule", delay, envelope, payer, gas_limit, life, {} if dice.often(40) else _offer(dice)]


def _offer(dice: Dice) -> dict[str, Any]:
    offer: dict[str, Any] = {}
    if dice.often(60):
        offer["priority"] = dice.pick(
            (0, [BASEFEE, 1, 4, 0], [BASEFEE, 1, 2, 3], 1, [TIP, 3, 2, 0], [BASEFEE, 2, 1, 0])
        )
    if dice.often(45):
        offer["max_fee"] = dice.pick(
            ([BASEFEE, 2, 1, 0], [BASEFEE, 3, 1, 0], [BASEFEE, 1, 1, 0], [BASEFEE, 9, 8, 1], [BASEFEE, 1, 1, -1], 10**6)
        )
    if dice.often(3):
        offer["max_fee"] = dice.pick((2**127 - 1, 0, 5_000))
    if dice.often(8):
        offer["bid"] = 1
    if dice.often(25):
        # An agent of its own; beside fees, or no actor, it is refused.
        offer = offer if dice.often(10) else {}
        offer["gba"] = dice.pick((*AGENTS, *AGENTS, "self", "@alice"))
    return offer


def _spice(dice: Dice, operations: list[Any]) -> None:
    """Give offers to some of the timers that a script schedules, at any depth, and let it do other things."""
    for operation in operations:
        if operation[0] == "schedule" and dice.often(50):
            operation.append(_offer(dice))
        if operation[0] in ("try", "repeat"):
            _spice(dice, operation[-1])
    if dice.often(8):
        operations.insert(0, dice.pick((["lane"], ["agent", dice.pick((None, "self", *NAMES[3:]))])))


def _bidding(dice: Dice) -> list[Any]:
    """Return how an agent answers: mostly well, or in one of many wrong ways."""
    answer = ["answer", _good(dice)]
    if dice.often(65):
        return [["charge", dice.pick((1, 300, 3_000))], answer]
    if dice.often(50):
        return [_malformed(dice)]
    forbidden = dice.pick(
        (
            ["set", "x", "aa"],
            ["delete", "x"],
            ["emit", "note", "00"],
            ["send", "self", "01"],
            ["transfer", "@alice", 1],
            ["schedule", 1, ["raw", ""], None, 15_000, None, {}],
            ["extend", 0, 5],
            ["cancel", 0],
            ["agent", None],
            ["lane"],
            ["call", "@ghost", "tick", "", 10],
            ["call", "self", "tick", "", 30_000],
        )
    )
    return dice.pick(
        (
            [forbidden, answer],
            [["try", [forbidden]], answer],
            [["loop"]],
            [["charge", 9_000], answer],
            [["fail"]],
            [["set", "x", "bb"], ["loop"]],
        )
    )


def _good(dice: Dice) -> dict[str, Any]:
    cap = dice.pick(
        ([BASEFEE, 2, 1, 0], [BASEFEE, 3, 1, 7], [BASEFEE, 5, 4, 0], ["owner_actor_balance", 1, 10**4, 10**6])
    )
    tip = dice.pick(
        (
            0,
            [BASEFEE, 1, 2, 0],
            ["mix", 1, 60, 0],
            [TIP, 1, 1, 0],
            ["current_block_height", 1, 1, 0],
            ["last_block_cycle_usage", 1, 300, 0],
        )
    )
    if isinstance(tip, list) and tip[0] not in (BASEFEE, TIP):
        cap = [BASEFEE, 3, 1, 10**6]
    answer = {MAX_FEE: cap, PRIORITY: tip}
    if dice.often(10):
        answer[MAX_FEE] = [BASEFEE, 1, 1, -1]  # Too little: the timer waits.
        answer[PRIORITY] = 0
    if dice.often(45):
        # Enough for a tip or not, and in one block of four or so too little: it waits.
        answer[CELL_FEE] = dice.pick(
            (["basefee_cell", 1, 1, 0], ["basefee_cell", 2, 1, 1], ["basefee_cell", 1, 1, -1], 10_050, ["mix", 1, 3, 0])
        )
        answer[CELL_PRIORITY] = dice.pick((0, 7, 40))
    elif dice.often(30):
        answer[CELL_PRIORITY] = 0
    return answer


def _malformed(dice: Dice) -> list[Any]:
    good: dict[str, Any] = {MAX_FEE: [BASEFEE, 2, 1, 0], PRIORITY: 1}
    wrong: tuple[dict[str, Any], ...] = (
        {**good, MAX_FEE: -1},
        {**good, PRIORITY: [BASEFEE, 2, 1, 1]},
        {**good, MAX_FEE: 2**127},
        {MAX_FEE: 2**127 - 1, PRIORITY: 2**126},
        {**good, CELL_PRIORITY: 1},
        {**good, CELL_FEE: ["basefee_cell", 1, 1, 0], CELL_PRIORITY: ["basefee_cell", 1, 1, 1]},
        {**good, PRIORITY: True},
        {**good, PRIORITY: "1"},
        {**good, "tip": 1},
        {MAX_FEE: 10**6},
        {},
    )
    if dice.often(30):
        # No map, nothing, a map in a longer form than it needs, a map with something behind it.
        return ["return", dice.pick(("01", "", "b9000100", "a000", "80", "ff"))]
    return ["answer", dice.pick(wrong)]


# Transactions


def _call(dice: Dice, activation: int) -> Call:
    if dice.often(35):
        return _crowding(dice, dice.pick(AGENTS))
    if dice.often(10):
        handler = dice.pick(("fire", "hire", "fire"))
        return Call("bob", "ExecuteActor", (dice.pick(AGENTS), handler, b""), 20_000, 1_000, "double", (0, 1), "")
    if dice.often(16):
        key, value = _vote(dice, activation)
        octets = value.to_bytes(8, "big")
        return Call("governor", "SetGovParam", (key, octets), 30_000, 600, "double", (0, 0), "")
    return plain.random_call(dice)


def _crowding(dice: Dice, actor: str) -> Call:
    limits = dice.pick((120_000, 200_000)), dice.pick((3_000, 5_000))
    return Call(dice.pick(("alice", "bob")), "ExecuteActor", (actor, "crowd", b""), *limits, "double", (1, 0), "")


def _vote(dice: Dice, activation: int) -> tuple[bytes, int]:
    if not activation or dice.often(25):
        return b"system:cip1:activation_height", dice.pick((3, 5, 7, 9, 12, 16, 0, 30))
    if dice.often(20):
        return b"system:cip1:fairness_window_blocks", dice.pick((1, 2, 12, 5, 1, 0))
    name, values = dice.pick(
        (
            ("max_cycles_per_fire_auction_phase", (20_000, 50_000, 9_999, 30_000)),
            ("weight_min", (WHOLE, 1_500_000_000, 1, 3 * WHOLE)),
            ("weight_max", (2 * WHOLE, 1_200_000_000, 2**32 + 1)),
            ("lane_basefee_alpha", (1, 8, 0)),
            ("lane_basefee_min", (1, 50, 12_000)),
            ("gba_max_cycles", (12_000, 30_000, 9_999, 10**7)),
            ("gba_cycles_per_block", (40_000, 21_000, 1)),
            ("activation_clamps_gas_limit", (0, 1, 2)),
            ("lane_timer_cycles", (60_000, 150_000, 50_000)),
            ("priority_tier_multipliers.fast", (12_345, 0)),
            ("priority_tier_multipliers.economy", (1, 9_000)),
        )
    )
    return b"system:cip1:" + name.encode(), dice.pick(values)
