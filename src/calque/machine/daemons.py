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
_MAPS: Final = "/proc/self/maps"
_BLAS, _DESTRUCTOR = "blas", "gotoblas_quit"  # in the names of its files, and OpenBLAS's own
_NAME: Final = b"pthread_exit"
_ELF64_LITTLE: Final = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC, _RELRO = 1, 2, 0x6474E552  # kinds of segments
_END, _PLT_BYTES, _STRINGS, _SYMBOLS, _RELA, _RELA_BYTES, _PLT = 0, 2, 5, 6, 7, 8, 23
_DESTRUCTORS, _DESTRUCTORS_BYTES = 26, 28
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_WORD_RELOCATIONS: Final = {6, 7, 1025, 1026}  # of GLOB_DAT and JUMP_SLOT, x86-64 and aarch64


class _Info(ctypes.Structure):
    """What ``dladdr`` tells of an address."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class _Library(NamedTuple):
    """A library in memory: what its addresses are counted from, its tables, and the range that the
    loader has made read-only."""

    bias: int
    tables: dict[int, int]
    protected: range


def park_daemon_threads(park: int) -> bool:
    """From now on a thread that Python ends goes to `park`, the address of a function that never
    returns. False where Python does not end threads like this."""
    if sys.platform != "linux" or sys.version_info >= _PARKS_THREADS_ITSELF:
        return False
    library = _interpreter()
    words = [] if library is None else list(_words_that_call(library))
    for word in words:
        assert library is not None
        _write(word, park, word in library.protected)
    return bool(words)


def keep_blas() -> int:
    """From now on the process ends without the destructors of OpenBLAS: how many are left out."""
    harmless = _address(ctypes.CDLL(None).getpid)
    words = {each for file in _blas_files() for each in _words_of_destructor(file)}
    for word, protected in words:
        _write(word, harmless, protected)
    return len(words)


def _blas_files() -> set[str]:
    """The files of linear algebra that are loaded."""
    try:
        with open(_MAPS) as maps:
            files = {line[line.index("/") :].rstrip("\n") for line in maps if "/" in line}
    except OSError:  # of another system
        return set()
    return {file for file in files if _BLAS in os.path.basename(file)}


def _words_of_destructor(file: str) -> Iterator[tuple[int, bool]]:
    """The addresses of the words through which the loader calls the destructor in a file, and
    whether they are read-only."""
    try:
        loaded = ctypes.CDLL(file, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        function = getattr(loaded, _DESTRUCTOR)
    except (OSError, AttributeError):  # mapped and no library, or another BLAS
        return
    library = _library_of(function)
    tables = {} if library is None else library.tables
    if library is None or not {_DESTRUCTORS, _DESTRUCTORS_BYTES} <= set(tables):
        return
    first = library.bias + tables[_DESTRUCTORS]
    for word in range(first, first + tables[_DESTRUCTORS_BYTES], 8):
        if ctypes.c_uint64.from_address(word).value == _address(function):
            yield word, word in library.protected


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _interpreter() -> _Library | None:
    """The library, or the program, in which the interpreter ends its threads."""
    return _library_of(ctypes.pythonapi.PyThread_exit_thread)


def _library_of(function: Any) -> _Library | None:
    """The library, or the program, in which a function is; None where libraries have another
    form."""
    info = _Info()
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return None
    if not libc.dladdr(ctypes.c_void_p(_address(function)), ctypes.byref(info)):
        return None
    base = info.base or 0
    if not base or not ctypes.string_at(base, 6).startswith(_ELF64_LITTLE):
        return None
    return _library(base)


def _library(base: int) -> _Library | None:
    (headers,) = struct.unpack("<Q", ctypes.string_at(base + 32, 8))
    size, count = struct.unpack("<HH", ctypes.string_at(base + 54, 4))
    segments = [
        struct.unpack("<IIQQQQQ", ctypes.string_at(base + headers + k * size, 48))
        for k in range(count)
    ]
    first = min((address for kind, _, _, address, *_ in segments if kind == _LOAD), default=0)
    bias = base - first
    tables: dict[int, int] = {}
    protected = range(0)
    for kind, _, _, address, _, _, nbytes in segments:  # in memory, where there may be more of it
        if kind == _DYNAMIC:
            tables = _dynamic(bias + address)
        elif kind == _RELRO:
            protected = range(_page(bias + address), _page(bias + address + nbytes))
    for table in (_STRINGS, _SYMBOLS, _RELA, _PLT):
        if tables.get(table, base) < base:  # not every loader writes the address back
            tables[table] += bias
    return _Library(bias, tables, protected) if {_STRINGS, _SYMBOLS} <= set(tables) else None


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


def _words_that_call(library: _Library) -> Iterator[int]:
    """The addresses of the words through which the library calls ``pthread_exit``."""
    tables = library.tables
    for table, nbytes in ((_PLT, _PLT_BYTES), (_RELA, _RELA_BYTES)):
        if table not in tables or nbytes not in tables:
            continue
        whole = tables[nbytes] - tables[nbytes] % _RELOCATION.size
        entries = ctypes.string_at(tables[table], whole)
        for offset, info, _ in _RELOCATION.iter_unpack(entries):
            if info & 0xFFFFFFFF in _WORD_RELOCATIONS and _name(tables, info >> 32) == _NAME:
                yield library.bias + offset


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
