"""A chain in a directory that cannot be written: it can be looked at, checked and taken along, and nothing else."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trailboss.chain import Chain
from trailboss.primitives.errors import StorageError
from trailboss.state.disk.files import DirectoryLock
from trailboss.testing import LocalChain

SOURCE = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer(50, b"")

def handle_timer(payload):
    pass
"""
SEALED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
"""For a mount namespace of its own: nothing outside of it sees the directory read-only."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with a chain of ten blocks and one live timer, closed in order."""
    with LocalChain(data_dir=tmp_path / "kept") as chain:
        chain.deploy(SOURCE, sender=chain.accounts[0], value=20 * 10**9)
        chain.advance_to(10)
    return tmp_path / "kept"


@pytest.fixture
def sealed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory, and have the system refuse to open any file for writing, as if it were read-only."""
    really = os.open

    def opened(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return really(path, flags, *rest)

    monkeypatch.setattr(os, "open", opened)
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("missing", ["nothing", "clean", "lock", "head"])
def test_chain_is_read_when_its_directory_cannot_be_written(sealed: Path, missing: str) -> None:
    """Also after a crash, of which the missing note of an orderly end is the sign, and from a copy without a lock."""
    (sealed / missing).unlink(missing_ok=True)
    before = contents(sealed)
    with Chain.open(sealed) as chain:
        assert (chain.height, chain.timer_count()) == (10, 1)
        chain.check_invariants()
        with pytest.raises(StorageError, match=r"can only be read: .* \(copy the directory to where it can be written"):
            chain.build()
        with pytest.raises(StorageError, match="can only be read"):
            list(chain.advance_to(20))
        assert chain.height == 10
    assert contents(sealed) == before


def test_several_read_at_once(sealed: Path) -> None:
    """Readers share the lock."""
    locks = [DirectoryLock(sealed) for _ in range(2)]
    assert not any(lock.is_writable for lock in locks)
    for lock in locks:
        lock.release()


def test_reader_is_refused_while_a_writer_has_the_chain(directory: Path, request: pytest.FixtureRequest) -> None:
    """A read-only mount of a directory that a node writes elsewhere is not read behind its back."""
    with Chain.open(directory):
        request.getfixturevalue("sealed")
        with pytest.raises(StorageError, match=rf"in use by process {os.getpid()} .* with --url"):
            Chain.open(directory)


COMMANDS = {
    "status": (), "timers": (), "events": (), "balance": (), "params": (), "verify": (), "block": ("1",),
    "quote": ("--height", "40", "--gas-limit", "50000"), "export": ("copy.chain",), "replay": ("--to", "5"),
    "prove": ("account", "0"),
}  # fmt: skip


def has_mounts() -> bool:
    """Return whether this process may have a mount namespace of its own."""
    try:
        return subprocess.run(("unshare", "--mount", "true"), capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not has_mounts(), reason="no mount namespace is to be had here")
def test_commands_that_read_work_on_a_read_only_mount(directory: Path) -> None:
    """The real thing: all of them answer, one that builds is refused, and no file has changed."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = (sys.executable, "-m", "trailboss", *arguments, "--chain", str(directory))
        command = ("unshare", "--mount", "sh", "-c", SEALED, str(directory), *program)
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=directory.parent, check=False)

    before = contents(directory)
    for name, arguments in COMMANDS.items():
        found = run(name, *arguments)
        assert found.returncode == 0, (name, found.stderr)
        assert found.stdout, name
    for name, arguments in {"mine": (), "send": ("1", "1"), "node": ("--port", "0")}.items():
        found = run(name, *arguments)
        assert found.returncode == 1, name
        assert "can only be read" in " ".join(found.stderr.split()), name
    assert contents(directory) == before
