"""Which pages of a private mapping are copies, as the kernel lists them."""

import ctypes
import mmap
import os

import pytest

from trailboss.sandbox import pages

PAGE = pages.PAGE


@pytest.mark.parametrize("count", [0, 1, 700, 1_500, 4_000])
def test_every_written_page_is_listed_once_when_they_are_more_than_one_list_holds(count):
    if pages.page_map() is None:
        pytest.skip("this kernel lists no copies of private mappings")
    size = 2 * 4_000 * PAGE
    file = pages.anonymous_file("test", bytes(size))
    mapping = mmap.mmap(file, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    written = [2 * index * PAGE for index in range(count)]
    for start in written:
        mapping[start] = 1
    spans = pages.joined(pages.Scan().regions(base, base + size))

    assert spans == [(base + start, base + start + PAGE) for start in written]
    os.close(file)
