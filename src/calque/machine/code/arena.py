"""Memory for machine code: regions in which the code of many images lies side by side, and their
data behind it.

The system keeps a list of ranges of memory with the same rights, of bounded length: a region takes
two of them however many images it holds, since all its executable pages come first. A page is made
executable once it is filled, and is not writable from then on."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final, NamedTuple

from calque.machine.once import Turns, once

_PAGE: Final = mmap.PAGESIZE
_CODE: Final = 1 << 20  # bytes of a region for code; more for an image that takes more
_DATA: Final = 1 << 18
_WORD: Final = 16  # data of images begin at multiples of this, at least


class Place(NamedTuple):
    """Where an image goes."""

    code: int
    data: int


class Region:
    """A range of memory: code from its beginning on, data from `data_at` on."""

    def __init__(self, code: int, data: int) -> None:
        self.code, self.data = _rounded(max(code, _CODE), _PAGE), _rounded(max(data, _DATA), _PAGE)
        system, flags = functions(), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        base = system.mmap(None, self.code + self.data, rights, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "no memory for machine code")
        self.base: int = base
        self.code_used = self.data_used = 0

    def place(self, code: int, data: int, align: int) -> Place | None:
        """Room for an image, if there is any."""
        at = _rounded(self.data_used, max(align, _WORD))
        code = _rounded(code, _PAGE)
        if self.code_used + code > self.code or at + data > self.data:
            return None
        place = Place(self.base + self.code_used, self.base + self.code + at)
        self.code_used, self.data_used = self.code_used + code, at + data
        return place


class Arena:
    """All regions; only the last one has room."""

    def __init__(self) -> None:
        self._turns = Turns()
        self.regions: tuple[Region, ...] = ()

    def place(self, code: int, data: int, align: int) -> Place:
        """Room for an image that is written next; nobody else gets it."""
        with self._turns.taken():
            found = self.regions[-1].place(code, data, align) if self.regions else None
            if found is None:
                region = Region(code, data)
                found = region.place(code, data, align)
                self.regions = (*self.regions, region)
        assert found is not None
        return found

    def used(self) -> tuple[int, int]:
        """The bytes of code and of data."""
        regions = self.regions
        return sum(r.code_used for r in regions), sum(r.data_used for r in regions)


arena: Final = Arena()


def make_executable(address: int, nbytes: int) -> None:
    """From now on the pages may be run, and no longer written."""
    rights = mmap.PROT_READ | mmap.PROT_EXEC
    if nbytes and functions().mprotect(address, _rounded(nbytes, _PAGE), rights) != 0:
        raise OSError(ctypes.get_errno(), "this system does not let memory become executable")


def _rounded(n: int, to: int) -> int:
    return -(-n // to) * to


@once
def functions() -> Any:
    """The functions of the process, with the types of those that are called here."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
