"""``testnet``: a network of validators on this machine, made, run, looked at and extended."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, Annotated, Final

import typer

from trailboss.chain.development import ACCOUNT_BALANCE
from trailboss.chain.opening import GenesisOptions, funded_accounts
from trailboss.cli import options as common
from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.node import parse_block_time
from trailboss.cli.commands.sandbox import build_if_missing
from trailboss.cli.errors import FAILED, NETWORK_INSTALL, installed
from trailboss.cli.lazy import group
from trailboss.cli.options import Text, Texts, argument, flag, number, option
from trailboss.cli.output import note, print_json, print_table
from trailboss.cli.values import parse_overrides
from trailboss.network.binary import find_engine
from trailboss.network.home import BLOCK_TIME_MS, PORT_MAX, Home
from trailboss.network.testnet import (
    API_PORT,
    ENGINE_PORT,
    HOST,
    VALIDATORS_MAX,
    NewHomes,
    Plan,
    add_node,
    create_testnet,
    read_testnet,
)
from trailboss.primitives.errors import StorageError
from trailboss.primitives.units import format_cby
from trailboss.sandbox.engines import EngineName, engine_name
from trailboss.state.disk.files import LOCK_NAME, DirectoryLock

if TYPE_CHECKING:
    from trailboss.network.home import StateSync
    from trailboss.network.survey import Agreement, NodeStanding

testnet = group("Make, run, show and extend a network of validators on this machine.")

WHAT: Final = "a network"
STOP_SECONDS: Final = 45  # how long all nodes may take to end
POLL_SECONDS: Final = 0.1
NANOSECONDS_PER_MS: Final = 1_000_000
PUBLIC_KEYS: Final = "their keys are public, as on `trailboss dev`: keep nothing of value in them"
Directory = Annotated[Path, argument("DIR", "Directory of the network.", "testnet")]
DIRECTORY: Final = Path("testnet")
Engine = Annotated[
    Text,
    option(
        "NAME", f"What runs actors: {', '.join(EngineName)}; native on loopback addresses alone.", "sandbox", "--vm",
        envvar=common.ENGINE_VARIABLE,
    ),
]  # fmt: skip
Port = Annotated[
    int, number("Port of the first node's API; the next node has the next.", metavar="PORT", most=PORT_MAX)
]
EnginePort = Annotated[
    int, number("First of each node's two ports for its engine.", metavar="PORT", least=1, most=PORT_MAX)
]


@testnet.command()
@command(on_chain=False)
def init(
    run: Invocation,
    directory: Directory = DIRECTORY,
    validators: Annotated[int, number("Nodes, each of them a validator.", least=1, most=VALIDATORS_MAX)] = 4,
    *,
    preset: common.Preset = None,
    mechanism: common.Mechanism = None,
    param: common.Params = None,
    accounts: common.Accounts = None,
    vm: Engine = None,
    block_time: Annotated[Text, option("TIME", "Time between blocks, 100ms or more.", "1s")] = None,
    host: Annotated[Texts, option("ADDRESS", "Address to listen on; repeated, one for each node.", HOST)] = None,
    port: Port = API_PORT,
    engine_port: EnginePort = ENGINE_PORT,
    seed: Annotated[
        Text, option("TEXT", "Derive all keys from a text, which is then the key to all of them.", "random keys")
    ] = None,
) -> None:
    """Make a network in a directory: a home with keys for each validator, and one genesis.

    The genesis is no development chain's: every transaction is signed, and nobody sets balances. Ten accounts, 0 to 9,
    and deployer have money, and their keys are public: such a network is for trying things out. Tips go to the accounts
    after them, one for each validator.

    Example: trailboss testnet init --validators 4 net
    """
    wanted = GenesisOptions(
        preset=preset,
        mechanism=mechanism,
        overrides=parse_overrides(param or []),
        accounts=accounts,
        vm=vm or EngineName.SANDBOX,
    )
    plan = Plan(
        validators=validators,
        genesis=wanted,
        hosts=tuple(host or (HOST,)),
        api_port=port,
        engine_port=engine_port,
        block_time_ms=BLOCK_TIME_MS if block_time is None else parse_block_time(block_time),
        seed=seed,
    )
    homes = create_testnet(directory, plan, time_ns() // NANOSECONDS_PER_MS)
    _show_network(run, directory, homes)


@testnet.command()
@command(on_chain=False)
def start(run: Invocation, directory: Directory = DIRECTORY) -> None:
    """Run every node of a network, each in a process of its own, and show where they stand.

    A node that dies is started again. A node that stops with a named reason is not: it is shown as halted, with what to
    do. A node that `trailboss testnet add-node` adds meanwhile is started too. Ctrl-C ends all nodes.

    Example: trailboss testnet start net
    """
    genesis = read_testnet(directory)[0].genesis
    find_engine()
    if genesis.image:
        # Rather here than in all nodes at once.
        build_if_missing(genesis.image)
    with installed(WHAT, NETWORK_INSTALL), _supervision(directory):
        was_asked = asyncio.run(_run_all(directory, as_json=run.as_json))
    if not was_asked:
        raise typer.Exit(FAILED)


@testnet.command()
@command(on_chain=False)
def stop(run: Invocation, directory: Directory = DIRECTORY) -> None:
    """End all nodes of a network that run on this machine, and whatever supervises them.

    Example: trailboss testnet stop net
    """
    homes = read_testnet(directory)
    # First what would start the others again, and ends them itself.
    supervisor = _end_holder(directory)
    nodes = [each for each in (_end_holder(home.chain_directory) for home in homes) if each is not None]
    words = [] if supervisor is None else [f"process {supervisor} and the nodes that it ran"]
    words += [f"process {each}, a node that ran alone" for each in nodes]
    run.show({"supervisor": supervisor, "nodes": nodes}, {"ended": ", ".join(words) or "nothing: no node runs"})


@testnet.command()
@command(on_chain=False)
def status(run: Invocation, directory: Directory = DIRECTORY) -> None:
    """Ask every node of a network where it stands, and whether all of them agree.

    They are compared at the lowest of their heights. Exit status 1 says that they differ, or that none answers.

    Example: trailboss testnet status net
    """
    homes = read_testnet(directory)
    with installed(WHAT, NETWORK_INSTALL):
        import httpx  # noqa: PLC0415

        from trailboss.cli.network_board import HEADS, agreement_words, network_document, node_rows  # noqa: PLC0415
        from trailboss.network.supervisor import last_words  # noqa: PLC0415
        from trailboss.network.survey import compare, survey  # noqa: PLC0415

    async def look() -> "tuple[list[NodeStanding], Agreement]":
        async with httpx.AsyncClient() as client:
            standings = await survey(homes, client)
            return standings, await compare(homes, standings, client)

    standings, agreement = asyncio.run(look())
    if run.as_json:
        print_json(network_document(standings, agreement))
    else:
        print_table("nodes", HEADS, node_rows(standings))
        note(agreement_words(agreement))
        for home, each in zip(homes, standings, strict=True):
            reason = last_words(home.node_log) if each.height is None else ""
            if reason:
                note(f"{home.name} said last: {reason}")
    if not agreement.is_whole:
        raise typer.Exit(FAILED)


@testnet.command(name="add-node")
@command(on_chain=False)
def add_node_(
    run: Invocation,
    directory: Directory = DIRECTORY,
    *,
    state_sync: Annotated[
        bool | None,
        flag("--state-sync", "Begin with a snapshot of the state instead of block 1; a node must run to be trusted."),
    ] = None,
) -> None:
    """Add a full node to a network: it follows the blocks, and votes on none.

    A network that runs on this machine starts it at once; else start it with `trailboss testnet start`, or alone with
    `trailboss node --network`.

    Example: trailboss testnet add-node net --state-sync
    """
    homes = read_testnet(directory)
    wanted = None
    if state_sync:
        with installed(WHAT, NETWORK_INSTALL):
            import httpx  # noqa: PLC0415

            from trailboss.network.survey import trust  # noqa: PLC0415

            async def ask() -> "StateSync":
                async with httpx.AsyncClient() as client:
                    return await trust(homes, client)

            wanted = asyncio.run(ask())
    home = add_node(homes, wanted)
    begins = "with block 1" if wanted is None else f"with a snapshot, trusting block {wanted.trust_height}"
    run.show(
        _home_document(home)
        | {"trust_height": wanted and wanted.trust_height, "trust_hash": wanted and wanted.trust_hash},
        {
            "node": f"{home.name}, in {home.directory}",
            "begins": begins,
            "API and explorer": f"{home.api_url}/",
            "start": f"trailboss node --network {home.directory}",
        },
    )


def _show_network(run: Invocation, directory: Path, homes: Sequence[Home]) -> None:
    genesis = homes[0].genesis
    funded = funded_accounts(genesis)
    run.show(
        {
            "directory": str(directory),
            "chain_id": genesis.chain_id,
            "engine_chain_id": genesis.engine_chain_id(),
            "instance_id": genesis.instance_id(),
            "preset": genesis.preset,
            "mechanism": genesis.mechanism,
            "vm": engine_name(genesis.image),
            "block_time_ms": homes[0].block_time_ms,
            "accounts": funded,
            "nodes": [_home_document(home) for home in homes],
        },
        {
            "network": f"{directory}, {genesis.engine_chain_id()}",
            "rules": f"chain id {genesis.chain_id}, preset {genesis.preset}, mechanism {genesis.mechanism}, "
            f"vm {engine_name(genesis.image)}, a block every {homes[0].block_time_ms} ms",
            "validators": f"{len(homes)}, equal in votes",
            "accounts": f"0 to {funded - 1} and deployer, {format_cby(ACCOUNT_BALANCE)} CBY each; {PUBLIC_KEYS}",
            "tips": f"of node0 to account {funded}, and so on",
            "start": f"trailboss testnet start {directory}",
        },
    )
    if any(not home.is_loopback for home in homes):
        note("WARNING: other machines reach these nodes, and everyone knows the keys of the accounts that have money.")


def node_command(home: Home) -> list[str]:
    """Return what runs one node of a network."""
    return [sys.executable, "-m", "trailboss", "node", "--network", str(home.directory), "--log", "json", "--json"]


async def _run_all(directory: Path, *, as_json: bool) -> bool:
    """Run nodes until a signal comes, or all have halted; return whether a signal came."""
    from trailboss.cli.network_board import Board  # noqa: PLC0415  # httpx is there with an extra alone
    from trailboss.network.supervisor import Supervisor  # noqa: PLC0415

    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    board = Board(as_json=as_json)
    supervisor = Supervisor(node_command, board.note)
    await board.run(supervisor.nodes, asyncio.create_task(supervisor.run(NewHomes(directory), stop)))
    return stop.is_set()


@contextmanager
def _supervision(directory: Path) -> Iterator[None]:
    """Hold the right to supervise a network; raises `StorageError` if another process has it."""
    try:
        lock = DirectoryLock(directory)
    except StorageError as error:
        holder = _holder(directory)
        if holder is None:
            raise
        what = f"process {holder} runs this network already"
        raise StorageError(directory, what, f"look at it with `trailboss testnet status {directory}`") from error
    try:
        yield
    finally:
        lock.release()


def _end_holder(directory: Path) -> int | None:
    """End the process that holds the lock of a directory, and return its id; None if there is none.

    Raises:
        StorageError: If it does not end in time.
    """
    holder = _holder(directory)
    if holder is None:
        return None
    with suppress(ProcessLookupError):
        os.kill(holder, signal.SIGTERM)
    deadline = monotonic() + STOP_SECONDS
    while _holder(directory) == holder:
        if monotonic() > deadline:
            what = f"process {holder} was asked to end, and has not after {STOP_SECONDS} seconds"
            raise StorageError(directory, what, f"look at what it does, or kill it: kill -9 {holder}")
        sleep(POLL_SECONDS)
    return holder


def _holder(directory: Path) -> int | None:
    """Return the process that holds the lock of a directory; None if nobody does."""
    lock = directory / LOCK_NAME
    if not lock.exists():
        return None
    try:
        DirectoryLock(directory).release()
    except StorageError:
        return int(lock.read_text().strip() or 0) or None
    return None


def _home_document(home: Home) -> dict[str, object]:
    return {
        "name": home.name,
        "directory": str(home.directory),
        "validator": home.key,
        "node_id": home.node_id,
        "api_url": home.api_url,
        "rpc_url": home.rpc_url,
        "p2p": str(home.p2p),
    }
