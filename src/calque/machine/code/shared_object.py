"""Shared libraries for Linux on x86-64, written byte by byte: who makes one needs no linker.

A library is made of images (see `image`) and tables: bytes, some of whose words hold the address of
a symbol. Images know their own code and data by distance, so both only get their places here. All
that one calls of another stands in a word of data, which the system's loader fills in: it adds
where the library lies, or looks a symbol up that is not ours (C's library). Only the exports are
seen from outside, so that several libraries in one process know nothing of each other.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from calque.machine.code import image

_PAGE: Final = 4096
_HEADER, _SEGMENT, _SECTION, _SYMBOL, _RELA = 64, 56, 64, 24, 24
_ABS64, _RELATIVE = 1, 8  # kinds of relocations
_READ, _RUN, _WRITE = 4, 1, 2  # rights of segments
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551  # kinds of segments
_FUNCTION: Final = 0x12  # a symbol: global, of a function
_UNKNOWN: Final = 0x10  # global, of no type
_NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA_AT, _RELA_SIZE, _RELA_ENTRY = 1, 4, 5, 6, 7, 8, 9
_STR_SIZE, _SYM_ENTRY, _SONAME, _NO_MORE = 10, 11, 14, 0
_WORD_ALIGN, _TABLE_ALIGN = 16, 64


class Table(NamedTuple):
    """Bytes under a name. At each of `places` (a multiple of 8) stands the address of a symbol, of
    a number of bytes behind it; a table without places cannot be written to."""

    name: str
    content: bytes
    places: Sequence[tuple[int, str, int]] = ()


class Contents(NamedTuple):
    """What a library consists of: images, tables, the names that are seen from outside, and words
    of data that begin with a number or with the address of a symbol."""

    images: Sequence[bytes]
    tables: Sequence[Table]
    exports: Sequence[str]
    values: Mapping[str, int | str]


class _Part(NamedTuple):
    """Code and data of an image, and where they lie in the library."""

    code: bytearray
    data: bytearray
    code_at: int
    data_at: int
    outside: Sequence[tuple[int, str, int]]
    inside: Sequence[tuple[int, bool, int]]
    distant: Sequence[int]


def shared_object(
    contents: Contents, soname: str, system: Collection[str], needed: Mapping[str, str]
) -> bytes:
    """The bytes of a library. `system` are the names that a process finds elsewhere; for some the
    library that has them is `needed`. LookupError names what is nobody's."""
    return _Writer(contents, soname, system, needed).written()


class _Writer:
    """Gives everything its place; a place in the file is the same in memory."""

    def __init__(
        self,
        contents: Contents,
        soname: str,
        system: Collection[str],
        needed: Mapping[str, str],
    ) -> None:
        self.contents = contents
        parsed = [marshal.loads(memoryview(i)[len(image.MAGIC) :]) for i in contents.images]
        names = [name for *_, outside, _, _ in parsed for _, name, _ in outside]
        names += [name for t in contents.tables for _, name, _ in t.places]
        own = {name for _, _, _, _, symbols, *_ in parsed for name in symbols}
        own |= {t.name for t in contents.tables}
        self.outside = sorted(set(names) - own)
        unknown = [name for name in self.outside if name not in system]
        if unknown:
            raise LookupError(f"a library cannot call {', '.join(unknown)}")
        libraries = sorted({needed[name] for name in self.outside if name in needed})
        self.strings = bytearray(b"\0")
        self.name_at = {name: self.string(name) for name in (*self.outside, *contents.exports)}
        self.needed_at = [self.string(name) for name in libraries]
        self.soname_at = self.string(soname)
        self.count = len(names) + sum(len(inside) for *_, inside, _ in parsed)
        self.count += sum(isinstance(v, str) for v in contents.values.values())
        self.addresses: dict[str, int] = {}
        self.relocations: list[tuple[int, int, int]] = []
        self.lay_out(parsed)

    def string(self, text: str) -> int:
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def lay_out(self, parsed: Sequence[tuple[object, ...]]) -> None:
        """Headers and what the loader reads; constants; code; data."""
        self.hash_at = _up(_HEADER + 5 * _SEGMENT, 8)
        symbols = 1 + len(self.outside) + len(self.contents.exports)
        self.symbols_at = _up(self.hash_at + 4 * (3 + symbols), 8)
        self.strings_at = self.symbols_at + symbols * _SYMBOL
        self.rela_at = _up(self.strings_at + len(self.strings), 8)
        self.constants_at = at = _up(self.rela_at + self.count * _RELA, _TABLE_ALIGN)
        constants = [t for t in self.contents.tables if not t.places]
        words = [t for t in self.contents.tables if t.places]
        for t in constants:
            at = _up(at, _TABLE_ALIGN)
            self.add(t.name, at)
            at += len(t.content)
        self.constants_end = at
        self.code_at = at = _up(at, _PAGE)
        codes = []
        for code, *_ in parsed:
            codes.append(at := _up(at, _PAGE))
            at += len(code)  # type: ignore[arg-type]
        self.code_end = at
        self.data_at = at = _up(at, _PAGE)
        self.parts: list[_Part] = []
        for code_at, (code, data, size, align, symbols_of, *filled) in zip(codes, parsed):
            at = _up(at, max(align, _WORD_ALIGN))  # type: ignore[call-overload]
            whole = bytearray(data).ljust(size, b"\0")  # type: ignore[call-overload]
            self.parts.append(_Part(bytearray(code), whole, code_at, at, *filled))  # type: ignore
            for name, (in_data, offset) in symbols_of.items():  # type: ignore[attr-defined]
                self.add(name, (at if in_data else code_at) + offset)
            at += len(whole)
        for t in words:
            at = _up(at, _TABLE_ALIGN)
            self.add(t.name, at)
            at += len(t.content)
        self.dynamic_at = _up(at, 8)

    def add(self, name: str, address: int) -> None:
        if name in self.addresses:
            raise ValueError(f"a library has {name} twice")
        self.addresses[name] = address

    def point(self, place: int, name: str, addend: int) -> None:
        """A word is the address of a symbol, once it is known where the library lies."""
        own = self.addresses.get(name)
        if own is None:
            number = 1 + self.outside.index(name)
            self.relocations.append((place, number << 32 | _ABS64, addend))
        else:
            self.relocations.append((place, _RELATIVE, own + addend))

    def written(self) -> bytes:
        out = bytearray(self.dynamic_at)
        for t in self.contents.tables:
            at = self.addresses[t.name]
            out[at : at + len(t.content)] = t.content
            for offset, name, addend in t.places:
                self.point(at + offset, name, addend)
        for p in self.parts:
            self.put(out, p)
        for name, value in self.contents.values.items():
            if isinstance(value, str):
                self.point(self.addresses[name], value, 0)
            else:
                struct.pack_into("<Q", out, self.addresses[name], value & (1 << 64) - 1)
        out[self.hash_at : self.symbols_at] = self.hash_table()
        out[self.symbols_at : self.strings_at] = self.symbol_table()
        out[self.strings_at : self.strings_at + len(self.strings)] = self.strings
        # those that only move come first, as loaders like it
        ordered = sorted(self.relocations, key=lambda r: (r[1] != _RELATIVE, r[0]))
        for k, relocation in enumerate(ordered):
            struct.pack_into("<QQq", out, self.rela_at + k * _RELA, *relocation)
        out += self.dynamic()
        self.end = len(out)
        sections = self.sections()
        out += sections[0]
        out[: _HEADER + 5 * _SEGMENT] = self.headers(len(out), len(sections[1]) // _SECTION)
        return bytes(out + sections[1])

    def put(self, out: bytearray, p: _Part) -> None:
        for at in p.distant:
            (near,) = struct.unpack_from("<i", p.code, at)
            struct.pack_into("<i", p.code, at, near + p.data_at - p.code_at)
        out[p.code_at : p.code_at + len(p.code)] = p.code
        out[p.data_at : p.data_at + len(p.data)] = p.data
        for at, name, addend in p.outside:
            self.point(p.data_at + at, name, addend)
        for at, in_data, to in p.inside:
            place = (p.data_at if in_data else p.code_at) + to
            self.relocations.append((p.data_at + at, _RELATIVE, place))

    def symbol_table(self) -> bytes:
        entries = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
        entries += [
            struct.pack("<IBBHQQ", self.name_at[n], _UNKNOWN, 0, 0, 0, 0) for n in self.outside
        ]
        for name in self.contents.exports:
            entry = (self.name_at[name], _FUNCTION, 0, _TEXT, self.addresses[name], 0)
            entries.append(struct.pack("<IBBHQQ", *entry))
        return b"".join(entries)

    def hash_table(self) -> bytes:
        """One list of all symbols: there are few."""
        count = 1 + len(self.outside) + len(self.contents.exports)
        chain = [0, *range(2, count), 0] if count > 1 else [0]
        words = [1, count, 1 if count > 1 else 0, *chain]
        return struct.pack(f"<{len(words)}I", *words).ljust(self.symbols_at - self.hash_at, b"\0")

    def dynamic(self) -> bytes:
        entries = [(_NEEDED, at) for at in self.needed_at]
        entries += [
            (_SONAME, self.soname_at),
            (_HASH, self.hash_at),
            (_STRTAB, self.strings_at),
            (_SYMTAB, self.symbols_at),
            (_STR_SIZE, len(self.strings)),
            (_SYM_ENTRY, _SYMBOL),
            (_RELA_AT, self.rela_at),
            (_RELA_SIZE, self.count * _RELA),
            (_RELA_ENTRY, _RELA),
            (_NO_MORE, 0),
        ]
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def headers(self, sections_at: int, sections: int) -> bytes:
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        fields = (3, 62, 1, 0, _HEADER, sections_at, 0, _HEADER, _SEGMENT, 5, _SECTION, sections)
        out = ident + struct.pack("<HHIQQQIHHHHHH", *fields, sections - 1)
        ranges = [
            (_LOAD, _READ, 0, self.constants_end, _PAGE),
            (_LOAD, _READ | _RUN, self.code_at, self.code_end, _PAGE),
            (_LOAD, _READ | _WRITE, self.data_at, self.end, _PAGE),
            (_DYNAMIC, _READ | _WRITE, self.dynamic_at, self.end, 8),
            (_STACK, _READ | _WRITE, 0, 0, 16),
        ]
        for kind, rights, start, end, align in ranges:
            n = end - start
            out += struct.pack("<IIQQQQQQ", kind, rights, start, start, start, n, n, align)
        return out

    def sections(self) -> tuple[bytes, bytes]:
        """Names and headers of sections: linkers find the symbols by them, the loader does not."""
        rows = [  # name, type, flags, from, to, link, info, alignment, size of an entry
            ("", 0, 0, 0, 0, 0, 0, 0, 0),
            (".hash", 5, 2, self.hash_at, self.symbols_at, 2, 0, 8, 4),
            (".dynsym", 11, 2, self.symbols_at, self.strings_at, 3, 1, 8, _SYMBOL),
            (".dynstr", 3, 2, self.strings_at, self.strings_at + len(self.strings), 0, 0, 1, 0),
            (".rela.dyn", 4, 2, self.rela_at, self.rela_at + self.count * _RELA, 2, 0, 8, _RELA),
            (".rodata", 1, 2, self.constants_at, self.constants_end, 0, 0, _TABLE_ALIGN, 0),
            (".text", 1, 6, self.code_at, self.code_end, 0, 0, _PAGE, 0),
            (".data", 1, 3, self.data_at, self.dynamic_at, 0, 0, _PAGE, 0),
            (".dynamic", 6, 3, self.dynamic_at, self.end, 3, 0, 8, 16),
            (".shstrtab", 3, 0, self.end, 0, 0, 0, 1, 0),
        ]
        names, headers = bytearray(), bytearray()
        for name, kind, flags, start, end, link, info, align, entry in rows:
            at = len(names)
            names += name.encode() + b"\0"
            size = end - start
            if name == ".shstrtab":
                size = len(names)
            address = start if flags & 2 else 0
            fields = (at, kind, flags, address, start, size, link, info, align, entry)
            headers += struct.pack("<IIQQQQIIQQ", *fields)
        names += bytes(-(self.end + len(names)) % 8)
        return bytes(names), bytes(headers)


_TEXT: Final = 6  # the number of the section of code


def _up(at: int, align: int) -> int:
    return -(-at // align) * align
