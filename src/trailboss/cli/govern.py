"""``trailboss govern``: system instructions, from an account that may send them."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from trailboss.chain import ChainReader
from trailboss.chain.development import DEPLOYER
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import OpenChain, Signer, find_actor, find_timer, open_chain, resolve_signer
from trailboss.cli.options import DIRECTORY, AsJson, Key, Place, complete_account
from trailboss.cli.parsing import SHOWN_MAX, parse_number, read_file
from trailboss.cli.receipts import send, show_receipts
from trailboss.governance.parameters import EPOCHAL, GOVERNED, RESCALE_WEIGHTS
from trailboss.model.configs import amount_of
from trailboss.model.transactions import (
    CancelTimer,
    ExtendTimer,
    Instruction,
    SetGovParam,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
    UpgradeActor,
)
from trailboss.primitives.units import U64_MAX

govern = typer.Typer(no_args_is_help=True, add_completion=False, help="Send system instructions, as the deployer.")

Governor = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHO",
        help="Who signs and pays. [dim]\\[default: the account of the private key, else deployer][/dim]",
        autocompletion=complete_account,
    ),
]
TimerId = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first digits of it.", show_default=False)]
Number = int | None
PARAMETERS: Final = {".".join(path): key for key, path in (GOVERNED | EPOCHAL).items()} | {
    "auction.rescale_weights": RESCALE_WEIGHTS
}
"""Key of SetGovParam by the path of the parameter that it sets; the last one multiplies what the state holds."""
ACTIVATION: Final = "lane.activation_height"
SWITCHES: Final = ("lane.clamps_gas_limit",)
SWITCH_WORDS: Final = {"on": 1, "1": 1, "off": 0, "0": 0}
WEIGHTS: Final = (
    "lane.weight_min",
    "lane.weight_max",
    "auction.decay",
    "auction.weight_min",
    "auction.weight_max",
    "auction.starvation_floor",
    "auction.rescale_weights",
)
WEIGHT_UNIT: Final = 10**9
"""What a weight of 1.0 is. Decision: D-11."""
MULTIPLIERS: Final = ("lane.tier_economy", "lane.tier_standard", "lane.tier_fast", "lane.tier_urgent")
_AHEAD: Final = re.compile(r"\+(\d{1,20})", re.ASCII)


@govern.command("timer-config")
def timer_config(
    max_ttl_blocks: Annotated[Number, typer.Option(metavar="N", help="Blocks a timer may live ahead.")] = None,
    max_cycles_per_fire: Annotated[Number, typer.Option(metavar="N", help="Cycles a fire may use.")] = None,
    max_cells_per_fire: Annotated[Number, typer.Option(metavar="N", help="Cells a fire may use.")] = None,
    max_timers_per_actor: Annotated[Number, typer.Option(metavar="N", help="Live timers of one actor.")] = None,
    gc_cycles_per_block: Annotated[
        Number, typer.Option(metavar="N", help="Cycles a block spends on removing dead timers.")
    ] = None,
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set the parameters of timers; those not given stay as they are."""
    given = {
        "max_ttl_blocks": max_ttl_blocks,
        "max_cycles_per_fire": max_cycles_per_fire,
        "max_cells_per_fire": max_cells_per_fire,
        "max_timers_per_actor": max_timers_per_actor,
        "gc_cycles_per_block": gc_cycles_per_block,
    }
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        present = chain.rules().timer
        values = _merged(given, {name: getattr(present, name) for name in given})
        _govern(chain, signer, UpdateTimerConfig(**values), as_json=as_json)


@govern.command("basefee-config")
def basefee_config(
    alpha: Annotated[Number, typer.Option(metavar="N", help="Divisor of the distance from the target.")] = None,
    max_change_denom: Annotated[
        Number, typer.Option(metavar="N", help="A basefee moves by at most one part in this many a block.")
    ] = None,
    min_basefee: Annotated[Number, typer.Option(metavar="N", help="Floor, base units a unit.")] = None,
    max_basefee: Annotated[Number, typer.Option(metavar="N", help="Ceiling, base units a unit.")] = None,
    block_cycles_target: Annotated[Number, typer.Option(metavar="N", help="Cycles a block should use.")] = None,
    block_cells_target: Annotated[Number, typer.Option(metavar="N", help="Cells a block should use.")] = None,
    block_access_target: Annotated[
        Number, typer.Option(metavar="N", help="Stored and shown; it has no price here.")
    ] = None,
    access_weight_scalar_ppm: Annotated[
        Number, typer.Option(metavar="N", help="Stored and shown; it has no price here.")
    ] = None,
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set the parameters of the fee markets; those not given stay as they are."""
    given = {
        "alpha": alpha,
        "max_change_denom": max_change_denom,
        "min_basefee": min_basefee,
        "max_basefee": max_basefee,
        "block_cycles_target": block_cycles_target,
        "block_cells_target": block_cells_target,
        "block_access_target": block_access_target,
        "access_weight_scalar_ppm": access_weight_scalar_ppm,
    }
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        config = chain.rules().basefee
        present = (
            config.alpha,
            config.max_change_denominator,
            amount_of(config.min_basefee),
            amount_of(config.max_basefee),
            config.cycles_target,
            config.cells_target,
            config.access_target,
            config.access_weight_scalar_ppm,
        )
        values = _merged(given, dict(zip(given, present, strict=True)))
        _govern(chain, signer, UpdateBasefeeConfig(**values), as_json=as_json)


@govern.command()
def multipliers(
    user: Annotated[Number, typer.Option(metavar="N", help="Of transactions.")] = None,
    runner: Annotated[Number, typer.Option(metavar="N", help="Of runner results.")] = None,
    timer: Annotated[Number, typer.Option(metavar="N", help="Of fires.")] = None,
    system: Annotated[Number, typer.Option(metavar="N", help="Of system work.")] = None,
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set the fee multipliers of the lanes, in parts of 10,000; those not given stay as they are."""
    given = {"user": user, "runner": runner, "timer": timer, "system": system}
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        present = chain.rules().multipliers
        values = _merged(given, {name: getattr(present, name) for name in given})
        _govern(chain, signer, UpdateLaneFeeMultipliers(**values), as_json=as_json)


@govern.command("cancel-timer")
def cancel_timer(
    timer_id: TimerId,
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Cancel anybody's timer."""
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        _govern(chain, signer, CancelTimer(find_timer(chain, timer_id)), as_json=as_json)


@govern.command("extend-timer")
def extend_timer(
    timer_id: TimerId,
    expires_at: Annotated[
        int, typer.Argument(metavar="HEIGHT", min=0, help="Last height at which it may fire.", show_default=False)
    ],
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Move the last height at which anybody's timer may fire."""
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        _govern(chain, signer, ExtendTimer(find_timer(chain, timer_id), expires_at), as_json=as_json)


@govern.command("set")
def set_parameter(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help=f"One of: {', '.join(PARAMETERS)}.",
            show_default=False,
            autocompletion=lambda incomplete: [name for name in PARAMETERS if name.startswith(incomplete)],
        ),
    ],
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            help="A number. Of lane.activation_height also +N, blocks ahead of the present one, and 0, which withdraws "
            "a vote still ahead; of multipliers and weights also a decimal number, as 1.5; of a switch on or off. "
            "auction.rescale_weights multiplies all weights, and 0 resets them.",
            show_default=False,
        ),
    ],
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set one governed parameter."""
    if path not in PARAMETERS:
        raise Mistake(
            f"{path!r} is not set by this instruction",
            f"give one of {', '.join(PARAMETERS)}; timer-config, basefee-config and multipliers set others",
        )
    signer = governing_signer(sender, private_key)
    with open_chain(place) as chain:
        number = _setting(chain, path, value)
        _govern(chain, signer, SetGovParam(PARAMETERS[path], number.to_bytes(8, "big")), as_json=as_json)


@govern.command()
def upgrade(
    actor: Annotated[
        str, typer.Argument(metavar="ACTOR", help="Its address, or the first digits of it.", show_default=False)
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Its new source.", show_default=False)],
    sender: Governor = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Replace the code of an actor; its storage and its timers stay."""
    code, signer = read_file(file, "source"), governing_signer(sender, private_key)
    with open_chain(place) as chain:
        _govern(chain, signer, UpgradeActor(find_actor(chain, actor), code), as_json=as_json)


def _setting(chain: ChainReader, path: str, text: str) -> int:
    """Return the number that a parameter is to be set to.

    Raises:
        Mistake: If the text is none, or does not fit 64 bits.
    """
    ahead = _AHEAD.fullmatch(text)
    if path == ACTIVATION and ahead is not None:
        number = chain.height + int(ahead[1])
    elif path in SWITCHES:
        number = _switch(path, text)
    elif path in WEIGHTS:
        number = parse_number(path, text, WEIGHT_UNIT)
    elif path in MULTIPLIERS:
        number = parse_number(path, text, chain.params.fees.lane_multiplier_unit)
    else:
        number = parse_number(path, text)
    if number > U64_MAX:
        raise Mistake(f"{path} {number} is too large", f"{U64_MAX} is the most that its 8 bytes hold")
    return number


def _switch(path: str, text: str) -> int:
    if text.lower() not in SWITCH_WORDS:
        raise Mistake(f"{path} {text[:SHOWN_MAX]!r} is neither on nor off", "write on or off")
    return SWITCH_WORDS[text.lower()]


def governing_signer(who: str | None, key: str | None) -> Signer:
    """Return who signs a system instruction: the deployer unless told otherwise."""
    return resolve_signer(DEPLOYER if who is None and key is None else who, key)


def _merged(given: dict[str, int | None], present: dict[str, int]) -> dict[str, int]:
    if all(value is None for value in given.values()):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise Mistake("nothing is given to set", f"give at least one of {options}")
    return {name: present[name] if value is None else value for name, value in given.items()}


def _govern(chain: OpenChain, signer: Signer, instruction: Instruction, *, as_json: bool) -> None:
    [receipt] = send(chain, signer, [instruction])
    show_receipts(chain, {"instruction": receipt}, as_json=as_json)
