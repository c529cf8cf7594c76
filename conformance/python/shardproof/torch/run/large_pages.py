"""Makes forks of this process cheap: fork copies an entry for each page, and torch with what it imports is 100,000."""

import ctypes
import mmap
import pathlib
import re

_SIZE = 2 << 20  # bytes of a large page; where it is another, the kernel declines
_MADV_COLLAPSE = 25  # man 2 madvise, Linux 6.1
_OWN = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *(?:\[heap\])?$")  # private, of no file


def whole_pages(begin, end):
    """The large pages that lie in a range of addresses: (first, behind the last)."""
    return -(-begin // _SIZE) * _SIZE, end // _SIZE * _SIZE


def collapse():
    """Bytes of this process's own memory that the kernel was asked to put into large pages; it may decline."""
    if mmap.PAGESIZE >= _SIZE:
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    asked = 0
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if found := _OWN.match(line):
            begin, end = whole_pages(*(int(address, 16) for address in found.groups()))
            if begin < end:
                madvise(begin, end - begin, _MADV_COLLAPSE)
                asked += end - begin
    return asked
