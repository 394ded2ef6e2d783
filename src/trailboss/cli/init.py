"""``trailboss init``: make a chain in a directory."""

from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain import Chain
from trailboss.chain.development import ACCOUNT_BALANCE, ACCOUNT_COUNT, ACCOUNTS_MAX, development_genesis
from trailboss.cli.failures import Mistake
from trailboss.cli.options import DIRECTORY_VARIABLE, AsJson, default_directory
from trailboss.cli.output import print_facts, print_json
from trailboss.cli.parsing import parse_overrides, read_file
from trailboss.execution.genesis import Genesis, parse_genesis
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.params.loader import PRESETS
from trailboss.primitives.units import format_cby


def init(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", envvar=DIRECTORY_VARIABLE, help="Directory of the new chain. [dim]\\[default: chain][/dim]"
        ),
    ] = None,
    genesis_file: Annotated[
        Path | None, typer.Option("--genesis", metavar="FILE", help="Start from this genesis, a TOML file.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help=f"Parameters: {', '.join(PRESETS)}. [dim]\\[default: mainnet][/dim]", metavar="NAME"),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(help=f"What selects due timers: {', '.join(MECHANISMS)}.", metavar="NAME"),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="PATH=VALUE", help="Set a parameter; may be repeated.")
    ] = None,
    accounts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=ACCOUNTS_MAX,
            metavar="N",
            help=f"Fund so many accounts, from 0 on. [dim]\\[default: {ACCOUNT_COUNT}][/dim]",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a chain in a directory.

    Without a genesis file it is a development chain: it has ten funded accounts, 0 to 9, and one that may govern,
    deployer. Everybody knows their keys, and anybody may send for anybody: such a chain is for trying things out.

    Example: trailboss init play --mechanism lane --param timers.max_timers_per_actor=10000
    """
    place = directory or default_directory()
    genesis = _genesis(genesis_file, preset, mechanism, parse_overrides(param or []), accounts)
    chain = Chain.create(place, genesis)
    try:
        _show(chain, place, is_development=genesis_file is None, as_json=as_json)
    finally:
        chain.close()


def _show(chain: Chain, place: Path, *, is_development: bool, as_json: bool) -> None:
    genesis = chain.genesis
    if as_json:
        facts = {"chain_id": genesis.chain_id, "preset": genesis.preset, "mechanism": genesis.mechanism}
        print_json(
            {"directory": str(place), **facts, "instance_id": genesis.instance_id(), "state_root": chain.state_root}
        )
        return
    funded = f"{len(genesis.accounts)}, holding {format_cby(sum(genesis.accounts.values()))} CBY"
    if is_development:
        # The deployer stands among them.
        funded = f"0 to {len(genesis.accounts) - 2} and deployer, {format_cby(ACCOUNT_BALANCE)} CBY each"
    print_facts(
        {
            "chain": str(place),
            "rules": f"chain id {genesis.chain_id}, preset {genesis.preset}, mechanism {genesis.mechanism}",
            "accounts": funded,
            "state root": str(chain.state_root),
        }
    )


def _genesis(
    path: Path | None, preset: str | None, mechanism: str | None, overrides: dict[str, int], accounts: int | None
) -> Genesis:
    if path is None:
        return development_genesis(
            preset=preset or "mainnet",
            mechanism=mechanism or "fifo",
            overrides=overrides,
            accounts=ACCOUNT_COUNT if accounts is None else accounts,
        )
    if preset or mechanism or overrides or accounts:
        raise Mistake(
            "a genesis file has a preset, a mechanism, parameters and accounts of its own",
            "leave out --preset, --mechanism, --param and --accounts, or --genesis",
        )
    try:
        return parse_genesis(read_file(path, "genesis").decode())
    except UnicodeDecodeError as error:
        raise Mistake(f"the genesis {path} is not UTF-8 at byte {error.start}", "name a TOML file") from None
