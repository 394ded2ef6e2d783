"""A `LocalChain` for a command: a fresh one in memory, or one over the chain of a directory."""

from pathlib import Path
from typing import ClassVar

from trailboss.chain import Chain
from trailboss.chain.opening import funded_accounts, has_chain, stated_genesis
from trailboss.cli.directory_chain import DirectoryChain
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.targets import is_url, label_path
from trailboss.sandbox.engines import engine_name
from trailboss.testing.local_chain import LocalChain
from trailboss.views.label_file import read_labels
from trailboss.views.labels import LabelBook, use_labels


class CommandChain(LocalChain):
    """A local chain whose chain has the methods of commands, too."""

    chain_class: ClassVar[type[Chain]] = DirectoryChain
    chain: DirectoryChain


def open_local_chain(place: str | None, *, preset: str | None, mechanism: str | None) -> CommandChain:
    """Return the chain of a directory, with its labels, or a fresh one.

    Args:
        place: The directory; None for a fresh chain.
        preset: Of a fresh chain; None for the default.
        mechanism: Likewise.

    Raises:
        Mistake: If the place is a node or holds no development chain, or a chain is to be another one than it is.
        NotFound: If there is no chain.
        ConfigurationError: If no chain can start as it is wanted.
        StorageError: If it cannot be used.
    """
    wanted = {name: value for name, value in (("preset", preset), ("mechanism", mechanism)) if value is not None}
    if place is None:
        return CommandChain(**wanted)  # type: ignore[arg-type]  # they are names
    if is_url(place):
        raise Mistake(
            f"{place} is a node: this command builds its own blocks",
            "name a directory; on a node use the other commands, with --url",
        )
    if wanted:
        raise Mistake(
            f"--chain and --{next(iter(wanted))} are given", "leave one out: a chain keeps what it started with"
        )
    directory = Path(place)
    if not has_chain(directory):
        raise NotFound(f"there is no chain at {directory}", f"make one with `trailboss init {directory}`")
    genesis = stated_genesis(directory)
    if not genesis.development:
        raise Mistake(
            f"{directory} holds no development chain, and this command sends from the accounts of one",
            "name a chain of `trailboss init` or `trailboss dev`",
        )
    chosen = read_labels(label_path(place))
    local = CommandChain(
        mechanism=genesis.mechanism,
        preset=genesis.preset,
        params=genesis.overrides,
        accounts=funded_accounts(genesis) or 1,
        vm=engine_name(genesis.image),
        data_dir=directory,
    )
    local.labels = LabelBook({**dict(local.labels), **dict(chosen)})
    use_labels(local.labels)
    return local
