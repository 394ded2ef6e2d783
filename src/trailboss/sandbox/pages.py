"""Memory that returns to its first state: a file of the image mapped privately, and the pages that differ put back.

The kernel copies a page of a private mapping when the guest first writes to it. Such a page stays a copy, so the copies
of a machine only grow in number, and putting their first content back makes all memory equal to the first state. Linux
from 6.7 on lists the copies (``PAGEMAP_SCAN``); elsewhere all memory is mapped again, which is exact by construction.
"""

import ctypes
import fcntl
import mmap
import os
import resource
import struct
import tempfile
import threading
import weakref
from functools import cache
from typing import Any, Final

from msgspec import Struct

from trailboss.primitives.errors import InvariantError
from trailboss.sandbox.machine import Machine

PAGE: Final = mmap.PAGESIZE
COPIES_MAX: Final = 1_024  # pages of copies from which on a machine is mapped again, which costs less than to put back
_SCAN: Final = 0xC0606610  # _IOWR('f', 16, struct pm_scan_arg)
_IS_FILE, _IS_PRESENT, _IS_SWAPPED = 4, 8, 16  # categories of a page
_REGIONS_MAX: Final = 1_024  # regions that one call lists
_REGION_NUMBERS: Final = 3
_REGION: Final = struct.Struct(f"<{_REGION_NUMBERS}Q")  # struct page_region
_ARGUMENT: Final = struct.Struct("<12Q")  # struct pm_scan_arg
_ARGUMENT_ZEROS: Final = 11
_WALK_END: Final = 4  # its field that says where the list ends
_VECTOR_BYTES: Final = 16  # struct iovec
_MAP_PRIVATE: Final = mmap.MAP_PRIVATE
_MAP_FIXED: Final = 0x10  # the same number on Linux and macOS
_IOVECS_MAX: Final = 1_024  # IOV_MAX
_system: Final[Any] = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
]  # fmt: skip
_system.preadv.restype = ctypes.c_ssize_t
_system.preadv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
_thread_usage: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


class PageRun(Struct, frozen=True, gc=False):
    """Pages in a row: where they begin in memory, how many bytes, and where their content begins in its file."""

    start: int
    size: int
    at: int


class ImageFile:
    """The image's memory as a file without a name, which every machine maps."""

    def __init__(self, memory: bytes | memoryview) -> None:
        self.size = len(memory)
        self.descriptor = anonymous_file("image", memory)
        self.octets = mmap.mmap(self.descriptor, self.size, prot=mmap.PROT_READ)

    def map_into(self, machine: Machine) -> None:
        """Make a machine's memory the image's, whatever it holds."""
        _map(machine.address, self.size, self.descriptor, 0)

    def close(self) -> None:
        """Release the file; machines that map it keep it."""
        self.octets.close()
        os.close(self.descriptor)


def anonymous_file(name: str, content: bytes | memoryview) -> int:
    """Return the descriptor of a file without a name that holds ``content``."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(name)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    return descriptor


class FirstState:
    """The state that an actor's frames begin with: the image, and the pages in which the actor's differ from it."""

    def __init__(self, image: ImageFile, machine: Machine) -> None:
        """Take the present state of a machine."""
        self.image = image
        self._own: dict[int, int] = {}  # where the pages that differ lie in the file, by where they begin
        self._runs: list[PageRun] = []
        at = 0
        for start, end in _differences(image, machine):
            self._runs.append(PageRun(start, end - start, at))
            self._own |= {page: at + page - start for page in range(start, end, PAGE)}
            at += end - start
        own = b"".join([machine.read(run.start, run.size) for run in self._runs])
        self.descriptor = anonymous_file("actor", own)
        # Whoever holds this state may map the file, so it is released with the last of them.
        weakref.finalize(self, os.close, self.descriptor).atexit = False

    def map_into(self, machine: Machine) -> None:
        """Make a machine's memory this state, whatever it holds."""
        self.image.map_into(machine)
        for run in self._runs:
            _map(machine.address + run.start, run.size, self.descriptor, run.at)

    def content(self, start: int, end: int) -> bytes:
        """Return the bytes of this state from ``start`` to ``end``, both at the border of a page."""
        own, image = self._own, self.image.octets
        pages = range(start, end, PAGE)
        return b"".join(
            [os.pread(self.descriptor, PAGE, own[page]) if page in own else image[page : page + PAGE] for page in pages]
        )


class Restorer:
    """Puts one machine back to its first state after each frame."""

    def __init__(self, machine: Machine, first: FirstState) -> None:
        self.machine = machine
        self._first = first
        self._regions = b""  # what the last scan listed
        self._vectors: Any = None  # where the copies lie, for ``preadv``
        self._count = self._total = 0
        self._faults: tuple[int, int] | None = None
        self._scan = None if page_map() is None else Scan()
        self._content = -1
        first.map_into(machine)

    def mark(self) -> None:
        """Note, before a frame and on its thread, the page faults so far: without another one no page is copied."""
        self._faults = _page_faults()

    def restore(self) -> bool:
        """Put the first state back; return False if memory has grown: such a machine cannot be used again."""
        if self.machine.present_size() != self.machine.size:
            return False
        if self._scan is None:
            self._first.map_into(self.machine)
            return True
        if self._faults is None or self._faults != _page_faults():
            regions = self._scan.regions(self.machine.address, self.machine.address + self.machine.size)
            if regions != self._regions:
                spans = joined(regions)
                if sum(end - start for start, end in spans) > COPIES_MAX * PAGE:
                    self._first.map_into(self.machine)
                    self._regions, self._count, self._total = b"", 0, 0
                    return True
                self._regions = regions
                self._list(spans)
        done = at = 0
        while at < self._count:
            size = _system.preadv(
                self._content,
                ctypes.addressof(self._vectors) + _VECTOR_BYTES * at,
                min(self._count - at, _IOVECS_MAX),
                done,
            )
            if size <= 0:
                raise InvariantError(f"the first state of a machine cannot be read: error {ctypes.get_errno()}")
            done += size
            at += _IOVECS_MAX
        if done != self._total:
            raise InvariantError(f"{done} of {self._total} bytes of a machine were put back")
        return True

    def close(self) -> None:
        """Release the machine and the copies of its first state."""
        self.machine.close()
        if self._content >= 0:
            os.close(self._content)
            self._content = -1

    def _list(self, spans: list[tuple[int, int]]) -> None:
        """Keep the first content of every page that is a copy."""
        base = self.machine.address
        content = b"".join(self._first.content(start - base, end - base) for start, end in spans)
        self._vectors = (ctypes.c_uint64 * (2 * len(spans)))(
            *[number for start, end in spans for number in (start, end - start)]
        )
        self._count, self._total = len(spans), len(content)
        if self._content >= 0:
            os.close(self._content)
        self._content = anonymous_file("copies", content)


class Scan:
    """Lists the pages between two addresses that are copies."""

    def __init__(self) -> None:
        self._regions = (ctypes.c_uint64 * (_REGION_NUMBERS * _REGIONS_MAX))()
        self._argument = bytearray(_ARGUMENT.size)

    def regions(self, start: int, end: int) -> bytes:
        """Return the regions as the kernel lists them: first address, end, category."""
        descriptor = page_map()
        assert descriptor is not None
        found: list[bytes] = []
        while start < end:
            _ARGUMENT.pack_into(
                self._argument, 0, _ARGUMENT.size, 0, start, end, 0, ctypes.addressof(self._regions), _REGIONS_MAX, 0,
                _IS_FILE, _IS_FILE, _IS_PRESENT | _IS_SWAPPED, _IS_FILE | _IS_PRESENT,
            )  # fmt: skip
            count = fcntl.ioctl(descriptor, _SCAN, self._argument)
            found.append(ctypes.string_at(self._regions, _REGION.size * count))
            start = _ARGUMENT.unpack_from(self._argument)[_WALK_END]
        return b"".join(found)


@cache
def page_map() -> int | None:
    """Return the descriptor of the process's page map, if the kernel lists the copies of a private mapping."""
    # A page map stays that of the process which opened it, so a process that was forked opens its own.
    os.register_at_fork(after_in_child=page_map.cache_clear)
    try:
        descriptor = os.open("/proc/self/pagemap", os.O_RDONLY)
        fcntl.ioctl(descriptor, _SCAN, bytearray(_ARGUMENT.pack(_ARGUMENT.size, *[0] * _ARGUMENT_ZEROS)))
    except OSError:
        return None
    return descriptor


def joined(regions: bytes) -> list[tuple[int, int]]:
    """Return the spans of addresses of listed regions, neighbours joined."""
    spans: list[tuple[int, int]] = []
    for start, end, _ in _REGION.iter_unpack(regions):
        if not spans or start > spans[-1][1]:
            spans.append((start, end))
        elif end > spans[-1][1]:
            # A list that the kernel goes on with can begin before the end of the one before.
            spans[-1] = (spans[-1][0], end)
    return spans


def _differences(image: ImageFile, machine: Machine) -> list[tuple[int, int]]:
    """Return the spans of a machine's pages that differ from the image."""
    changed = [(0, image.size)]
    if page_map() is not None:
        regions = Scan().regions(machine.address, machine.address + image.size)
        changed = [(start - machine.address, end - machine.address) for start, end in joined(regions)]
    spans: list[tuple[int, int]] = []
    for start in (page for first, end in changed for page in range(first, end, PAGE)):
        if machine.read(start, PAGE) != image.octets[start : start + PAGE]:
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], start + PAGE)
            else:
                spans.append((start, start + PAGE))
    return spans


def _map(address: int, size: int, descriptor: int, at: int) -> None:
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if _system.mmap(address, size, protection, _MAP_PRIVATE | _MAP_FIXED, descriptor, at) != address:
        raise InvariantError(f"the sandbox's memory cannot be mapped: error {ctypes.get_errno()}")


def _page_faults() -> tuple[int, int]:
    usage = resource.getrusage(_thread_usage)
    return threading.get_ident(), usage.ru_minflt + usage.ru_majflt
