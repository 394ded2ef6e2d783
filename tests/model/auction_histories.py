"""Random histories of the auction: crowds of several actors, agents of every kind, empty purses, late timers, votes.

They are made of the same parts as those of `tests.model.histories`.
"""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.model import histories as plain
from tests.model.histories import Call, Dice, History

ACTORS = 5
AGENTS = tuple(f"@a{index}" for index in range(ACTORS))
UNIT = 10**9
EPOCH = 4
"""Blocks of an epoch under the preset that histories have."""
BLOCK_CYCLES = 1_000_000
BLOCK_CELLS = 40_000
FIRE_CYCLES = 25_000
FIRE_CELLS = 1_000 * 10_000
BASEFEE = "basefee_cycle"
MAX_FEE, TIP = "max_fee_per_cycle", "tip_per_cycle"
CELL_FEE, CELL_TIP = "max_fee_per_cell", "tip_per_cell"


@st.composite
def auction_histories(draw: Callable[..., Any], blocks_max: int = 14) -> History:
    """Return a strategy for histories."""
    return auction_history(Dice(lambda least, most: draw(st.integers(least, most))), blocks_max)


def auction_history(dice: Dice, blocks_max: int = 14) -> History:
    """Throw a history."""
    overrides = _overrides(dice)
    fire = 2 * FIRE_CYCLES * overrides["fees.genesis_cycle_basefee"] + FIRE_CELLS
    sources = tuple(json.dumps(_source(dice, fire)) for _ in AGENTS)
    blocks: list[tuple[Call, ...] | int] = [opening(dice, fire), tuple(crowding(dice, who) for who in AGENTS[:4])]
    for _ in range(dice.integer(blocks_max // 2, blocks_max)):
        calls = tuple(_call(dice, fire) for _ in range(dice.integer(0, 4)))
        if dice.often(30):
            # Whoever lacks money gets just enough, or one unit less.
            calls = (*calls, topping_up(dice))
        if dice.often(20):
            calls = (filling(dice), *calls)
        blocks.append(dice.pick((1, 2, 3, 6)) if dice.often(25) else calls)
    blocks.append(dice.pick((4, 12)))
    if dice.often(50):
        blocks += leaving(dice, sum(block if isinstance(block, int) else 1 for block in blocks))
    return plain.with_cells(dice, History(overrides, sources, tuple(blocks), "auction"))


def _overrides(dice: Dice) -> dict[str, int]:
    """Return parameters so small that everything overflows soon."""
    genesis = dice.pick((10_000, 6, 2_000))
    fire = dice.pick((40_000, 60_000))
    question = dice.pick((20_000, 12_000, 10_500))
    most = dice.pick((UNIT, 600_000_000))
    return {
        **plain.small_overrides(dice),
        "limits.block_cycles_max": BLOCK_CYCLES,
        "limits.block_cells_max": BLOCK_CELLS,
        "fees.min_basefee": genesis,
        "fees.genesis_cycle_basefee": genesis,
        "timers.max_timers_per_actor": dice.pick((20, 8)),
        "timers.max_cycles_per_fire": fire,
        "timers.lane_cycles_per_block": fire,
        "timers.due_examined_max": dice.pick((100, 100, 3, 6)),
        "auction.budget_cycles": fire + dice.pick((0, 10_000, 40_000, 100_000)),
        "auction.joined_max": dice.pick((100, 4, 2)),
        "auction.passed_over_max": dice.pick((256, 1, 2)),
        "auction.gba_cycles_max": question,
        "auction.gba_cycles_per_block": dice.pick((10**6, 2 * question, question + 10_000, 4 * question)),
        "auction.decay": dice.pick((200_000_000, UNIT, 0, 500_000_000)),
        "auction.weight_min": dice.pick((100_000_000, 1, 400_000_000)),
        "auction.weight_max": most,
        "auction.starvation_blocks": dice.pick((2, 3, 8, 1)),
        "auction.starvation_floor": dice.pick((500_000_000, most)),
        "auction.lateness_scale": dice.pick((16, 1, 3)),
        "auction.actors_weighed_max": dice.pick((100, 1, 2)),
        "auction.delays_max": dice.pick((2, 4, 7, 256)),
        "auction.delay_action": dice.pick((0, 1, 2)),
        "auction.delay_penalty_cycles": dice.pick((10_000, 0, 10**9)),
    }


def opening(dice: Dice, fire: int) -> tuple[Call, ...]:
    """Return the first block: actors are deployed, and most have money for some fires."""
    calls = [
        Call(plain.USERS[index % 2], "DeployActor", (index,), 120_000, 6_000, "double", (0, 0), "")
        for index in range(ACTORS)
    ]
    for actor in AGENTS:
        if dice.often(80):
            money = ("FundActor", (actor, fire * dice.pick((60, 12, 4, 1))))
            calls.append(Call("bob", *money, 12_000, 600, "double", (0, 0), ""))
    return tuple(calls)


def topping_up(dice: Dice) -> Call:
    """Return a transfer of what whoever fires next lacks, or of one unit less."""
    money = (("payer", 0), ("cost", dice.pick((-1, 0))))
    return Call("dan", "Transfer", money, 12_000, 600, "double", (0, 0), "")


def filling(dice: Dice) -> Call:
    """Return a transfer that may use all that a block has for transactions; fires before it take none of that."""
    limits = dice.pick(((BLOCK_CYCLES, 600), (12_000, BLOCK_CELLS), (BLOCK_CYCLES, BLOCK_CELLS)))
    return Call("alice", "Transfer", ("@bob", 1), *limits, "double", (0, 0), "")


def leaving(dice: Dice, height: int) -> list[tuple[Call, ...] | int]:
    """Return blocks, above a height, in which actors wait in an epoch, leave as the next begins, and come back later.

    What is due in an epoch's last block waits, as its actor has given its money away. It is cancelled in the next one,
    which freshens weights.
    """
    called = {handler: tuple(_called(actor, handler) for actor in AGENTS) for handler in ("lone", "quit")}
    until_last = (EPOCH - 3 - height) % EPOCH or EPOCH
    return [until_last, called["lone"], 1, called["quit"], dice.pick((EPOCH, 2 * EPOCH, 2)), called["lone"], 2]


def _called(actor: str, handler: str) -> Call:
    return Call("bob", "ExecuteActor", (actor, handler, b""), 60_000, 1_000, "double", (0, 0), "")


def crowding(dice: Dice, actor: str) -> Call:
    """Return a call that sets many timers."""
    limits = dice.pick((120_000, 160_000)), dice.pick((3_000, 5_000))
    return Call(dice.pick(("alice", "bob")), "ExecuteActor", (actor, "crowd", b""), *limits, "double", (1, 0), "")


# Scripts


def _source(dice: Dice, fire: int) -> dict[str, list[Any]]:
    handlers = json.loads(json.dumps(plain.random_source(dice)))
    for operations in handlers.values():
        _translate(dice, operations)
    if dice.often(40):
        # Whoever fires first leaves little for the next.
        amount = fire * dice.pick((3, 1, 10, 50))
        handlers["tick"].insert(0, ["try", [["transfer", dice.pick(("@dan", *AGENTS)), amount]]])
    if dice.often(92):
        handlers["get_gas_bid"] = _bidding(dice)
    handlers["crowd"] = [
        ["repeat", dice.pick((2, 3, 4)), [["try", [_crowded(dice)]]]] for _ in range(dice.integer(1, 3))
    ]
    handlers["touch"] = [["cancel", "payload"]]
    given = [["try", [["transfer", "@dan", 2**power]]] for power in range(43, 21, -1)]
    handlers["lone"] = [*given, ["timeout", 1, ["raw", ""], "self", FIRE_CYCLES]]
    handlers["quit"] = [["try", [["cancel", place]]] for place in range(4)]
    return handlers


def _crowded(dice: Dice) -> list[Any]:
    """Return an operation that sets a timer which is due soon."""
    delay = dice.pick((2, 2, 3, 1, 3, 2, 5))
    envelope = ["cbor", dice.pick(("tick", "spend", "purge", "tick", "crowd")), ""]
    gas_limit = dice.pick((25_000, 20_000, 34_000, None, 15_000, 12_000, 10_000))
    return ["timeout", delay, envelope, dice.pick(AGENTS), gas_limit]


def _translate(dice: Dice, operations: list[Any]) -> None:
    """Let a script set timers of the auction in place of others, at any depth, but for a few."""
    for operation in operations:
        if operation[0] == "schedule" and dice.often(95):
            _, delay, envelope, _, gas_limit, _ = operation
            agent = dice.pick((*AGENTS, "self")) if dice.often(93) else dice.pick(("@ghost", "@alice", "zero"))
            operation[:] = ["timeout", delay, envelope, agent, gas_limit]
        if operation[0] in ("try", "repeat"):
            _translate(dice, operation[-1])
    if dice.often(4):
        operations.insert(0, ["try", [dice.pick((["agent", None], ["extend", 0, 5], ["lane"]))]])


def _bidding(dice: Dice) -> list[Any]:
    """Return how an agent answers: mostly well, or in one of many wrong ways."""
    answer = ["answer", _good(dice)]
    if dice.often(70):
        return [["charge", dice.pick((1, 300, 3_000))], answer]
    if dice.often(50):
        return [_malformed(dice)]
    forbidden = dice.pick(
        (
            ["set", "x", "aa"],
            ["emit", "note", "00"],
            ["send", "self", "01"],
            ["transfer", "@alice", 1],
            ["timeout", 1, ["raw", ""], "self", 15_000],
            ["cancel", 0],
            ["call", "@a1", "tick", "", 5_000],
        )
    )
    return dice.pick(
        ([["loop"]], [["fail"]], [forbidden, answer], [["try", [forbidden]], answer], [["charge", 20_000]])
    )


def _good(dice: Dice) -> dict[str, Any]:
    """Return an answer that is a bid as long as the basefee stays: constant, rising with the delay, or anyhow."""
    tip = dice.pick(
        (
            0,
            5,
            [BASEFEE, 1, 4, 0],
            ["mix", 1, 1, 0],
            ["current_block_height", 2, 1, 0],
            ["last_block_cycle_usage", 1, 9, 0],
        )
    )
    max_fee = dice.pick(([BASEFEE, 2, 1, 0], [BASEFEE, 3, 1, 70_000], [BASEFEE, 1, 1, 0], [BASEFEE, 9, 8, 1], 10**6))
    if dice.often(15):
        # Below the basefee: priced out.
        max_fee, tip = [BASEFEE, 1, 1, -1], dice.pick((0, 1))
    answer: dict[str, Any] = {MAX_FEE: max_fee, TIP: tip}
    if dice.often(40):
        # Enough for a tip or not, and now and then too little: it waits.
        answer[CELL_FEE] = dice.pick(
            (["basefee_cell", 1, 1, 0], ["basefee_cell", 2, 1, 1], ["basefee_cell", 1, 1, -1], 10_050, ["mix", 1, 3, 0])
        )
        answer[CELL_TIP] = dice.pick((0, 7, 40))
    elif dice.often(25):
        answer[CELL_TIP] = 0
    return answer


def _malformed(dice: Dice) -> list[Any]:
    good: dict[str, Any] = {MAX_FEE: [BASEFEE, 2, 1, 0], TIP: 1}
    wrong: tuple[dict[str, Any], ...] = (
        {**good, MAX_FEE: -1},
        {**good, TIP: [BASEFEE, 2, 1, 1]},
        {**good, MAX_FEE: 2**127},
        {**good, CELL_TIP: 1},
        {**good, CELL_FEE: ["basefee_cell", 1, 1, 0], CELL_TIP: ["basefee_cell", 1, 1, 1]},
        {**good, TIP: True},
        {**good, TIP: "1"},
        {**good, "max_priority_fee_per_cycle": 1},
        {MAX_FEE: 10**6},
        {},
        {MAX_FEE: 2**127 - 1, TIP: 2**126},
    )
    if dice.often(30):
        return ["return", dice.pick(("01", "", "b9000100", "a000", "80", "ff"))]
    return ["answer", dice.pick(wrong)]


# Transactions


def _call(dice: Dice, fire: int) -> Call:
    if dice.often(40):
        return crowding(dice, dice.pick(AGENTS))
    if dice.often(20):
        money = ("FundActor", (dice.pick(AGENTS), fire * dice.pick((1, 3, 10))))
        return Call("alice", *money, 12_000, 600, "double", (0, 0), "")
    if dice.often(22):
        key, value = _vote(dice)
        return Call("governor", "SetGovParam", (key, value.to_bytes(8, "big")), 30_000, 600, "double", (0, 0), "")
    return plain.random_call(dice)


def _vote(dice: Dice) -> tuple[bytes, int]:
    if dice.often(25):
        return b"system:auction:rescale_weights", dice.pick((0, 2 * UNIT, UNIT // 2, 10 * UNIT, 10 * UNIT + 1, 1))
    name, values = dice.pick(
        (
            ("budget_cycles", (70_000, 60_000, 200_000, 30_000)),
            ("gba_max_cycles", (12_000, 30_000, 9_999)),
            ("gba_cycles_per_block", (40_000, 21_000, 10**6, 1)),
            ("decay", (0, UNIT, 300_000_000, UNIT + 1)),
            ("weight_min", (1, 300_000_000, 500_000_001)),
            ("weight_max", (700_000_000, UNIT, 500_000_000, 1)),
            ("starvation_blocks", (1, 3, 5, 0)),
            ("starvation_floor", (1, 450_000_000, UNIT)),
            ("delays_max", (1, 3, 6, 100, 0)),
            ("delay_action", (0, 1, 2, 3)),
            ("delay_penalty_cycles", (0, 1, 10**6)),
        )
    )
    return b"system:auction:" + name.encode(), dice.pick(values)
