"""Files that are used as they are: only what this user has written, where no other user can write."""

import mmap
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o700
_OWN: Final = 0o600
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def read_private(path: Path) -> mmap.mmap | None:
    """Return a file that only this user can write, mapped; None for any other, a missing and an empty one."""
    try:
        place = path.parent.lstat()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(descriptor, "rb"):
        own = os.fstat(descriptor)
        if any(each.st_uid != os.geteuid() or each.st_mode & _OTHERS_WRITE for each in (place, own)):
            return None
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) if own.st_size else None


def write_private(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file at once: a reader finds the whole file or none. One thread of a process writes a file at a time."""
    path.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    path.parent.chmod(_PRIVATE)
    unfinished = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _OWN)
    try:
        with open(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
        unfinished.rename(path)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()


def is_abandoned(path: Path) -> bool:
    """Return whether the process that began to write a file has ended; see `write_private`."""
    number = path.suffix.removeprefix(".")
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OverflowError, PermissionError):
        pass  # no such name; or another user's process has the number now
    return False
