"""Random histories: who deploys which scripts, and who sends what in which block.

A history is plain data, so that a failing one can be read and kept. What depends on the state of the chain, such as
nonces, fee caps and ids of live timers, is filled in when a block is built; see `tests.model.session`.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")

USERS = ("alice", "bob", "dan", "governor")
RICH = 10**13
BALANCES = {"alice": RICH, "bob": RICH, "dan": 4 * 10**9, "governor": RICH}
ACTORS = ("a0", "a1", "a2")
NAMES = tuple("@" + name for name in (*USERS, *ACTORS, "ghost"))
MESSAGE_CYCLES = 30_000
FIRE_CYCLES = 60_000
CALLED = ("tick", "spend", "go", "purge")


class Call(NamedTuple):
    """A transaction to be made.

    Attributes:
        user: Who signs it.
        kind: Instruction.
        args: Its arguments; names begin with "@", ("timer", n) is the id of the nth live timer, ("payer", 0) who pays
            the next fire, and ("cost", n) what that account lacks for it, and n more.
        cycles_limit: Cycles.
        cells_limit: Cells.
        cap: What the fee caps are to the basefees: "exact", "double" or "low".
        tips: Priority fees a cycle and a cell.
        flaw: What is wrong with it, or empty: "signature", "chain", "nonce".
    """

    user: str
    kind: str
    args: tuple[Any, ...]
    cycles_limit: int
    cells_limit: int
    cap: str
    tips: tuple[int, int]
    flaw: str


class History(NamedTuple):
    """Parameters, the actors' sources, and blocks: a list of transactions, or a number of blocks without any."""

    overrides: dict[str, int]
    sources: tuple[str, ...]
    blocks: tuple[tuple[Call, ...] | int, ...]
    mechanism: str = "fifo"


class Dice:
    """Chances, from Hypothesis or from a seed."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items, the first ones being the simplest."""
        return items[self.integer(0, len(items) - 1)]

    def often(self, percent: int) -> bool:
        """Return true in so many of a hundred cases."""
        return self.integer(0, 99) >= 100 - percent


def seeded(seed: int) -> Dice:
    """Return dice that fall as a seed says."""
    return Dice(Random(seed).randint)


@st.composite
def histories(draw: Callable[..., Any], blocks_max: int = 14) -> History:
    """Return a strategy for histories."""
    return history(Dice(lambda least, most: draw(st.integers(least, most))), blocks_max)


def history(dice: Dice, blocks_max: int = 14) -> History:
    """Throw a history."""
    sources = tuple(json.dumps(random_source(dice)) for _ in ACTORS)
    blocks: list[tuple[Call, ...] | int] = [opening()]
    for _ in range(dice.integer(blocks_max // 3, blocks_max)):
        calls = tuple(random_call(dice) for _ in range(dice.integer(0, 4)))
        blocks.append(dice.pick((1, 2, 3, 5, 8, 25)) if dice.often(25) else calls)
    blocks.append(dice.pick((4, 12)))
    return with_cells(dice, History(small_overrides(dice), sources, tuple(blocks)))


def with_cells(dice: Dice, unbounded: History) -> History:
    """Return a history in which, mostly, the cells of a block's fires are bounded, and governance may change that."""
    overrides, blocks = dict(unbounded.overrides), list(unbounded.blocks)
    overrides["timers.lane_cells_per_block"] = dice.pick((0, 1_500, 2_500))
    place, value = dice.integer(0, len(blocks) - 1), dice.pick((1_000, 2_000, 0, 300))
    voting = blocks[place]
    if isinstance(voting, tuple) and dice.often(50):
        args = b"system:timers:lane_cells_per_block", value.to_bytes(8, "big")
        blocks[place] = (*voting, Call("governor", "SetGovParam", args, 30_000, 600, "double", (0, 0), ""))
    return unbounded._replace(overrides=overrides, blocks=tuple(blocks))


def small_overrides(dice: Dice) -> dict[str, int]:
    """Return parameters so small that everything overflows soon."""
    return {
        "fees.cycles_target": dice.pick((150_000, 400_000)),
        "fees.cells_target": 3_000,
        "costs.deploy_byte": 1,  # what these histories' limits leave for it
        "limits.block_cycles_max": 700_000,
        "limits.block_cells_max": 20_000,
        "limits.call_depth_max": 2,
        "limits.message_cycles": MESSAGE_CYCLES,
        "limits.message_cells": 500,
        "limits.messages_pending_max": 3,
        "limits.messages_delivered_max": 2,
        "timers.max_ttl_blocks": 12,
        "timers.max_cycles_per_fire": FIRE_CYCLES,
        "timers.max_cells_per_fire": 1_000,
        "timers.max_timers_per_actor": dice.pick((8, 20, 4)),
        "timers.gc_cycles_per_block": dice.pick((200, 5_000, 400)),
        "timers.lane_cycles_per_block": dice.pick((60_000, 200_000, 100_000)),
        "timers.due_examined_max": dice.pick((100, 3, 6)),
        "timers.dead_examined_max": dice.pick((256, 1, 2)),
    }


def opening() -> tuple[Call, ...]:
    """Return the first block: all actors are deployed, and most get money."""
    calls = []
    for index in range(len(ACTORS)):
        owner = USERS[index % 2]
        calls.append(Call(owner, "DeployActor", (index,), 200_000, 6_000, "double", (0, 0), ""))
    for index, amount in enumerate((20 * 10**9, 2 * 10**9)):
        calls.append(Call("alice", "FundActor", ("@" + ACTORS[index], amount), 12_000, 600, "double", (1, 1), ""))
    return tuple(calls)


# Scripts


def random_source(dice: Dice) -> dict[str, list[Any]]:
    """Return an actor's handlers."""
    handlers = {name: _operations(dice, 4) for name in ("go", "tick", "spend", "handle_timer", "handle_message")}
    if dice.often(30):
        # Who calls itself keeps its caller, who may then be asked to pay.
        handlers["go"].append(["call", "self", "spend", "04", 40_000])
        handlers["spend"].insert(0, ["schedule", 2, ["raw", "0a"], "sender", 25_000, None])
    if dice.often(60):
        handlers["init"] = [["try", _operations(dice, 2)]] if dice.often(80) else _operations(dice, 2)
    # Every actor can be asked to fill a height, to touch any timer, and to cancel what is due beside it.
    crowd = _schedule(dice, 95)
    if dice.often(50):
        # They live hardly longer than they have to wait, and some will wait for the lane and then for their removal.
        crowd[5] = min(12, max(1, crowd[1] + dice.pick((1, 0, 2))))
    handlers["crowd"] = [["repeat", dice.integer(3, 8), [["try", [crowd]]]], *_operations(dice, 1)]
    handlers["touch"] = [dice.pick((["cancel", "payload"], ["extend", "payload", dice.pick((3, 0, 40))]))]
    handlers["purge"] = [["cancel", place] for place in range(dice.integer(1, 4))] + _operations(dice, 1)
    sibling = ["schedule", dice.integer(1, 3), ["cbor", "purge", ""], dice.pick((None, "@alice")), 25_000, None]
    handlers["siblings"] = [["repeat", dice.integer(2, 4), [sibling]]]
    if dice.often(25):
        handlers["purge"].append(["fail"])
    return handlers


def _operations(dice: Dice, most: int) -> list[Any]:
    return [_operation(dice) for _ in range(dice.integer(0, most))]


def _operation(dice: Dice, depth: int = 0) -> list[Any]:
    if depth < 2 and dice.often(25):
        return ["try", [_operation(dice, depth + 1) for _ in range(dice.integer(1, 3))]]
    if dice.often(45):
        return _schedule(dice, 85)
    callee = dice.pick((*NAMES[4:7], "@ghost", "@ghost"))
    on_behalf = dice.pick(("sender", "@alice", "sender", "@bob"))
    return dice.pick(
        (
            dice.pick((["defer", "tick", "04"], ["charge", 3_000], ["charge", 20_000])),
            ["set", dice.pick(("x", "y")), "ab" * dice.pick((1, 40, 700))],
            ["delete", "x"],
            ["extend", dice.integer(0, 3), dice.pick((5, 1, 0, 12, 30))],
            ["cancel", dice.integer(0, 3)],
            ["cancel", dice.integer(0, 3)],
            ["transfer", dice.pick(("sender", *NAMES)), dice.pick((1, 10**9))],
            ["transfer", dice.pick(NAMES), 10**12],
            ["emit", "note", "00" * dice.pick((0, 3))],
            ["send", dice.pick((*NAMES[4:7], "self", "@alice")), "01"],
            ["try", [["schedule", dice.pick((1, 2, 5)), ["raw", "08"], on_behalf, 25_000, None]]],
            ["try", [["schedule", dice.pick((1, 2, 5)), ["raw", "09"], on_behalf, 25_000, None]]],
            ["call", callee, dice.pick(CALLED), "02", dice.pick((40_000, 8_000))],
            ["call", "self", dice.pick(CALLED), "03", dice.pick((40_000, 20_000))],
            ["return", "0102"],
            dice.pick((["charge", 1], ["fail"], ["loop"])),
        )
    )


def _schedule(dice: Dice, valid: int) -> list[Any]:
    """Return an operation that schedules; so many of a hundred break no rule by themselves."""
    delay = dice.pick((1, 2, 3, 2, 4, 6, 9, 30))
    value = dice.pick(("", "07"))
    handler = "missing" if dice.often(7) else dice.pick(("tick", "spend", "purge", "crowd"))
    envelope = dice.pick((["raw", value], ["cbor", handler, value], ["json", handler, value]))
    payer, gas_limit, life = dice.pick((None, "self")), dice.pick((None, 25_000, 40_000, 15_000)), None
    if dice.often(35):
        life = min(12, dice.pick((delay, delay + 1, 12, 1)))
    if dice.often(5):
        gas_limit = 9_000
    if dice.often(22):
        payer = dice.pick(("sender", "@alice", "@bob", "@dan"))
    if not dice.often(valid):
        match dice.integer(0, 3):
            case 0:
                delay = dice.pick((0, -1))
            case 1:
                payer = dice.pick(("zero", "system", "@ghost"))
            case 2:
                gas_limit = dice.pick((0, FIRE_CYCLES + 1))
            case _:
                life = dice.pick((0, 13, -1))
    return ["schedule", delay, envelope, payer, gas_limit, life]


# Transactions


def random_call(dice: Dice) -> Call:
    """Return a transaction of any kind."""
    kind = dice.integer(0, 32)
    user = dice.pick(USERS) if dice.often(20) else dice.pick(("alice", "bob"))
    actor = dice.pick(NAMES[4:7])
    timer = ("timer", dice.integer(0, 9))
    instruction: tuple[str, tuple[Any, ...]]
    if kind <= 14:
        handler = "missing" if dice.often(4) else dice.pick(("crowd", "siblings", "go", "tick", "spend"))
        instruction = ("ExecuteActor", (actor, handler, b"\x05" * dice.integer(0, 3)))
    elif kind <= 17:
        instruction = ("ExecuteActor", (actor, "touch", timer))
    elif kind <= 20:
        instruction = ("FundActor", (dice.pick((*NAMES[4:7], *NAMES[4:])), dice.pick((10**9, 4 * 10**9))))
    elif kind <= 22:
        instruction = ("Transfer", (("payer", 0), ("cost", dice.pick((-1, 0)))))
    elif kind <= 23:
        instruction = ("Transfer", (dice.pick(NAMES), dice.pick((1, 10**9, 10**13))))
    elif kind <= 24:
        instruction = ("DeployActor", (dice.integer(0, len(ACTORS)),))
    else:
        user = "governor" if dice.often(85) else user
        instruction = _governance(dice, kind, timer)
    cycles_limit = dice.pick((120_000, 60_000, 120_000, 30_000, 300_000))
    if dice.often(4):
        cycles_limit = 690_000
    cells_limit = dice.pick((3_000, 1_000))
    if instruction[0] == "DeployActor":
        cycles_limit, cells_limit = 200_000, 6_000
    if dice.often(6):
        cycles_limit = dice.pick((4_000, 14_000))
    if dice.often(3):
        cells_limit = 2
    cap = "low" if dice.often(3) else dice.pick(("double", "exact"))
    tips = dice.pick(((0, 0), (3, 1), (50_000, 50_000)))
    flaw = dice.pick(("nonce", "signature", "chain")) if dice.often(4) else ""
    return Call(user, *instruction, cycles_limit, cells_limit, cap, tips, flaw)


def _governance(dice: Dice, kind: int, timer: tuple[str, int]) -> tuple[str, tuple[Any, ...]]:
    if kind <= 26:
        return "CancelTimer", (timer,)
    if kind == 27:
        return "ExtendTimer", (timer, dice.pick((5, 0, 40)))
    if kind == 28:
        fire = dice.pick((FIRE_CYCLES, 30_000, 10_000, 90_000, 9_999, 10**6, 0))
        return "UpdateTimerConfig", (dice.pick((12, 5)), fire, dice.pick((1_000, 200)), dice.pick((8, 2)), 400)
    if kind == 29:
        return "UpdateLaneFeeMultipliers", (dice.pick((10_000, 12_345)), 10_000, dice.pick((15_000, 333, 0)), 10_000)
    if kind == 30:
        floor = dice.pick((10_000, 20_000, 1))
        return "UpdateBasefeeConfig", (8, dice.pick((8, 4)), floor, dice.pick((10**9, 5_000)), 150_000, 3_000, 0, 0)
    key, value = dice.pick(
        (
            (b"system:cip1:lane_timer_cycles", 120_000),
            (b"system:cip1:lane_timer_cycles", 50_000),
            (b"system:timers:gc_cycles_per_timer", 100),
            (b"system:timers:gc_cycles_per_timer", 10**6),
            (b"system:limits:messages_delivered_max", 1),
            (b"system:unknown", 1),
            (b"system:limits:block_cycles_max", 500_000),
            (b"system:limits:block_cells_max", 2_000),
        )
    )
    return "SetGovParam", (key, value.to_bytes(dice.pick((8, 8, 8, 7)), "big"))
