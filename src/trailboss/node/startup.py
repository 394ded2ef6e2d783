"""Starting a node: its chain, its index and its mempool, as they were left."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Final

from trailboss.chain import Chain
from trailboss.chain.opening import create_temporary, open_as_wanted, open_or_create, temporary_directory
from trailboss.index import Index
from trailboss.mempool import Journal, Mempool, verify
from trailboss.node.logs import log
from trailboss.node.options import NodeOptions
from trailboss.node.service import Node
from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.sandbox.engines import check_engine

INDEX_FILE: Final = "index.sqlite"
JOURNAL_FILE: Final = "mempool.journal"
PROGRESS_SECONDS: Final = 2  # how often the progress of an index is logged
NO_DIRECTORY: Final = "a node that is no development node runs a chain that is there already: name its directory"


def open_node(options: NodeOptions, check: Callable[[Chain], object] = lambda _: None) -> Node:
    """Open all that a node needs, and return the node. A development node makes a chain that does not exist.

    ``check`` is called with the chain, and may refuse to run it by an error.

    Raises:
        ConfigurationError: If no chain can start as it is wanted, or the one in the directory started otherwise.
        StorageError: If the directory cannot be used.
    """
    if options.directory is None and not options.development:
        raise ConfigurationError(NO_DIRECTORY)
    with ExitStack() as opened:
        directory, temporary = options.directory, None
        if directory is None:
            temporary = temporary_directory()
            directory = Path(opened.enter_context(temporary))
        chain = opened.enter_context(_open_chain(options, directory))
        check(chain)
        mempool = _open_mempool(chain, options.directory)
        opened.callback(mempool.close)
        index = Index.open(directory / INDEX_FILE, chain, progress_line(monotonic))
        opened.callback(index.close)
        node = Node(chain, mempool, index, options, temporary=temporary)
        opened.pop_all()
    return node


def _open_chain(options: NodeOptions, directory: Path) -> Chain:
    if options.directory is None:
        return create_temporary(directory, options.genesis)
    chain = (open_or_create if options.development else open_as_wanted)(directory, options.genesis)
    try:
        chain.check_writable()
        check_engine(chain.genesis.image)
    except (ConfigurationError, StorageError):
        chain.close()
        raise
    return chain


def _open_mempool(chain: Chain, directory: Path | None) -> Mempool:
    """Return the mempool, with what waited when the node before ended, however it did."""
    if directory is None:
        return Mempool()
    view = chain.publish()
    mempool = Mempool(journal=Journal.open(directory / JOURNAL_FILE, chain.genesis.instance_id()))
    recovery = mempool.recover(view)
    if recovery.damage is not None:
        log().warning("the mempool's journal was damaged at its end, which is cut off", what=recovery.damage)
    # Blocks take what is in the mempool for signed, and a file may have come from anywhere.
    waiting = mempool.pooled()
    found = verify(view, [pooled.transaction for pooled in waiting])
    forged = {pooled.hash: why for pooled, why in zip(waiting, found, strict=True) if why is not None}
    if forged:
        mempool.settle(view, (), forged)
        log().warning("the mempool's journal held transactions with false signatures", transactions=len(forged))
    if len(mempool):
        log().info("transactions wait as they did when the node ended", transactions=len(mempool))
    return mempool


def progress_line(clock: Callable[[], float]) -> Callable[[int, int], None]:
    """Return what logs, every few seconds of a clock, how far an index is: most are built before the first line."""
    logged_at = clock()

    def log_progress(height: int, last: int) -> None:
        nonlocal logged_at
        if clock() - logged_at >= PROGRESS_SECONDS:
            logged_at = clock()
            log().info("the index is built from the blocks", height=height, of=last)

    return log_progress
