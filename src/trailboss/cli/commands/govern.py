"""``govern``: system instructions, from an account that may send them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Struct
from msgspec.structs import astuple

from trailboss.chain import ChainReader
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.lazy import group
from trailboss.cli.options import Actor, Number, TimerId, argument, completing, number, whole_number
from trailboss.cli.output import note
from trailboss.cli.targets import find_actor, find_timer
from trailboss.cli.upgrades import lost_calls
from trailboss.cli.values import SHOWN_MAX, parse_number, read_file
from trailboss.governance.parameters import EPOCHAL, GOVERNED, RESCALE_WEIGHTS
from trailboss.model import transactions
from trailboss.model.configs import amount_of
from trailboss.primitives.units import U64_MAX

govern = group("Send system instructions as the deployer.")
governing = command("governor", "private_key")

PARAMETERS: Final = {".".join(path): key for key, path in (GOVERNED | EPOCHAL).items()} | {
    "auction.rescale_weights": RESCALE_WEIGHTS
}
"""Key of SetGovParam by the path of the parameter that it sets; the last one multiplies what the state holds."""
ACTIVATION: Final = "lane.activation_height"
SWITCHES: Final = ("lane.clamps_gas_limit",)
SWITCH_WORDS: Final = {"on": 1, "1": 1, "off": 0, "0": 0}
WEIGHTS: Final = {"lane.weight_min", "lane.weight_max"} | {
    f"auction.{name}" for name in ("decay", "weight_min", "weight_max", "starvation_floor", "rescale_weights")
}
WEIGHT_UNIT: Final = 10**9  # what a weight of 1.0 is. Decision: D-11.
MULTIPLIERS: Final = ("lane.tier_economy", "lane.tier_standard", "lane.tier_fast", "lane.tier_urgent")
_AHEAD: Final = re.compile(r"\+(\d{1,20})", re.ASCII)


@govern.command("timer-config")
@governing
def timer_config(
    run: Invocation,
    max_ttl_blocks: Annotated[Number, number("Blocks a timer may live ahead.")] = None,
    max_cycles_per_fire: Annotated[Number, number("Cycles a fire may use.")] = None,
    max_cells_per_fire: Annotated[Number, number("Cells a fire may use.")] = None,
    max_timers_per_actor: Annotated[Number, number("Live timers of one actor.")] = None,
    gc_cycles_per_block: Annotated[Number, number("Cycles a block spends on removing dead timers.")] = None,
) -> None:
    """Set the parameters of timers; the others do not change.

    Example: trailboss govern timer-config --max-ttl-blocks 1000
    """
    given = (max_ttl_blocks, max_cycles_per_fire, max_cells_per_fire, max_timers_per_actor, gc_cycles_per_block)
    _change(run, transactions.UpdateTimerConfig, given, run.chain.rules().timer)


@govern.command("basefee-config")
@governing
def basefee_config(
    run: Invocation,
    alpha: Annotated[Number, number("Divisor of the distance from the target.")] = None,
    max_change_denom: Annotated[Number, number("Largest change of a basefee in a block: one part in N.")] = None,
    min_basefee: Annotated[Number, number("Floor, base units a unit.")] = None,
    max_basefee: Annotated[Number, number("Ceiling, base units a unit.")] = None,
    block_cycles_target: Annotated[Number, number("Cycles a block should use.")] = None,
    block_cells_target: Annotated[Number, number("Cells a block should use.")] = None,
    block_access_target: Annotated[Number, number("Stored and shown; it has no price here.")] = None,
    access_weight_scalar_ppm: Annotated[Number, number("Stored and shown; it has no price here.")] = None,
) -> None:
    """Set the parameters of the fee markets; the others do not change.

    Example: trailboss govern basefee-config --min-basefee 500
    """
    targets = (block_cycles_target, block_cells_target, block_access_target, access_weight_scalar_ppm)
    given = (alpha, max_change_denom, min_basefee, max_basefee, *targets)
    _change(run, transactions.UpdateBasefeeConfig, given, run.chain.rules().basefee)


@govern.command()
@governing
def multipliers(
    run: Invocation,
    user: Annotated[Number, number("For transactions.")] = None,
    runner: Annotated[Number, number("For runner results.")] = None,
    timer: Annotated[Number, number("For fires.")] = None,
    system: Annotated[Number, number("For system work.")] = None,
) -> None:
    """Set the fee multipliers by kind of work, in parts of 10,000; the others do not change.

    Example: trailboss govern multipliers --timer 12000
    """
    _change(run, transactions.UpdateLaneFeeMultipliers, (user, runner, timer, system), run.chain.rules().multipliers)


@govern.command("cancel-timer")
@governing
def cancel_timer(run: Invocation, timer_id: TimerId) -> None:
    """Cancel any timer.

    Example: trailboss govern cancel-timer 0x6e3d2443
    """
    _govern(run, transactions.CancelTimer(find_timer(run.chain, timer_id)))


@govern.command("extend-timer")
@governing
def extend_timer(
    run: Invocation,
    timer_id: TimerId,
    expires_at: Annotated[int, argument("HEIGHT", "Last height at which it may fire.", parser=whole_number(0))],
) -> None:
    """Change the last height at which any timer may fire.

    Example: trailboss govern extend-timer 0x6e3d2443 900
    """
    _govern(run, transactions.ExtendTimer(find_timer(run.chain, timer_id), expires_at))


@govern.command("set")
@governing
def set_parameter(
    run: Invocation,
    path: Annotated[str, argument("PATH", f"One of: {', '.join(PARAMETERS)}.", autocompletion=completing(PARAMETERS))],
    value: Annotated[
        str,
        argument(
            "VALUE",
            "A number. Multipliers and weights may be decimals, as 1.5; a switch is on or off. lane.activation_height "
            "takes a height, +N for N blocks ahead, or 0 to withdraw a vote. auction.rescale_weights multiplies all "
            "weights; 0 resets them.",
        ),
    ],
) -> None:
    """Set one governed parameter.

    Example: trailboss govern set lane.activation_height +100
    """
    if path not in PARAMETERS:
        others = "timer-config, basefee-config and multipliers set others"
        raise Mistake(f"{path!r} is not set by this instruction", f"give one of {', '.join(PARAMETERS)}; {others}")
    number = _setting(run.chain, path, value)
    _govern(run, transactions.SetGovParam(PARAMETERS[path], number.to_bytes(8, "big")))


@govern.command()
@governing
def upgrade(run: Invocation, actor: Actor, file: Annotated[Path, argument("FILE", "New source of the actor.")]) -> None:
    """Replace the code of an actor; its storage and its timers stay.

    It warns of handlers that live timers call and the new code lacks, as `trailboss check --actor` does before.

    Example: trailboss govern upgrade 0x044d2D5f clock.py
    """
    code, address = read_file(file, "source"), find_actor(run.chain, actor)
    for each in lost_calls(run.chain, address, code):
        note(f"warning: {each}")
    _govern(run, transactions.UpgradeActor(address, code))


def _setting(chain: ChainReader, path: str, text: str) -> int:
    """Return the number that a parameter is to be set to.

    Raises:
        Mistake: If the text is none, or does not fit 64 bits.
    """
    ahead = _AHEAD.fullmatch(text)
    if path == ACTIVATION and ahead is not None:
        number = chain.height + int(ahead[1])
    elif path in SWITCHES:
        if text.lower() not in SWITCH_WORDS:
            raise Mistake(f"{path} {text[:SHOWN_MAX]!r} is neither on nor off", "write on or off")
        number = SWITCH_WORDS[text.lower()]
    else:
        unit = WEIGHT_UNIT if path in WEIGHTS else chain.params.fees.lane_multiplier_unit if path in MULTIPLIERS else 1
        number = parse_number(path, text, unit)
    if number > U64_MAX:
        raise Mistake(f"{path} {number} is too large", f"{U64_MAX} is the most that its 8 bytes hold")
    return number


Configuration = (
    transactions.UpdateTimerConfig | transactions.UpdateBasefeeConfig | transactions.UpdateLaneFeeMultipliers
)


def _change(run: Invocation, kind: type[Configuration], given: Sequence[int | None], present: Struct) -> None:
    """Send an instruction with the values given, else the present ones: its fields stand in the order of the record's.

    Raises:
        Mistake: If none is given.
    """
    if all(value is None for value in given):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in kind.__struct_fields__)
        raise Mistake("nothing is given to set", f"give at least one of {options}")
    kept: list[int] = [amount_of(value) if isinstance(value, bytes) else value for value in astuple(present)]
    _govern(run, kind(*(old if new is None else new for new, old in zip(given, kept, strict=True))))


def _govern(run: Invocation, instruction: transactions.Instruction) -> None:
    run.show_receipts({"instruction": run.send(instruction)[0]})
