"""Daemon threads at the end of the process: they are parked, not unwound.

Before version 3.14, Python ends a daemon thread that asks for the GIL after the interpreter has
gone by ``pthread_exit``. glibc then unwinds the stack of the thread, and C++ code that must not
throw (pybind11 takes the GIL back in a destructor, in SciPy) makes that an abort of the whole
process. From 3.14 on Python lets such threads wait for ever instead, and so do we: the word
through which the interpreter's own library calls ``pthread_exit`` is led to a function that never
returns. Only that library is changed, in memory, and only when the process ends. Systems other than
Linux with glibc do not unwind C++ frames there.

Parked threads live on while the process takes its libraries down. The destructor of OpenBLAS, which
NumPy and SciPy bring along, frees the buffers that products are computed in and waits for its own
threads, and what a thread is just computing makes it wait for ever or fail: so it is left out.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_PARKS_THREADS_ITSELF: Final = (3, 14)
_BLAS: Final = "openblas"  # in the names of its files
_HARMLESS: Final = "getpid"  # takes the place of destructors
_NAME: Final = b"pthread_exit"
_LOAD, _DYNAMIC, _RELRO = 1, 2, 0x6474E552  # kinds of segments
_END, _PLT_BYTES, _STRINGS, _SYMBOLS, _RELA, _RELA_BYTES, _PLT = 0, 2, 5, 6, 7, 8, 23
_DESTRUCTORS, _DESTRUCTORS_BYTES = 26, 28
_HEADER: Final = struct.Struct("<IIQQQQQQ")  # of a segment
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_WORD_RELOCATIONS: Final = {6, 7, 1025, 1026}  # of GLOB_DAT and JUMP_SLOT, x86-64 and aarch64


class _Info(ctypes.Structure):
    """How ``dl_iterate_phdr`` tells of a library; more follows."""

    _fields_ = (
        ("bias", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("headers", ctypes.c_uint64),
        ("count", ctypes.c_uint16),
    )


class _Library(NamedTuple):
    """A library in memory: its file, what its addresses are counted from, and its segments, each
    its kind, where it begins and how long it is."""

    file: str
    bias: int
    segments: list[tuple[int, int, int]]

    def of_kind(self, wanted: int) -> list[range]:
        """The places of the segments of a kind."""
        return [range(at, at + nbytes) for kind, at, nbytes in self.segments if kind == wanted]

    def tables(self) -> dict[int, int]:
        """What stands where, for the loader."""
        found: dict[int, int] = {}
        for place in self.of_kind(_DYNAMIC):
            found |= _dynamic(place.start)
        lowest = min((place.start for place in self.of_kind(_LOAD)), default=0)
        for table in (_STRINGS, _SYMBOLS, _RELA, _PLT, _DESTRUCTORS):
            if found.get(table, lowest) < lowest:  # not every loader writes the address back
                found[table] += self.bias
        return found

    def is_protected(self, word: int) -> bool:
        """Whether the loader has made the page of a word read-only."""
        return any(_page(place.start) <= word < _page(place.stop) for place in self.of_kind(_RELRO))


def park_daemon_threads(park: int) -> bool:
    """From now on a thread that Python ends goes to `park`, the address of a function that never
    returns. False where Python does not end threads like this."""
    if sys.platform != "linux" or sys.version_info >= _PARKS_THREADS_ITSELF:
        return False
    if not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return False
    library = _interpreter()
    words = [] if library is None else list(_words_that_call(library.tables(), library.bias))
    for word in words:
        assert library is not None
        _write(word, park, library.is_protected(word))
    return bool(words)


def keep_blas() -> int:
    """From now on the process ends without the destructors of OpenBLAS: how many are left out."""
    harmless = _address(getattr(ctypes.CDLL(None), _HARMLESS))
    left_out = 0
    for library in _libraries():
        if _BLAS not in os.path.basename(os.path.realpath(library.file)):
            continue
        for word in _words_of_destructors(library.tables()):
            if ctypes.c_uint64.from_address(word).value != harmless:
                _write(word, harmless, library.is_protected(word))
                left_out += 1
    return left_out


def _words_of_destructors(tables: dict[int, int]) -> range:
    """The addresses of the words through which the loader calls the destructors of a library. Newer
    ones export no name by which one could be told from the others."""
    first = tables.get(_DESTRUCTORS, 0)
    return range(first, first + tables.get(_DESTRUCTORS_BYTES, 0), 8)


def _interpreter() -> _Library | None:
    """The library, or the program, in which the interpreter ends its threads."""
    function = _address(ctypes.pythonapi.PyThread_exit_thread)
    for library in _libraries():
        if any(function in place for place in library.of_kind(_LOAD)):
            return library
    return None


def _libraries() -> list[_Library]:
    """The program and its libraries; none on systems that do not tell."""
    found: list[_Library] = []

    def see(info: Any, _size: int, _given: int | None) -> int:
        told = info.contents
        headers = ctypes.string_at(told.headers, told.count * _HEADER.size)
        segments = [  # the bytes in memory are counted: there may be more than in the file
            (kind, told.bias + address, nbytes)
            for kind, _, _, address, _, _, nbytes, _ in _HEADER.iter_unpack(headers)
        ]
        found.append(_Library(os.fsdecode(told.file or b""), told.bias, segments))
        return 0

    # The GIL is kept: a thread that has it may wait for the lock which is held meanwhile.
    walk = getattr(ctypes.PyDLL(None), "dl_iterate_phdr", None)
    if walk is not None and ctypes.sizeof(ctypes.c_void_p) == 8 and sys.byteorder == "little":
        pointer = ctypes.c_void_p
        kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_size_t, pointer)
        walk(kind(see), None)
    return found


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _page(address: int) -> int:
    return address & -mmap.PAGESIZE


def _dynamic(at: int) -> dict[int, int]:
    found: dict[int, int] = {}
    while True:
        tag, value = struct.unpack("<QQ", ctypes.string_at(at, 16))
        if tag == _END:
            return found
        found[tag] = value
        at += 16


def _words_that_call(tables: dict[int, int], bias: int) -> Iterator[int]:
    """The addresses of the words through which a library calls ``pthread_exit``."""
    for table, nbytes in ((_PLT, _PLT_BYTES), (_RELA, _RELA_BYTES)):
        if table not in tables or nbytes not in tables:
            continue
        whole = tables[nbytes] - tables[nbytes] % _RELOCATION.size
        entries = ctypes.string_at(tables[table], whole)
        for offset, info, _ in _RELOCATION.iter_unpack(entries):
            if info & 0xFFFFFFFF in _WORD_RELOCATIONS and _name(tables, info >> 32) == _NAME:
                yield bias + offset


def _name(tables: dict[int, int], symbol: int) -> bytes:
    entry = ctypes.string_at(tables[_SYMBOLS] + symbol * _SYMBOL.size, _SYMBOL.size)
    return ctypes.string_at(tables[_STRINGS] + _SYMBOL.unpack(entry)[0])


def _write(word: int, value: int, protected: bool) -> None:
    """Change a word, also one that the loader has made read-only."""
    page = _page(word)
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protected and protect(page, mmap.PAGESIZE, rights) != 0:
        return
    ctypes.c_uint64.from_address(word).value = value
    if protected:
        protect(page, mmap.PAGESIZE, mmap.PROT_READ)
