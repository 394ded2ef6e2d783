"""Options and arguments that several commands have, each defined once."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from trailboss.chain.development import ACCOUNT_COUNT, ACCOUNTS_MAX, DEPLOYER
from trailboss.chain.opening import MECHANISM, PRESET
from trailboss.cli.lazy import AS_JSON
from trailboss.cli.values import SHOWN_MAX, parse_amount
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.params.loader import PRESETS
from trailboss.primitives.units import U64_MAX
from trailboss.sandbox.engines import EngineName

DIRECTORY: Final = "chain"  # where a chain is looked for by default
DIRECTORY_PATH: Final = Path(DIRECTORY)
DIRECTORY_VARIABLE: Final = "TRAILBOSS_CHAIN"
ENGINE_VARIABLE: Final = "TRAILBOSS_VM"
VARIABLES: Final = [DIRECTORY_VARIABLE, "COWBOY_RPC_URL"]
LIMIT: Final = 50  # rows of a list by default
WHO: Final = "an address, deployer, or the number of an account, from 0 on"
ANYONE: Final = f"{WHO}; of an actor the first digits are enough"
PAYLOAD: Final = "text, 0x… for bytes, or @FILE"
KEPT: Final = "unchanged"


def option(metavar: str, text: str, default: str | None = None, name: str | None = None, **settings: Any) -> Any:
    """Return an option; ``default`` describes its default where the value itself does not."""
    shown = text if default is None else f"{text}  [default: {default}]"
    names = name.split() if name else ()
    return typer.Option(*names, metavar=metavar, help=shown, show_default=default is None, **settings)


def flag(name: str, text: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*name.split(), help=text)


def argument(metavar: str, text: str, default: str | None = None, **settings: Any) -> Any:
    """Return an argument; ``default`` describes what happens without it."""
    shown = text if default is None else f"{text}  [default: {default}]"
    return typer.Argument(metavar=metavar, help=shown, show_default=False, **settings)


def number(text: str, default: str | None = None, metavar: str = "N", least: int = 0, most: int | None = None) -> Any:
    """Return an option that takes a whole number."""
    return option(metavar, text, default, parser=whole_number(least, most))


def height(text: str, default: str | None = None, least: int = 0) -> Any:
    """Return an option that takes a block height."""
    return number(text, default, "H", least, U64_MAX)


def money(text: str, default: str | None = None) -> Any:
    """Return an option that takes an amount."""
    return option("AMOUNT", text, default, parser=parse_amount)


def whole_number(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """Return a reader of whole numbers within a range, both ends included."""

    def parse(text: str | int) -> int:
        shown = str(text)[:SHOWN_MAX]
        try:
            found = int(text)
        except ValueError:
            raise typer.BadParameter(f"{shown!r} is not a whole number.") from None
        if found < least:
            raise typer.BadParameter(f"{shown} is too small: give {least} or more.")
        if most is not None and found > most:
            raise typer.BadParameter(f"{shown} is too large: give {most} or less.")
        return found

    return parse


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """Return a reader of one of some names."""

    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(names)}.")
        return text

    return parse


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what completes a name that has begun."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


complete_account = completing((*map(str, range(ACCOUNT_COUNT)), DEPLOYER))


def _signer(text: str, other: str) -> Any:
    default = f"account of the private key, else {other}"
    return option("WHO", text, default, name="--from", autocompletion=complete_account)


def _remember_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[AS_JSON] = wanted
    return wanted


Number = int | None
Text = str | None
Texts = list[str] | None

# The chain and the output
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead.", callback=_remember_json, is_eager=True)
]
Limit = Annotated[int, number("Most rows; 0 for all.")]
Directory = Annotated[Path, option("DIR", "Directory of the chain.", name="--chain", envvar=DIRECTORY_VARIABLE)]
Place = Annotated[
    str,
    option("DIR|URL", "Directory of the chain, or URL of a node.", None, "--chain --url --rpc-url", envvar=VARIABLES),
]

# A new chain
Preset = Annotated[Text, option("NAME", f"Parameters: {', '.join(PRESETS)}.", PRESET)]
Mechanism = Annotated[Text, option("NAME", f"What selects due timers: {', '.join(MECHANISMS)}.", MECHANISM)]
Params = Annotated[Texts, option("PATH=VALUE", "Set a parameter; may be repeated.")]
Engine = Annotated[
    Text,
    option(
        "NAME",
        f"What runs actors: {', '.join(EngineName)}.",
        "sandbox where it is built, else native",
        "--vm",
        envvar=ENGINE_VARIABLE,
    ),
]
Accounts = Annotated[Number, number("Funded accounts.", str(ACCOUNT_COUNT), least=1, most=ACCOUNTS_MAX)]

# A transaction
Sender = Annotated[Text, _signer(f"Signer and payer: {WHO}.", "0")]
Governor = Annotated[Text, _signer("Signer and payer.", "deployer")]
Key = Annotated[
    Text,
    option(
        "HEX|FILE", "Key that signs: 64 hexadecimal digits, or a file that holds them.", envvar="COWBOY_PRIVATE_KEY"
    ),
]
Impersonated = Annotated[Text, option("WHO", "Development chains: send unsigned, as this account.")]
CyclesLimit = Annotated[Number, number("Most cycles it may use.", least=1)]
CellsLimit = Annotated[Number, number("Most cells it may use.")]

# A dry run
DryRun = Annotated[bool, flag("--dry-run", "Simulate it as the next block would: nothing is sent, nothing changes.")]
AtHeight = Annotated[Number, height("Dry run: as after the block of this height.", "the last block")]
Assume = Annotated[
    Texts,
    option(
        "WHAT",
        "Dry run: take the state to be otherwise, as balance:WHO=AMOUNT, slot:ACTOR:NAME=VALUE, slot:ACTOR:NAME for "
        "no such slot, code:ACTOR=FILE, cycle_basefee=N, cell_basefee=N, lane_basefee=N; may be repeated.",
    ),
]

# Subjects
Who = Annotated[str, argument("WHO", f"Account: {ANYONE}.", autocompletion=complete_account)]
Actor = Annotated[str, argument("ACTOR", "Address of the actor, or its first digits.")]
TimerId = Annotated[str, argument("ID", "Id of the timer, or its first digits.")]
Amount = Annotated[str, argument("AMOUNT", "Base units, or CBY as 1.5cby.")]
