"""A whole chain in one file: genesis and blocks, with the hash and the state root that each must give again.

Receipts and events are not in it: importing builds every block again. The layout: `trailboss.chain.export_frames`.
Decision: D-50.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain import export_frames
from trailboss.chain.chain import Chain
from trailboss.chain.history import follows_idly
from trailboss.chain.reader import ChainReader
from trailboss.chain.signature_workers import checked_ahead
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.execution.genesis import Genesis, decode_genesis, encode_genesis
from trailboss.model.blocks import Block
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.primitives.errors import ConfigurationError, Rejection, StorageError
from trailboss.vm.engine import Engine

OnBlock = Callable[[Block], object]  # called with every block as it is written or built, genesis left out


class ExportSummary(Struct, frozen=True):
    """What an export holds."""

    genesis: Genesis  # what its chain starts from
    height: int  # of its last block


def export_chain(chain: ChainReader, path: Path, on_block: OnBlock | None = None) -> ExportSummary:
    """Write a chain to one file, which replaces what had that name once it is complete and on disk.

    The bytes follow from the blocks alone: two chains with the same blocks give the same file. The chain must not
    change meanwhile.

    Raises:
        Rejection: ``NOT_FOUND`` if the chain does not have its blocks from genesis.
        StorageError: If the file cannot be written, or is a directory or a device; there is none then, or the one that
            was there.
    """
    chain.blocks.check_there(0)
    with export_frames.writing(path):
        # Where a link leads, so that the link stays one.
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise StorageError(path, "cannot be written: it is no regular file", "name a file")
        partial = target.parent / f"{target.name}.partial"
        file = partial.open("wb")
    try:
        _write_chain(export_frames.FrameWriter(path, file), chain, on_block)
        with export_frames.writing(path):
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, target)
            _make_durable(target.parent)
    finally:
        # After a failed write, closing fails once more and has nothing to add.
        with suppress(OSError):
            file.close()
        partial.unlink(missing_ok=True)
    return ExportSummary(chain.genesis, chain.height)


def _make_durable(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_chain(writer: export_frames.FrameWriter, chain: ChainReader, on_block: OnBlock | None) -> None:
    blocks = chain.blocks.since(0)
    parent = next(blocks)
    writer.write(export_frames.GenesisContent(encode_genesis(chain.genesis), parent.hash, parent.header.state_root))
    is_idle = False
    for block in blocks:
        was_idle, is_idle = is_idle, follows_idly(parent, block, chain.params.governance.block_interval_ms)
        if was_idle and not is_idle:
            writer.write(export_frames.IdleContent(parent.height, parent.hash))
        if not is_idle:
            encoded, header = tuple(map(encode_transaction, block.transactions)), block.header
            content = (block.height, header.timestamp_ms, encoded, block.hash, header.state_root)
            writer.write(
                export_frames.ProposedContent(*content, header.proposer)
                if chain.genesis.validators
                else export_frames.BlockContent(*content)
            )
        if on_block is not None:
            on_block(block)
        parent = block
    if is_idle:
        writer.write(export_frames.IdleContent(parent.height, parent.hash))
    writer.end(parent.height)


def check_export(path: Path) -> ExportSummary:
    """Check that a file is a complete and undamaged export, without building its chain.

    Raises:
        StorageError: If it is missing, foreign, of another format, cut off or damaged, with the offset; or if no chain
            can start from its genesis.
    """
    with export_frames.frames_of(path) as reader:
        frames = reader.frames()
        genesis = _genesis_of(reader, next(frames))
        height = 0
        for content in frames:
            height = _height_after(reader, height, content)
    return ExportSummary(genesis, height)


def import_chain(
    path: Path, directory: Path | None = None, on_block: OnBlock | None = None, *, engine: Engine | None = None
) -> Chain:
    """Build a chain from an export, block by block, comparing every hash and state root.

    The directory appears once the chain is complete, those above it at once; without one the chain is in memory.

    Raises:
        StorageError: If `check_export` refuses the file; if a block does not give again what the file says, with the
            height and both roots; or if the directory is there already or cannot be written.
    """
    genesis = check_export(path).genesis
    if directory is None:
        chain = Chain(genesis, engine)
        _build(path, chain, on_block)
        return chain
    if os.path.lexists(directory):
        raise StorageError(directory, "is there already", "import into a directory that does not exist yet")
    with export_frames.writing(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent)
    with temporary as outer:
        building = Path(outer, directory.name)
        # Nothing of it counts before it has its name, so the disk need not follow every block.
        with Chain.create(building, genesis, engine, durable=False) as chain:
            _build(path, chain, on_block)
        with export_frames.writing(directory):
            for file in (*building.iterdir(), building):
                _make_durable(file)
            os.rename(building, directory)
            _make_durable(directory.parent)
    return Chain.open(directory, engine)


def load_chain(path: Path, *, engine: Engine | None = None) -> Chain:
    """Return the chain of a chain directory, or that of an export, in memory.

    Raises:
        StorageError: If it is neither, or cannot be used.
    """
    if path.is_dir():
        return Chain.open(path, engine)
    return import_chain(path, engine=engine)


def _genesis_of(reader: export_frames.FrameReader, content: export_frames.Content) -> Genesis:
    if not isinstance(content, export_frames.GenesisContent):
        raise reader.damaged("it should hold the genesis")
    try:
        return decode_genesis(content.genesis)
    except ConfigurationError as error:
        raise reader.damaged(str(error)) from None


def _height_after(reader: export_frames.FrameReader, height: int, content: export_frames.Content) -> int:
    """Return the height that a frame after the genesis leads to; blocks follow one another without a gap."""
    match content:
        case export_frames.BlockContent() if content.height == height + 1:
            return content.height
        case export_frames.IdleContent() if content.last > height:
            return content.last
        case export_frames.EndContent() if content.last == height:
            return height
    raise reader.damaged(f"it cannot follow block {height}")


class _Frame(Struct, frozen=True):
    """A frame of an export, which is read before the ones before it are built."""

    path: Path
    offset: int
    content: export_frames.Content
    transactions: tuple[Transaction, ...]  # those of a block

    def differing(self, height: int, what: str) -> StorageError:
        """Return the refusal of a block that does not come out as the frame says."""
        return StorageError(
            self.path,
            f"block {height} at offset {self.offset} does not come out as recorded: {what}",
            "import it with the version that wrote it; if that refuses it too, the file has been tampered with",
        )


def _decoded_frames(path: Path) -> Iterator[_Frame]:
    with export_frames.frames_of(path) as reader:
        for content in reader.frames():
            frame = _Frame(path, reader.offset, content, ())
            if isinstance(content, export_frames.BlockContent):
                try:
                    transactions = tuple(map(decode_transaction, content.transactions))
                except Rejection as rejection:
                    raise frame.differing(content.height, f"it is refused: {rejection.what}") from None
                frame = replace(frame, transactions=transactions)
            yield frame


def _build(path: Path, chain: Chain, on_block: OnBlock | None) -> None:
    """Build the blocks of an export on a chain that stands at its genesis, comparing each."""
    with closing(checked_ahead(_decoded_frames(path), attrgetter("transactions"))) as checked:
        for frame, signatures_checked in checked:
            content = frame.content
            if isinstance(content, export_frames.GenesisContent):
                _check_same(frame, chain.head, content.state_root, content.hash)
            elif isinstance(content, export_frames.BlockContent):
                block = _build_block(frame, chain, content, signatures_checked=signatures_checked)
                _check_same(frame, block, content.state_root, content.hash)
                if on_block is not None:
                    on_block(block)
            elif isinstance(content, export_frames.IdleContent):
                _build_idle(frame, chain, content, on_block)


def _build_block(
    frame: _Frame, chain: Chain, content: export_frames.BlockContent, *, signatures_checked: bool
) -> Block:
    account = content.proposer if isinstance(content, export_frames.ProposedContent) else b""
    proposer = chain.genesis.proposer_of(account)
    try:
        applied = chain.stage(
            frame.transactions, content.timestamp_ms, proposer=proposer, signatures_checked=signatures_checked
        )
        chain.seal(applied)
    except Rejection as rejection:
        raise frame.differing(content.height, f"it is refused: {rejection.what}") from None
    for transaction, refusal in applied.refused:
        raise frame.differing(content.height, f"transaction {transaction_hash(transaction)} is refused: {refusal.what}")
    return applied.block


def _build_idle(frame: _Frame, chain: Chain, content: export_frames.IdleContent, on_block: OnBlock | None) -> None:
    """Build a run of idle blocks; the hash of the last commits to all of them."""
    state_root = chain.state_root
    for block in chain.advance_to(content.last):
        _check_same(frame, block, state_root, None)
        if on_block is not None:
            on_block(block)
    _check_same(frame, chain.head, state_root, content.hash)


def _check_same(frame: _Frame, block: Block, state_root: bytes, block_hash: bytes | None) -> None:
    found = block.header.state_root
    if found != state_root:
        what = f"the state root is 0x{found.hex()}, and 0x{state_root.hex()} is recorded"
        raise frame.differing(block.height, what)
    if block_hash not in (None, block.hash):
        raise frame.differing(block.height, f"its hash is {block.hash}, and 0x{block_hash.hex()} is recorded")
