"""Options that many commands have, each defined once."""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from trailboss.chain.development import ACCOUNT_COUNT, DEPLOYER
from trailboss.cli.lazy import AS_JSON

DIRECTORY: Final = "chain"
"""Where a chain is looked for if nobody says."""
DIRECTORY_PATH: Final = Path(DIRECTORY)
DIRECTORY_VARIABLE: Final = "TRAILBOSS_CHAIN"
URL_VARIABLE: Final = "COWBOY_RPC_URL"
KEY_VARIABLE: Final = "COWBOY_PRIVATE_KEY"
LIMIT: Final = 50
"""Rows of a list, unless told otherwise."""
WHO: Final = "an address, deployer, or the number of an account, from 0 on"
"""How an account is named."""
ANYONE: Final = f"{WHO}; of an actor the first digits are enough"
"""How an account or an actor is named."""
PAYLOAD: Final = "Text, 0x… for bytes, or @FILE."


def _remember_json(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[AS_JSON] = wanted
    return wanted


def complete_account(incomplete: str) -> list[str]:
    """Return the names of development accounts that begin so."""
    names = [*(str(index) for index in range(ACCOUNT_COUNT)), DEPLOYER]
    return [name for name in names if name.startswith(incomplete)]


def default_directory() -> Path:
    """Return the directory that commands use if none is named."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or DIRECTORY)


AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead.", callback=_remember_json, is_eager=True)
]
Directory = Annotated[
    Path,
    typer.Option("--chain", metavar="DIR", envvar=DIRECTORY_VARIABLE, help="The chain's directory."),
]
Place = Annotated[
    str,
    typer.Option(
        "--chain",
        "--url",
        "--rpc-url",
        metavar="DIR|URL",
        envvar=[DIRECTORY_VARIABLE, URL_VARIABLE],
        help="The chain's directory, or the URL of a node.",
    ),
]
Impersonated = Annotated[
    str | None,
    typer.Option(
        "--impersonate",
        metavar="WHO",
        help="Send it unsigned, as this account: on a development chain.",
        show_default=False,
    ),
]
Sender = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHO",
        help=f"Who signs and pays: {WHO}. [dim]\\[default: the account of the private key, else 0][/dim]",
        autocompletion=complete_account,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--private-key",
        metavar="HEX|FILE",
        envvar=KEY_VARIABLE,
        show_default=False,
        help="Key that signs: 64 hexadecimal digits, or a file that holds them.",
    ),
]
CyclesLimit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most cycles it may use.", show_default=False)
]
CellsLimit = Annotated[int | None, typer.Option(min=0, metavar="N", help="Most cells it may use.", show_default=False)]
Limit = Annotated[int, typer.Option(min=0, metavar="N", help="Rows at most; 0 for all.")]
