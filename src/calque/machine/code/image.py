"""Machine code that is ready to be mapped: what lies on disk, so that a process that compiles
nothing needs no LLVM.

An image is a relocatable object whose sections stand in their places already. Code and constants
come first and know each other by distance; data follow on the next page, with a table of the
addresses that only the running process knows. Loading is: map, copy, fill in those addresses, make
the code executable. Objects of other systems, or with anything unusual in them, stay what they are
and are linked by LLVM."""

from __future__ import annotations

import ctypes
import marshal
import mmap
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from calque.machine.once import once

_MAGIC = b"calque image 1\0"
_ELF_X86_64 = b"\x7fELF\x02\x01"
_RELOCATIONS, _ZEROES = 4, 8  # types of sections
_WRITE, _ALLOC = 1, 2  # flags of sections
_PLACED = (
    "text",
    "rodata",
    "data",
    "bss",
)  # of the sections that are loaded; what debuggers and unwinders read is left out
_ABS64, _PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 1, 2, 4, 9, 41, 42
_MARSHAL = 4  # a form that every Python reads
_PAGE = mmap.PAGESIZE
_THUNK = b"\xff\x25"  # jmp *[rip + distance]
_THUNK_BYTES = 8


class Unusual(Exception):
    """Something in an object that images do not have."""


class Section(NamedTuple):
    """A section of an ELF file."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class Symbol(NamedTuple):
    """A symbol of an ELF file: `section` is 0 for what others define."""

    name: str
    section: int
    value: int
    exported: bool


def usable() -> bool:
    """Whether this system is one that images are for; ``CALQUE_LINKER=llvm`` says no."""
    known = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32
    return known and os.environ.get("CALQUE_LINKER", "").strip().lower() != "llvm"


def image_of(obj: bytes) -> bytes | None:
    """The image of a relocatable object, or None when it has to be linked by LLVM."""
    if not obj.startswith(_ELF_X86_64):
        return None
    try:
        return _MAGIC + marshal.dumps(_Layout(obj).parts(), _MARSHAL)
    except Unusual:
        return None


def is_image(code: bytes) -> bool:
    return code.startswith(_MAGIC)


# ---------------------------------------------------------------- from an object to an image


class _Layout:
    """Gives every section its place and resolves what does not depend on the process."""

    def __init__(self, obj: bytes) -> None:
        self.obj = obj
        self.sections = _sections(obj)
        self.symbols = self.read_symbols()
        self.slots: dict[str, int] = {}  # symbol -> where its address stands
        self.thunks: dict[str, int] = {}
        self.filled: list[
            tuple[int, str, int]
        ] = []  # place, symbol (or "" for the image itself), addend
        self.place: dict[int, int] = {}
        self.relocations = list(self.read_relocations())
        self.image = self.arrange()

    def read_symbols(self) -> list[Symbol]:
        table = next((s for s in self.sections if s.kind == 2), None)
        if table is None:
            return []
        names = self.sections[table.link]
        found = []
        data = self.obj[table.offset : table.offset + table.size]
        for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", data):
            if info & 15 == 6 or 0xFF00 <= section != 0xFFF1:  # thread-local; common
                raise Unusual
            found.append(
                Symbol(
                    _text(self.obj, names.offset + name),
                    section,
                    value,
                    info >> 4 != 0 and section != 0,
                )
            )
        return found

    def read_relocations(self) -> Iterable[tuple[int, int, int, int, int]]:
        """(section, offset, kind, symbol, addend) of each place to fill in the sections that are
        loaded."""
        for s in self.sections:
            if s.kind != _RELOCATIONS or not _is_placed(self.sections[s.info]):
                continue
            for offset, info, addend in struct.iter_unpack(
                "<QQq", self.obj[s.offset : s.offset + s.size]
            ):
                yield s.info, offset, info & 0xFFFFFFFF, info >> 32, addend

    def arrange(self) -> bytearray:
        """Code and constants, jumps to what is far away, then on a new page data and addresses."""
        image = bytearray()
        placed = [(i, s) for i, s in enumerate(self.sections) if _is_placed(s)]
        for i, s in placed:
            if not s.flags & _WRITE:
                self.put(image, i, s)
        for name in self.outside_calls():
            _pad(image, _THUNK_BYTES)
            self.thunks[name] = len(image)
            image += _THUNK.ljust(_THUNK_BYTES, b"\xcc")
        self.code_bytes = len(image)
        _pad(image, _PAGE)
        self.data_at = len(image)
        for i, s in placed:
            if s.flags & _WRITE:
                self.put(image, i, s)
        for name in sorted(self.wanted_slots() | set(self.thunks)):
            _pad(image, 8)
            self.slots[name] = len(image)
            image += bytes(8)
        return image

    def put(self, image: bytearray, i: int, s: Section) -> None:
        if s.align > _PAGE:
            raise Unusual
        _pad(image, max(s.align, 1))
        self.place[i] = len(image)
        image += bytes(s.size) if s.kind == _ZEROES else self.obj[s.offset : s.offset + s.size]

    def outside_calls(self) -> list[str]:
        names = {
            self.symbols[n].name
            for _, _, kind, n, _ in self.relocations
            if kind == _PLT32 and not self.defined(n)
        }
        return sorted(names)

    def wanted_slots(self) -> set[str]:
        kinds = (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX)
        return {self.symbols[n].name for _, _, kind, n, _ in self.relocations if kind in kinds}

    def defined(self, n: int) -> bool:
        return self.symbols[n].section != 0

    def address(self, n: int) -> int:
        """Where a symbol of the object itself stands in the image."""
        s = self.symbols[n]
        if s.section not in self.place:
            raise Unusual
        return self.place[s.section] + s.value

    def resolve(self) -> None:
        for section, offset, kind, n, addend in self.relocations:
            at = self.place[section] + offset
            if kind in (_PC32, _PLT32):
                if self.defined(n):
                    target = self.address(n)
                elif kind == _PLT32:
                    target = self.thunks[self.symbols[n].name]
                else:
                    raise Unusual
                struct.pack_into("<i", self.image, at, target + addend - at)
            elif kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                struct.pack_into(
                    "<i", self.image, at, self.slots[self.symbols[n].name] + addend - at
                )
            elif kind == _ABS64 and at >= self.data_at:
                own = self.defined(n)
                self.filled.append(
                    (
                        at,
                        "" if own else self.symbols[n].name,
                        addend + (self.address(n) if own else 0),
                    )
                )
            else:
                raise Unusual
        for name, at in self.thunks.items():
            struct.pack_into("<i", self.image, at + 2, self.slots[name] - (at + 6))

    def parts(self) -> tuple[bytes, int, int, dict[str, int], list[tuple[int, str, int]]]:
        """Content up to its last byte that is not zero, size of the code, size of all, symbols,
        places to fill."""
        self.resolve()
        own = {s.name: self.address(n) for n, s in enumerate(self.symbols) if s.exported}
        for name, at in self.slots.items():
            self.filled.append((at, "", own[name]) if name in own else (at, name, 0))
        return bytes(self.image.rstrip(b"\0")), self.code_bytes, len(self.image), own, self.filled


def _sections(obj: bytes) -> list[Section]:
    (start,) = struct.unpack_from("<Q", obj, 40)
    size, count, names = struct.unpack_from("<HHH", obj, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", obj, start + i * size) for i in range(count)]
    text = raw[names][4] if raw else 0
    return [
        Section(_text(obj, text + name), kind, flags, offset, length, link, info, align)
        for name, kind, flags, _, offset, length, link, info, align, _ in raw
    ]


def _is_placed(s: Section) -> bool:
    if not s.flags & _ALLOC:
        return False
    kind = s.name.lstrip(".").partition(".")[0]
    if kind not in _PLACED and kind not in ("eh_frame", "note"):
        raise Unusual
    return kind in _PLACED


def _text(obj: bytes, at: int) -> str:
    return obj[at : obj.index(b"\0", at)].decode()


def _pad(image: bytearray, align: int) -> None:
    image += bytes(-len(image) % align)


# ---------------------------------------------------------------- from an image to addresses


def load(code: bytes, exports: Iterable[str], imports: Mapping[str, int]) -> dict[str, int]:
    """Map an image and give the addresses of its exports. It is never unmapped. LookupError names a
    symbol that nobody defines."""
    content, code_bytes, total, symbols, filled = marshal.loads(memoryview(code)[len(_MAGIC) :])
    missing = [name for name in exports if name not in symbols]
    if missing:
        raise LookupError(f"no definition of {', '.join(missing)}")
    words = [
        (at, addend + address_of(name, imports) if name else None, addend)
        for at, name, addend in filled
    ]
    system = _system()
    base = system.mmap(
        None,
        max(total, 1),
        mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        -1,
        0,
    )
    if base in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no memory for machine code")
    ctypes.memmove(base, content, len(content))
    for at, address, addend in words:
        ctypes.c_uint64.from_address(base + at).value = (
            base + addend if address is None else address
        )
    if code_bytes and system.mprotect(base, code_bytes, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "this system does not let memory become executable")
    return {name: base + symbols[name] for name in exports}


def address_of(name: str, imports: Mapping[str, int]) -> int:
    """Where a symbol lives: given, or found in the process."""
    known = imports.get(name)
    if known is None:
        known = process_address(name)
    if known is None:
        raise LookupError(f"not found anywhere: {name}")
    return known


def process_address(name: str) -> int | None:
    """The address of a C function or variable of the interpreter, or of any library that the
    process has loaded for all."""
    for library in (ctypes.pythonapi, _system()):
        try:
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        if found:
            return found
    return None


@once
def _system() -> Any:
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
