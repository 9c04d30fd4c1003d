"""Memory for machine code: regions in which the code of many images lies side by side, and their
data behind it.

The system keeps a list of ranges of memory with the same rights, of bounded length: a region takes
two of them however many images it holds, since all its executable pages come first. A page is made
executable once it is filled, and is not writable from then on; a page that was given back is made
writable again for the next image. A region without images goes back to the system."""

from __future__ import annotations

import bisect
import ctypes
import mmap
from collections import deque
from typing import Any, Final, NamedTuple

from calque.machine.once import Turns, once

_PAGE: Final = mmap.PAGESIZE
_CODE: Final = 1 << 20  # bytes of a region for code; more for an image that takes more
_DATA: Final = 1 << 18
_WORD: Final = 16  # data of images begin at multiples of this, at least


class Allotment(NamedTuple):
    """Where an image goes, and how much of both it takes."""

    code: int
    data: int
    code_bytes: int
    data_bytes: int


class Room:
    """The free ranges of a length of memory, by offset."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        self._starts, self._ends = [0], [size]

    def take(self, size: int, align: int) -> int | None:
        """The offset of the first place that is large enough."""
        for i, (start, end) in enumerate(zip(self._starts, self._ends)):
            at = _rounded(start, align)
            if at + size <= end:
                self._starts[i : i + 1] = [start, at + size]
                self._ends[i : i + 1] = [at, end]
                self._drop_empty(i + 1)
                self._drop_empty(i)
                self.free -= size
                return at
        return None

    def _drop_empty(self, i: int) -> None:
        if self._starts[i] == self._ends[i]:
            del self._starts[i], self._ends[i]

    def give(self, at: int, size: int) -> None:
        """Free a range that was taken, and join it with its neighbours."""
        if size == 0:
            return
        i = bisect.bisect_left(self._starts, at)
        self._starts.insert(i, at)
        self._ends.insert(i, at + size)
        self.free += size
        for k in (i + 1, i):
            if 0 < k < len(self._starts) and self._ends[k - 1] == self._starts[k]:
                del self._ends[k - 1], self._starts[k]


class CodeRegion:
    """A range of memory: code from its beginning on, data behind it."""

    def __init__(self, code: int, data: int) -> None:
        code, data = _rounded(max(code, _CODE), _PAGE), _rounded(max(data, _DATA), _PAGE)
        system, flags = functions(), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        base = system.mmap(None, code + data, rights, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "no memory for machine code")
        self.base: int = base
        self.code, self.data = Room(code), Room(data)
        self.was_executable = 0  # bytes from the beginning on

    def place(self, code: int, data: int, align: int) -> Allotment | None:
        """Room for an image, if there is any: writable, and not executable."""
        code, data = _rounded(max(code, 1), _PAGE), max(data, _WORD)
        at = self.code.take(code, _PAGE)
        if at is None:
            return None
        behind = self.data.take(data, max(align, _WORD))
        if behind is None:
            self.code.give(at, code)
            return None
        if at < self.was_executable:
            _protect(self.base + at, code, mmap.PROT_READ | mmap.PROT_WRITE)
        self.was_executable = max(self.was_executable, at + code)
        return Allotment(self.base + at, self.base + self.code.size + behind, code, data)

    def holds(self, place: Allotment) -> bool:
        return self.base <= place.data < self.base + self.code.size + self.data.size

    def give(self, place: Allotment) -> None:
        """Take an image back. Nobody runs it any more."""
        functions().madvise(place.code, place.code_bytes, mmap.MADV_DONTNEED)
        self.code.give(place.code - self.base, place.code_bytes)
        self.data.give(place.data - self.base - self.code.size, place.data_bytes)

    def is_empty(self) -> bool:
        return self.code.free == self.code.size and self.data.free == self.data.size

    def unmap(self) -> None:
        functions().munmap(self.base, self.code.size + self.data.size)


class Arena:
    """All regions."""

    def __init__(self) -> None:
        self._turns = Turns()
        self.regions: tuple[CodeRegion, ...] = ()
        # What nobody has any more, until the next one who needs room looks: objects die at any
        # moment, also while this very thread holds the lock.
        self._given_back: deque[Allotment] = deque()

    def place(self, code: int, data: int, align: int) -> Allotment:
        """Room for an image that is written next; nobody else gets it."""
        with self._turns.taken():
            self._collect()
            for region in self.regions:
                found = region.place(code, data, align)
                if found is not None:
                    return found
            region = CodeRegion(code, data)
            found = region.place(code, data, align)
            self.regions = (*self.regions, region)
        assert found is not None
        return found

    def give_back(self, place: Allotment) -> None:
        """The image is needed no longer. Takes no lock."""
        self._given_back.append(place)

    def _collect(self) -> None:
        while self._given_back:
            place = self._given_back.popleft()
            region = next(r for r in self.regions if r.holds(place))
            region.give(place)
            if region.is_empty() and len(self.regions) > 1:
                self.regions = tuple([r for r in self.regions if r is not region])
                region.unmap()

    def used(self) -> tuple[int, int]:
        """The bytes of code and of data that are in use."""
        with self._turns.taken():
            self._collect()
            regions = self.regions
        return (
            sum(r.code.size - r.code.free for r in regions),
            sum(r.data.size - r.data.free for r in regions),
        )


arena: Final = Arena()


def make_executable(address: int, nbytes: int) -> None:
    """From now on the pages may be run, and no longer written."""
    _protect(address, nbytes, mmap.PROT_READ | mmap.PROT_EXEC)


def _protect(address: int, nbytes: int, rights: int) -> None:
    if nbytes and functions().mprotect(address, _rounded(nbytes, _PAGE), rights) != 0:
        raise OSError(ctypes.get_errno(), "this system does not let memory change its rights")


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
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
