"""Opening a chain of which only some things are asked for: in memory or in a directory, new or as it was left."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import reduce
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from msgspec import Struct, field

from trailboss.chain.chain import Chain
from trailboss.chain.development import ACCOUNT_COUNT, development_account, development_genesis
from trailboss.execution.genesis import Genesis, decode_genesis, encode_genesis, genesis_text, parse_genesis
from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.sandbox.engines import EngineName, default_engine, engine_name, image_of
from trailboss.state.disk.files import TABLES_NAME, DirectoryLock
from trailboss.state.disk.store import DiskStore, StoreSettings

__all__ = ["Genesis", "GenesisOptions", "check_unused", "create_temporary", "differences", "encode_genesis"]
__all__ += ["funded_accounts", "genesis_text", "has_chain", "new_genesis", "open_as_wanted", "open_or_create"]
__all__ += ["parse_genesis", "stated_genesis", "temporary_directory"]

PRESET: Final = "mainnet"
MECHANISM: Final = "fifo"
DISK: Final = Path("/var/tmp")  # where large temporary files belong; `tempfile` draws their names
TEMPORARY: Final = "trailboss-chain-"
AUTOMATIC: Final = "automatic"  # the sandbox where it is built, else the native engine
TEMPORARY_SETTINGS: Final = StoreSettings(kept_journal=65_536)
"""Who tries things out goes far ahead, and back: 65,536 changed blocks, some 200 MB of disk with six fires in each."""


class GenesisOptions(Struct, frozen=True, kw_only=True):
    """What a chain is to have started from; None for whatever it has, or the default of a new one."""

    preset: str | None = None  # parameter preset
    mechanism: str | None = None  # scheduling mechanism
    overrides: Mapping[str, int] = field(default_factory=dict)  # parameters by dotted path
    accounts: int | None = None  # funded development accounts
    # Engine by name; `AUTOMATIC` for a new chain's default on this machine; None for native.
    vm: str | None = None


def open_or_create(directory: Path, wanted: GenesisOptions) -> Chain:
    """Return a new development chain, or the one that is in a directory already; see `open_as_wanted`."""
    if not has_chain(directory):
        return Chain.create(directory, new_genesis(wanted))
    return open_as_wanted(directory, wanted)


def has_chain(directory: Path) -> bool:
    """Return whether a chain is in a directory; one whose making was interrupted is none."""
    return (directory / TABLES_NAME).exists()


def check_unused(directory: Path) -> None:
    """Refuse by `StorageError` a chain that a process has open, with the process."""
    DirectoryLock(directory).release()


def create_temporary(directory: Path, wanted: GenesisOptions) -> Chain:
    """Return a new development chain in a temporary directory: it survives nothing, and so waits for no disk."""
    return Chain.create(directory, new_genesis(wanted), durable=False, settings=TEMPORARY_SETTINGS)


def temporary_directory() -> "TemporaryDirectory[str]":
    """Make a directory for a temporary chain, and remove those whose processes were killed. Decision: D-93."""
    # Of the two places that every system has, the one that is a disk: the other may be the machine's memory.
    is_free = "TMPDIR" not in os.environ and os.access(DISK, os.W_OK)
    parent = DISK if is_free else Path(gettempdir())
    for left in parent.glob(f"{TEMPORARY}*"):
        _remove_left(left)
    return TemporaryDirectory(prefix=TEMPORARY, dir=parent, ignore_cleanup_errors=True)


def _remove_left(directory: Path) -> None:
    """Remove a temporary directory unless a process has its chain open, or is just making it, or it is another's."""
    with suppress(OSError, StorageError):
        if has_chain(directory):
            DirectoryLock(directory).release()
            rmtree(directory)


def open_as_wanted(directory: Path, wanted: GenesisOptions) -> Chain:
    """Return the chain that is in a directory.

    Raises:
        ConfigurationError: If no chain can start as it is wanted, or this one started otherwise: the first difference.
        StorageError: If the directory cannot be used: in use, without a chain, damaged, holding something else.
    """
    chain = Chain.open(directory)
    try:
        for difference in differences(chain.genesis, wanted):
            what = f"{directory} holds a chain that started with {difference}"
            raise ConfigurationError(f"{what}: leave that option out, or name another directory")
    except ConfigurationError:
        chain.close()
        raise
    return chain


def new_genesis(wanted: GenesisOptions) -> Genesis:
    """Return the genesis of a new development chain.

    Raises:
        ConfigurationError: If no chain can start so.
    """
    return development_genesis(
        preset=wanted.preset or PRESET,
        mechanism=wanted.mechanism or MECHANISM,
        overrides=wanted.overrides,
        accounts=ACCOUNT_COUNT if wanted.accounts is None else wanted.accounts,
        image=image_of(default_engine() if wanted.vm == AUTOMATIC else wanted.vm or EngineName.NATIVE),
    )


def differences(genesis: Genesis, wanted: GenesisOptions) -> Iterator[str]:
    """Yield each thing that was asked for and that a chain started without, as ``what it has, not what was asked``.

    Raises:
        ConfigurationError: If no chain can start as it is wanted.
    """
    if wanted.preset not in (None, genesis.preset):
        yield f"preset {genesis.preset}, not {wanted.preset}"
    if wanted.mechanism not in (None, genesis.mechanism):
        yield f"mechanism {genesis.mechanism}, not {wanted.mechanism}"
    if wanted.vm not in (None, AUTOMATIC, engine_name(genesis.image)):
        yield f"vm {engine_name(genesis.image)}, not {wanted.vm}"
    asked, found = new_genesis(wanted).params(), genesis.params()
    for path in wanted.overrides:
        has, value = _parameter(found, path), _parameter(asked, path)
        if has != value:
            yield f"{path} = {has}, not {value}"
    accounts = funded_accounts(genesis)
    if wanted.accounts not in (None, accounts):
        yield f"{accounts} funded accounts, not {wanted.accounts}"


def stated_genesis(directory: Path) -> Genesis:
    """Return what the chain in a directory started from.

    Raises:
        StorageError: If there is no chain, or it is in use.
    """
    with closing(DiskStore.open(directory)) as disk:
        return decode_genesis(disk.genesis)


def funded_accounts(genesis: Genesis) -> int:
    """Return how many of the development accounts, counted from the first, a genesis has funded."""
    count = 0
    while development_account(f"account {count}").address in genesis.accounts:
        count += 1
    return count


def _parameter(params: object, path: str) -> object:
    return reduce(getattr, path.split("."), params)
