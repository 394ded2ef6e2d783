"""Running one node of a network: its chain, what it serves, and its engine."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.opening import check_unused, has_chain
from trailboss.network.companion import NetworkCompanion
from trailboss.network.halts import HALTED_STATUS, Halt, NetworkHaltError
from trailboss.network.home import Home
from trailboss.network.join import join_network
from trailboss.network.votes import check_votes
from trailboss.node.logs import log
from trailboss.node.options import NETWORK, NodeOptions
from trailboss.node.service import Node
from trailboss.primitives.errors import StorageError
from trailboss.server import run_node


def run_home(home: Home, engine: Path, options: NodeOptions, ready: Callable[[Node, int], None]) -> int:
    """Run the node of a home until a signal or a failure ends it, and return the exit status.

    That is 0, 1 after a failure after which it may start again, or `HALTED_STATUS` where an operator has to decide.

    Args:
        home: The node's home; its chain is made if there is none.
        engine: The engine's program.
        options: How the node serves; where, and what runs it, follow from the home.
        ready: Called with the node and its port when it answers.

    Raises:
        ConfigurationError: If it cannot listen.
        StorageError: If the home cannot be used, or another process runs it.
    """
    companion = NetworkCompanion(home, engine)
    options = replace(
        options,
        pace=NETWORK,
        development=False,
        directory=home.chain_directory,
        host=home.api_host,
        port=home.api_port,
    )
    try:
        _prepare(home, engine)
        status = run_node(options, ready, companion)
    except asyncio.CancelledError:
        return 0
    except NetworkHaltError as error:
        log().error("the node must not start", what=str(error))
        return HALTED_STATUS
    failure = companion.failure
    if isinstance(failure, StorageError):
        log().error("the node must not go on", what=str(NetworkHaltError(Halt.STORAGE, str(failure))))
    return HALTED_STATUS if isinstance(failure, NetworkHaltError | StorageError) else status


def _prepare(home: Home, engine: Path) -> None:
    """Make or fetch the chain of a new home."""
    if home.directory.stat().st_mode & 0o077:
        raise StorageError(home.directory, "others may enter it, and its keys are in it", "chmod 700 it")
    home.write_engine_files()
    if has_chain(home.chain_directory):
        check_unused(home.chain_directory)
    else:
        # Before an engine runs here: it would make the file that is missing.
        check_votes(home, None)
        if home.state_sync is None:
            Chain.create(home.chain_directory, home.genesis).close()
        else:
            asyncio.run(join_network(home, engine))
