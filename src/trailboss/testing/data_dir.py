"""Opening a chain of a given genesis, in memory or in a directory."""

from pathlib import Path

from msgspec.structs import fields

from trailboss.chain import Chain
from trailboss.execution.genesis import Genesis
from trailboss.primitives.errors import ConfigurationError
from trailboss.state.disk.files import TABLES_NAME
from trailboss.vm.engine import Engine


def open_chain(genesis: Genesis, engine: Engine, data_dir: str | Path | None) -> Chain:
    """Return a new chain, or the one that the directory holds already; None is for memory.

    Raises:
        ConfigurationError: If the chain in the directory started from another genesis; with the first difference.
        StorageError: If the directory cannot be used.
    """
    if data_dir is None:
        return Chain(genesis, engine)
    directory = Path(data_dir)
    if not (directory / TABLES_NAME).exists():
        return Chain.create(directory, genesis, engine)
    chain = Chain.open(directory, engine)
    for field in fields(genesis):
        asked, found = getattr(genesis, field.name), getattr(chain.genesis, field.name)
        if asked != found:
            chain.close()
            raise ConfigurationError(
                f"{directory} holds a chain that started with {field.name} = {found!r}, not {asked!r}: "
                "open it with what it started with, or choose another directory"
            )
    return chain
