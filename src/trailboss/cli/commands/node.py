"""``dev`` and ``node``: a chain that runs, with an API and an explorer."""

import gc
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from trailboss import __version__
from trailboss.chain.development import DEPLOYER, DevelopmentAccount, account_name, development_account
from trailboss.chain.opening import AUTOMATIC, GenesisOptions, funded_accounts, stated_genesis
from trailboss.cli import options as common
from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.sandbox import build_if_missing
from trailboss.cli.errors import NETWORK_INSTALL, NODE_INSTALL, STUDY_INSTALL, Mistake, installed
from trailboss.cli.options import Number, Text, Texts, flag, number, option
from trailboss.cli.output import columns, console, note, print_facts, print_json, print_table
from trailboss.cli.values import parse_overrides
from trailboss.node import options as node_options
from trailboss.node.options import Clock, LogForm, NodeOptions, Pace, Rhythm
from trailboss.primitives.units import format_cby
from trailboss.sandbox.engines import EngineName, engine_name
from trailboss.views.text import counted

if TYPE_CHECKING:
    from trailboss.network.home import Home
    from trailboss.node.service import Node

TEXT_COLUMNS: Final = 80
SHOWN_ACCOUNTS: Final = 20  # accounts that are listed; a document has them all
KEYS_BESIDE: Final = 130  # columns from which a private key fits beside its address
MS_PER_SECOND: Final = 1_000
SHOWN_DIGITS: Final = 8
DEVELOPMENT_CHAIN: Final = "is for development: its keys are public, and it takes unsigned transactions for any account"
NATIVE_CHAIN: Final = "runs actors in this process, where any of them can stop the node"
FOR_STRANGERS: Final = (
    f"listen on {node_options.HOST}, or start a chain whose genesis has your accounts and states the sandbox's image, "
    "with: trailboss init DIR --genesis FILE; see docs/how-to/node-for-strangers.md"
)
DEVELOPMENT_RIGHTS: Final = (
    "send transactions, set balances, go back in time, and act for every account",
    f"Listen on {node_options.HOST} unless you trust the whole network.",
)
PUBLIC_RIGHTS: Final = (
    "send transactions and run views",
    "Let a proxy alone reach it: the node encrypts nothing, and does not cut slow clients.",
)
NATIVE_DANGER: Final = ", and actors run in this process: one that never ends or takes all memory stops it"
_BLOCK_TIME: Final = re.compile(r"(?P<whole>\d{1,9})(?:\.(?P<part>\d{1,3}))?(?P<unit>ms|s)", re.ASCII)


class PaceName(StrEnum):
    """The paces that a command can ask for."""

    INTERVAL = Rhythm.INTERVAL.value
    AUTO = Rhythm.AUTO.value
    DUE = Rhythm.DUE.value
    MANUAL = Rhythm.MANUAL.value


PACES: Final = (
    "When blocks are built: interval, every --block-time; auto, for a transaction, and every --block-time while a "
    "timer is pending; due, for a transaction, and all up to the next timer at once; manual, on request."
)


class Pacing(Struct, frozen=True):
    """The options that say when blocks are built."""

    name: Annotated[PaceName, option("NAME", PACES, "interval", name="--pace")] = PaceName.INTERVAL
    block_time: Text = option("TIME", "Time between blocks under interval and auto, as 1s or 250ms.", "1s")

    @property
    def pace(self) -> Pace:
        """When blocks are built; raises `Mistake` for options that contradict each other."""
        rhythm = Rhythm(self.name.value)
        if self.name in (PaceName.DUE, PaceName.MANUAL):
            if self.block_time is not None:
                what = f"--block-time and --pace {self.name.value} are given"
                raise Mistake(what, "give --block-time with --pace interval or auto")
            return Pace(rhythm)
        time_ms = node_options.BLOCK_TIME_MS if self.block_time is None else parse_block_time(self.block_time)
        return Pace(rhythm, time_ms)


class Serving(Struct, frozen=True):
    """The options that say where a node listens, and what it serves."""

    host: Annotated[str, option("ADDRESS", "Address to listen on; 0.0.0.0 for the whole network.")] = node_options.HOST
    port: Annotated[
        int, number("Port to listen on; 0 for any free one.", metavar="PORT", most=node_options.PORT_MAX)
    ] = node_options.PORT
    clock: Annotated[
        Clock, option("NAME", "Timestamps: chain, one interval a block; or wall, of this machine.", "chain")
    ] = Clock.CHAIN
    rate_limit: Number = number("Most requests a second; 0 for any number.", "0 on loopback, else 100")
    cors: Texts = option("ORIGIN", "Let pages of this origin read answers; may be repeated.")
    no_explorer: bool | None = flag("--no-explorer", "Serve the API alone.")
    log: LogForm | None = option("FORM", "Log lines: human or json.", "human in a terminal, else json")


@command(on_chain=False)
def dev(
    run: Invocation,
    chain: Annotated[Path | None, option("DIR", "Keep the chain here.", "a temporary directory")] = None,
    *,
    pacing: Pacing,
    mechanism: common.Mechanism = None,
    preset: common.Preset = None,
    param: common.Params = None,
    accounts: common.Accounts = None,
    vm: common.Engine = None,
    crowd: Annotated[
        Path | None,
        option("SCENARIO", "Let the agents of a scenario act; the chain's rules are its own."),
    ] = None,
    runner: Annotated[
        Path | None, option("FILE", "Reply to runner jobs as this TOML file says; see docs/how-to/answer-jobs.md.")
    ] = None,
    serving: Serving,
) -> None:
    """Run a development chain: accounts, API, explorer, and calls that change the chain.

    The chain lasts as long as the node, unless --chain names a directory, which is created if needed. Ctrl-C ends it.

    Example: trailboss dev --mechanism lane --block-time 250ms
    """
    overrides = parse_overrides(param or [])
    wanted = GenesisOptions(
        preset=preset, mechanism=mechanism, overrides=overrides, accounts=accounts, vm=vm or AUTOMATIC
    )
    if crowd is not None and pacing.pace.is_prompt:
        what = f"--crowd and --pace {pacing.name.value} are given: each block would call for the next at once"
        raise Mistake(what, "give --crowd with --pace interval or manual")
    if vm == EngineName.SANDBOX:
        build_if_missing()
    _run(run, pacing, serving, crowd=crowd, directory=chain, genesis=wanted, replies=runner)


@command(on_chain=False)
def node(
    run: Invocation,
    directory: common.Directory = common.DIRECTORY_PATH,
    network: Annotated[
        Path | None, option("HOME", "Run this node of a network, with its engine, instead of a chain of its own.")
    ] = None,
    *,
    pacing: Pacing,
    serving: Serving,
) -> None:
    """Run the chain of a directory with API and explorer, without development calls.

    The chain comes from `trailboss init` or `trailboss dev`. A missing sandbox is built first, if the chain runs in it.
    Beyond this machine the node serves only a chain of the sandbox that is no development chain. Ctrl-C ends the node.

    With --network it is a node of a network that `trailboss testnet init` has made: its home says where it listens, and
    when blocks come is agreed on with the others. Exit status 3 says that it has stopped with a named reason, and must
    not be started again as it is.

    Example: trailboss node --chain play --pace auto
    """
    if network is None:
        _run(run, pacing, serving, directory=directory, development=False)
        return
    _check_alone(directory, pacing, serving)
    # Only now: keys and hashes of a network take a development node's start 15 ms longer.
    from trailboss.network.home import Home  # noqa: PLC0415

    home = Home.read(network)
    serving = replace(serving, host=home.api_host, port=home.api_port)
    _run(run, pacing, serving, directory=home.chain_directory, development=False, home=home)


def _check_alone(directory: Path, pacing: Pacing, serving: Serving) -> None:
    """Refuse options beside --network that its home or its network decides."""
    usual = Serving()
    given = {
        "--chain": directory != common.DIRECTORY_PATH,
        "--block-time": pacing.block_time is not None,
        "--pace": pacing.name is not PaceName.INTERVAL,
        "--host": serving.host != usual.host,
        "--port": serving.port != usual.port,
        "--clock": serving.clock is not usual.clock,
    }
    names = [name for name, is_given in given.items() if is_given]
    if names:
        raise Mistake(
            f"{' and '.join(names)} are given beside --network"
            if len(names) > 1
            else f"{names[0]} is given beside --network",
            "a node's home says where it listens, and its network when blocks come: change node.toml in the home",
        )


def _run(
    run: Invocation,
    pacing: Pacing,
    serving: Serving,
    *,
    home: "Home | None" = None,
    crowd: Path | None = None,
    **chain: Any,
) -> None:
    agents = None if crowd is None else _agents(crowd)
    limit = node_options.default_rate_limit(serving.host) if serving.rate_limit is None else serving.rate_limit
    options = NodeOptions(
        pace=pacing.pace,
        clock=serving.clock,
        host=serving.host,
        port=serving.port,
        rate_limit=limit,
        cors_origins=tuple(serving.cors or ()),
        explorer=not serving.no_explorer,
        **chain,
    )

    def begin(node: "Node", port: int) -> None:
        gc.freeze()
        gc.enable()
        if agents is not None:
            agents(node)
        (_show_document if run.as_json else _show)(node, port)

    # What is imported stays, and looking for garbage in it would take a tenth of the start.
    gc.disable()
    try:
        with installed("a node", NODE_INSTALL if home is None else NETWORK_INSTALL):
            # Only now: the server and the explorer take longer to import than everything else together.
            from trailboss.node.logs import configure_logs  # noqa: PLC0415

            configure_logs(serving.log)
            if home is not None:
                from trailboss.network.binary import find_engine  # noqa: PLC0415
                from trailboss.network.run import run_home  # noqa: PLC0415

                engine = find_engine()
                if home.genesis.image:
                    build_if_missing(home.genesis.image)
                status = run_home(home, engine, options, begin)
            else:
                from trailboss.server import run_node  # noqa: PLC0415

                if options.directory is not None and not options.development:
                    _check_chain(options.directory, options)
                status = run_node(options, begin)
    finally:
        gc.enable()
    if status:
        raise typer.Exit(status)


def _agents(path: Path) -> Callable[["Node"], None]:
    """Return what lets the agents of a scenario act on a node."""
    with installed("a crowd", STUDY_INSTALL):
        from trailboss.simulator.live import LiveCrowd  # noqa: PLC0415
        from trailboss.simulator.scenario import read_scenario  # noqa: PLC0415

    scenario = read_scenario(path)
    return lambda node: node.gather(LiveCrowd(scenario, node.view))


def _check_chain(directory: Path, options: NodeOptions) -> None:
    """Build the sandbox for a chain that runs it. `Mistake` if strangers would reach a chain that is not for them."""
    genesis = stated_genesis(directory)
    if not options.is_loopback and (genesis.development or not genesis.image):
        flaw = DEVELOPMENT_CHAIN if genesis.development else NATIVE_CHAIN
        raise Mistake(f"the chain in {directory} {flaw}", FOR_STRANGERS)
    if genesis.image:
        build_if_missing(genesis.image)


def parse_block_time(text: str) -> int:
    """Return a time in milliseconds, given with its unit.

    >>> parse_block_time("1s"), parse_block_time("250ms"), parse_block_time("1.5s")
    (1000, 250, 1500)

    Raises:
        Mistake: For anything else, and for a fraction of a millisecond.
    """
    match = _BLOCK_TIME.fullmatch(text)
    if match is None or (match["part"] and match["unit"] == "ms"):
        raise Mistake(f"--block-time {text!r} is not a time", "write seconds or milliseconds, as 1s, 0.5s or 250ms")
    if match["unit"] == "ms":
        return int(match["whole"])
    return int(match["whole"]) * MS_PER_SECOND + int((match["part"] or "").ljust(3, "0"))


# What is printed


def _urls(node: "Node", port: int) -> dict[str, str]:
    host = node.options.host
    # A node that listens everywhere is reached here under this machine's own address.
    reached = {"0.0.0.0": node_options.HOST, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    base = f"http://{reached}:{port}"
    urls = {"explorer": f"{base}/"} if node.options.explorer else {}
    paths = {"api": "", "reference": "/swagger-ui", "openapi": "/openapi.json", "metrics": "/metrics"}
    return urls | {name: f"{base}{path}" for name, path in paths.items()}


def _accounts(node: "Node") -> list[tuple[DevelopmentAccount, int]]:
    """Return the accounts whose keys are shown, with their balances: those of a development chain that runs as one."""
    count = 0 if node.development is None else funded_accounts(node.view.genesis)
    names = [*map(account_name, range(count)), DEPLOYER] if count else []
    return [(account, node.view.balance(account.address)) for account in map(development_account, names)]


def _show_document(node: "Node", port: int) -> None:
    view, options = node.view, node.options
    print_json(
        {
            "directory": None if options.directory is None else str(options.directory),
            "height": view.height,
            "chain_id": view.genesis.chain_id,
            "preset": view.genesis.preset,
            "mechanism": view.mechanism.name,
            "vm": engine_name(view.genesis.image),
            "instance_id": view.genesis.instance_id(),
            "pace": options.pace.rhythm.value,
            "block_time_ms": options.pace.block_time_ms or None,
            "clock": options.clock.value,
            "development": options.development,
            "host": options.host,
            "port": port,
            "loopback": options.is_loopback,
            "urls": _urls(node, port),
            "accounts": [
                {"name": each.name, "address": each.address, "private_key": each.private_key, "balance": balance}
                for each, balance in _accounts(node)
            ],
        }
    )


def _show(node: "Node", port: int) -> None:
    view, options, urls = node.view, node.options, _urls(node, port)
    place = "temporary, deleted when the node ends" if options.directory is None else str(options.directory)
    kind = "for development" if options.development else "without development calls"
    print_facts(
        {
            "node": f"Trailboss {__version__}, {kind}",
            "chain": f"{place}; at height {view.height:,}",
            "rules": f"chain id {view.genesis.chain_id}, preset {view.genesis.preset}, mechanism {view.mechanism.name}",
            "vm": _engine_words(view.genesis.image),
            "pace": _pace_words(options),
            "runner": None if options.replies is None else f"replies to jobs as {options.replies} says",
            "explorer": urls.get("explorer"),
            "API": urls["reference"],
            "metrics": urls["metrics"],
            "listens": f"on {options.host}" + (", for this machine only" if options.is_loopback else ""),
        }
    )
    accounts = _accounts(node)
    if accounts:
        typer.echo()
        _show_accounts(accounts)
    if not options.is_loopback:
        rights, advice = DEVELOPMENT_RIGHTS if options.development else PUBLIC_RIGHTS
        danger = "" if view.genesis.image else NATIVE_DANGER
        who = f"WARNING: the node listens on {options.host}. Anyone who reaches that address can"
        warning = fill(f"{who} {rights}{danger}. {advice}", TEXT_COLUMNS)
        note(f"\n{warning}")
    typer.echo("\nCtrl-C ends the node.")


def _show_accounts(accounts: list[tuple[DevelopmentAccount, int]]) -> None:
    listed = accounts if len(accounts) <= SHOWN_ACCOUNTS else [*accounts[:SHOWN_ACCOUNTS], accounts[-1]]
    rows: list[tuple[str, ...]] = [
        (each.name.removeprefix("account "), str(each.address), format_cby(balance), f"0x{each.private_key.hex()}")
        for each, balance in listed
    ]
    heads = columns("account | address | >CBY | private key")
    if console().width >= KEYS_BESIDE:
        print_table("accounts", heads, rows)
    else:
        print_table("accounts", heads[:3], [row[:3] for row in rows])
        typer.echo()
        print_table("private keys", (heads[0], heads[3]), [(row[0], row[3]) for row in rows])
    typer.echo()
    if len(listed) < len(accounts):
        typer.echo(f"{counted(len(accounts) - len(listed), 'more account')}: --json has them all")
    typer.echo("These keys are public: keep nothing of value here.")


def _engine_words(image: bytes) -> str:
    return f"sandbox, image 0x{image.hex()[:SHOWN_DIGITS]}…" if image else "native: actors run in this process"


def _pace_words(options: NodeOptions) -> str:
    asked = "; POST /dev/mine builds one at once" if options.development else ""
    pace = options.pace
    clock = "" if options.clock is Clock.CHAIN else "; timestamps are this machine's"
    whole, rest = divmod(pace.block_time_ms, MS_PER_SECOND)
    time = f"{pace.block_time_ms} ms" if rest else f"{whole} s"
    words = {
        Rhythm.INTERVAL: f"a block every {time}, empty ones too",
        Rhythm.AUTO: f"a block as soon as a transaction waits, and every {time} while a timer is pending",
        Rhythm.DUE: "a block as soon as a transaction waits, and all up to the next timer at once",
        Rhythm.MANUAL: "no block by itself",
        Rhythm.NETWORK: "a block as soon as the validators agree on one",
    }
    return f"{words[pace.rhythm]}{asked}{clock}"
