"""Machine code that is ready to be mapped: what lies on disk, so that a process that compiles
nothing needs no LLVM.

An image is a relocatable object whose sections stand in their places already. Code and constants
come first and know each other by distance; data follow on the next page, with a table of the
addresses that only the running process knows. Loading is: find room in a region of memory, where
data lie further off (`arena`), copy, fill in those addresses and distances, make the code
executable. Objects of other systems, or with anything unusual in them, stay what they are
and are linked by LLVM."""

from __future__ import annotations

import ctypes
import marshal
import mmap
import platform
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from calque.machine import variables
from calque.machine.code.arena import arena, functions, make_executable
from calque.machine.code.linked import Linked

MAGIC = b"calque image 2\0"
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


class Address(NamedTuple):
    """A place in an image, from the beginning of its code, or of its data."""

    in_data: bool
    offset: int


class Symbol(NamedTuple):
    """A symbol of an ELF file: `section` is 0 for what others define."""

    name: str
    section: int
    value: int
    exported: bool


def on_this_system() -> bool:
    """Whether the code that LLVM makes here can become images."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def usable() -> bool:
    """Whether this system is one that images are for; ``CALQUE_LINKER=llvm`` says no."""
    return on_this_system() and variables.choice("CALQUE_LINKER", ("llvm", "calque")) != "llvm"


def image_of(obj: bytes) -> bytes | None:
    """The image of a relocatable object, or None when it has to be linked by LLVM."""
    if not obj.startswith(_ELF_X86_64):
        return None
    try:
        return MAGIC + marshal.dumps(_Layout(obj).parts(), _MARSHAL)
    except Unusual:
        return None


def is_image(code: bytes) -> bool:
    return code.startswith(MAGIC)


# ---------------------------------------------------------------- from an object to an image


class _Layout:
    """Gives every section its place and resolves what does not depend on the process."""

    def __init__(self, obj: bytes) -> None:
        self.obj = obj
        self.sections = _sections(obj)
        self.symbols = self.read_symbols()
        self.slots: dict[str, int] = {}  # symbol -> where its address stands
        self.thunks: dict[str, int] = {}
        self.outside: list[tuple[int, str, int]] = []  # place in the data, symbol, addend
        self.inside: list[tuple[int, bool, int]] = []  # place in the data, of what stands where
        self.distant: list[int] = []  # places in the code of distances to data
        self.align = 1  # of the data
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
        if s.flags & _WRITE:
            self.align = max(self.align, s.align)
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

    def address(self, n: int) -> Address:
        """Where a symbol of the object itself stands in the image."""
        s = self.symbols[n]
        if s.section not in self.place:
            raise Unusual
        in_data = bool(self.sections[s.section].flags & _WRITE)
        return Address(in_data, self.place[s.section] + s.value - self.data_at * in_data)

    def resolve(self) -> None:
        for section, offset, kind, n, addend in self.relocations:
            at = self.place[section] + offset
            if kind in (_PC32, _PLT32):
                if self.defined(n):
                    self.point(at, self.address(n), addend)
                elif kind == _PLT32:
                    self.point(at, Address(False, self.thunks[self.symbols[n].name]), addend)
                else:
                    raise Unusual
            elif kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                self.point(at, self.slot(self.symbols[n].name), addend)
            elif kind == _ABS64 and at >= self.data_at:
                if self.defined(n):
                    in_data, to = self.address(n)
                    self.inside.append((at - self.data_at, in_data, to + addend))
                else:
                    self.outside.append((at - self.data_at, self.symbols[n].name, addend))
            else:
                raise Unusual
        for name, at in self.thunks.items():
            self.point(at + 2, self.slot(name), -4)

    def slot(self, name: str) -> Address:
        return Address(True, self.slots[name] - self.data_at)

    def point(self, at: int, to: Address, addend: int) -> None:
        """Let the code at a place refer to another one by distance; that of data counts from where
        the code begins as if data began there, too."""
        if at >= self.data_at:
            raise Unusual
        struct.pack_into("<i", self.image, at, to.offset + addend - at)
        if to.in_data:
            self.distant.append(at)

    def parts(self) -> tuple[Any, ...]:
        """Code; data up to the last byte that is not zero, their size and alignment; symbols;
        places to fill."""
        self.resolve()
        own = {s.name: self.address(n) for n, s in enumerate(self.symbols) if s.exported}
        for name, at in self.slots.items():
            at -= self.data_at
            if name in own:
                self.inside.append((at, *own[name]))
            else:
                self.outside.append((at, name, 0))
        code, data = self.image[: self.code_bytes], self.image[self.data_at :]
        symbols = {name: tuple(place) for name, place in own.items()}
        filled = (self.outside, self.inside, self.distant)
        return bytes(code), bytes(data.rstrip(b"\0")), len(data), self.align, symbols, *filled


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


def load(
    image: bytes,
    exports: Iterable[str],
    imports: Mapping[str, int],
    needs: Sequence[Linked] = (),
) -> Linked:
    """Place an image in memory, for as long as anybody has the result, which keeps what it
    ``needs``. LookupError names a symbol that nobody defines."""
    parts = marshal.loads(memoryview(image)[len(MAGIC) :])
    code, data, data_bytes, align, symbols, outside, inside, distant = parts
    missing = [name for name in exports if name not in symbols]
    if missing:
        raise LookupError(f"no definition of {', '.join(missing)}")
    words = [(at, address_of(name, imports) + addend) for at, name, addend in outside]
    place = arena.place(len(code), data_bytes, align)
    found = {name: symbols[name] for name in exports}
    linked = Linked(
        {
            name: (place.data if in_data else place.code) + to
            for name, (in_data, to) in found.items()
        },
        partial(arena.give_back, place),
        needs,
    )
    words += [(at, (place.data if in_data else place.code) + to) for at, in_data, to in inside]
    written = bytearray(code)
    for at in distant:
        (near,) = struct.unpack_from("<i", written, at)
        struct.pack_into("<i", written, at, near + place.data - place.code)
    ctypes.memmove(place.code, bytes(written), len(written))
    ctypes.memmove(
        place.data, data.ljust(data_bytes, b"\0"), data_bytes
    )  # others were there before
    for at, address in words:
        ctypes.c_uint64.from_address(place.data + at).value = address
    make_executable(place.code, len(code))
    return linked


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
    for library in (ctypes.pythonapi, functions()):
        try:
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        if found:
            return found
    return None
