"""Members of a network that restart: in memory, or on disk with all that a node keeps there."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.network.nodes import Member
from trailboss.chain import Chain
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.index import Index
from trailboss.mempool import AdmissionOutcome, AdmissionStatus, Journal, Mempool
from trailboss.model.blocks import Block
from trailboss.network.application import Application
from trailboss.network.sync import SnapshotOffer
from trailboss.node.block_builder import Builder, Clocks, Published
from trailboss.node.options import NETWORK, NodeOptions
from trailboss.params import ChainParams
from trailboss.primitives.errors import Rejection
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.vm.engine import Engine

SETTINGS = StoreSettings(flush_interval=4, kept_journal=64, unflushed_values=3, map_size=1 << 16)
"""A store that flushes so often that a short schedule meets it."""
SNAPSHOT_BLOCKS = 2  # between two snapshots that a member takes
CLOCKS = Clocks(lambda: 0, lambda: 0)


class Killed(BaseException):
    """A process ends here, as by SIGKILL."""


class CommitPoint(Enum):
    """Where a process ends within Commit: what is patched, and what its name is."""

    UNSEALED = ("chain", "seal")  # nothing is durable
    SEALED = ("index", "apply")  # the block is, and the index lacks it
    INDEXED = ("mempool", "settle")  # the mempool still holds its transactions


class PreparedGenesis(Genesis, frozen=True, kw_only=True):
    """A genesis whose parameters are read once: half of what making a chain takes otherwise."""

    prepared: ChainParams | None = None

    @classmethod
    def of(cls, genesis: Genesis) -> "PreparedGenesis":
        """Return it, prepared."""
        fields = {name: getattr(genesis, name) for name in Genesis.__struct_fields__}
        return cls(**fields, prepared=genesis.params())

    def params(self) -> ChainParams:
        """Return the parameters."""
        assert self.prepared is not None
        return self.prepared


class Unindexed:
    """An index of nothing, for a member in memory: making a file takes longer than its schedule."""

    height = 0

    def apply(self, blocks: Sequence[Block]) -> None:
        self.height = blocks[-1].height

    def close(self) -> None:
        """Close nothing."""


class RestartingMember(Member):
    """A member whose process ends and starts again. ``planted`` is done to it after every start."""

    def __init__(
        self,
        genesis: Genesis,
        directory: Path | None,
        new_engine: Callable[[], Engine | None],
        planted: Callable[["RestartingMember"], object] = lambda _: None,
    ) -> None:
        self._new_engine, self._planted = new_engine, planted
        self.accepted: dict[bytes, bytes] = {}  # transactions that it has taken, by hash
        self.excuses: dict[bytes, Rejection] = {}  # why it has given one up
        super().__init__(genesis, directory)

    def open(self) -> None:
        """Start the process on what is durable."""
        engine, path = self._new_engine(), self.directory
        self._runs = True
        self.mempool, self.index = Mempool(), Unindexed()
        if path is None:
            self.chain = Chain(self.genesis, engine)
        else:
            self.chain = Chain(self.genesis, engine, _open_store(path, self.genesis))
            self.mempool = Mempool(journal=Journal.open(path / "mempool.journal", self.genesis.instance_id()))
            self._excuse(self.mempool.recover(self.chain.publish()).endings)
            self.index = Index.open(path / "index.sqlite", self.chain)
        options = NodeOptions(pace=NETWORK, development=False, directory=path)
        self.builder = Builder(
            *(self.chain, self.mempool, self.index, options, CLOCKS),
            announce=self._hear,
            is_stopping=lambda: False,
        )
        self.application = Application(self.builder, self.mempool, self._admitted)
        self.snapshots = SnapshotOffer(SNAPSHOT_BLOCKS)
        self._planted(self)

    def offer_snapshot(self) -> None:
        """Take a snapshot of the last block if one is due; those in memory have no member that could join by it."""
        if self.directory is not None:
            self.snapshots.note(self.application.view)
            self.snapshots.close()

    def kill(self) -> None:
        """End the process, if it runs: nothing that is not durable yet becomes so."""
        if not self._runs:
            return
        self._runs = False
        self.mempool.close()
        self.chain.engine.close()
        if self.directory is not None:
            self.index._file.close()
            self.chain.store._directory.abandon()

    def wipe(self) -> None:
        """End the process, and start another one on nothing."""
        self.end()
        self.open()

    def end(self) -> None:
        """End the process, and remove all that it has kept."""
        self.kill()
        self.accepted.clear()
        self.excuses.clear()
        if self.directory is not None:
            shutil.rmtree(self.directory)

    @contextmanager
    def dies_at(self, point: CommitPoint | None) -> Iterator[None]:
        """End the process where Commit comes to a point, if one is given."""
        if point is None:
            yield
            return
        part, method = point.value
        target = getattr(self, part)
        setattr(target, method, _die)
        try:
            yield
        finally:
            delattr(target, method)

    def _hear(self, published: Published) -> None:
        self.excuses |= {bytes(name): why for name, why in published.refused.items()}

    def _admitted(self, outcome: AdmissionOutcome) -> None:
        if outcome.status is not AdmissionStatus.REFUSED:
            pooled = self.mempool.find(outcome.hash)
            assert pooled is not None, f"{outcome.hash} is {outcome.status.value}, and does not wait"
            self.accepted[bytes(outcome.hash)] = pooled.raw
            self.excuses.pop(bytes(outcome.hash), None)
        self._excuse(outcome.endings)

    def _excuse(self, endings: Sequence[Any]) -> None:
        self.excuses |= {bytes(end.hash): end.rejection for end in endings if end.rejection is not None}


def with_params(member: Member, **changes: dict[str, int]) -> None:
    """Give a running member other parameters than its genesis states, by subject."""
    params = member.chain.params
    for subject, fields in changes.items():
        params = replace(params, **{subject: replace(getattr(params, subject), **fields)})
    member.chain.params = params
    member.chain._rules = None


def _open_store(path: Path, genesis: Genesis) -> DiskStore:
    if path.exists():
        return DiskStore.open(path, durable=False, settings=SETTINGS)
    return DiskStore.create(path, encode_genesis(genesis), durable=False, settings=SETTINGS)


def _die(*_: object, **__: object) -> None:
    raise Killed
