"""FlatBuffers: tables of fields as bytes, written and read by the description of a format.

A format maps the names of tables to their fields, in the order of their numbers: (name, type). A
type is a number ("u8", "i8", "u16", "i16", "u32"), "bool", "string", "bytes", a table, or one of
these (but for bytes) in brackets for a row of them. Tables are dicts; a field that is not there is
0, or None."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

Format = Mapping[str, Sequence[tuple[str, str]]]
NUMBERS: Final = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "u32": "I"}


def encoded(form: Format, root: str, value: Mapping[str, Any]) -> bytes:
    """The bytes of a table."""
    writer = _Writer(form)
    writer.room(4)
    writer.refer(0, writer.table(root, value))
    return bytes(writer.data)


class _Writer:
    """Appends tables; what they refer to comes after them."""

    def __init__(self, form: Format) -> None:
        self.form, self.data = form, bytearray()

    def room(self, size: int, align: int = 4) -> int:
        """Zeros at the end, and where they begin."""
        self.data += b"\0" * (-len(self.data) % align)
        at = len(self.data)
        self.data += b"\0" * size
        return at

    def refer(self, at: int, target: int) -> None:
        struct.pack_into("<I", self.data, at, target - at)

    def table(self, name: str, value: Mapping[str, Any]) -> int:
        fields = self.form[name]
        unknown = set(value) - {n for n, _ in fields}
        assert not unknown, f"{name} has no fields {unknown}"
        given = [(i, n, t) for i, (n, t) in enumerate(fields) if value.get(n) is not None]
        given.sort(key=lambda field: -size_of(field[2]))  # so that each one is aligned
        offsets, end = [0] * len(fields), 4
        for i, _, kind in given:
            offsets[i], end = end, end + size_of(kind)
        index = self.room(4 + 2 * len(fields), 2)
        struct.pack_into(
            f"<{2 + len(fields)}H", self.data, index, 4 + 2 * len(fields), end, *offsets
        )
        at = self.room(end)
        struct.pack_into("<i", self.data, at, at - index)
        for i, n, kind in given:
            if kind in NUMBERS:
                struct.pack_into(f"<{NUMBERS[kind]}", self.data, at + offsets[i], value[n])
            else:
                self.refer(at + offsets[i], self.object(kind, value[n]))
        return at

    def object(self, kind: str, value: Any) -> int:
        """A string, a row, or a table."""
        if kind == "string":
            text = value.encode()
            return self.raw(len(text), text + b"\0")
        if kind == "bytes":
            return self.raw(len(value), value)
        if not kind.startswith("["):
            return self.table(kind, value)
        inner = kind[1:-1]
        if inner in NUMBERS:
            return self.raw(len(value), struct.pack(f"<{len(value)}{NUMBERS[inner]}", *value))
        at = self.room(4 + 4 * len(value))
        struct.pack_into("<I", self.data, at, len(value))
        for i, item in enumerate(value):
            self.refer(at + 4 + 4 * i, self.object(inner, item))
        return at

    def raw(self, count: int, content: bytes) -> int:
        at = self.room(4)
        struct.pack_into("<I", self.data, at, count)
        self.data += content
        return at


def size_of(kind: str) -> int:
    """The bytes of a field: of what is no number, of a reference to it."""
    return struct.calcsize(f"<{NUMBERS[kind]}") if kind in NUMBERS else 4


def decoded(form: Format, root: str, data: bytes) -> dict[str, Any]:
    """The table that bytes hold."""
    try:
        (start,) = struct.unpack_from("<I", data, 0)
        return _table(form, root, data, start)
    except (struct.error, UnicodeDecodeError, IndexError) as e:
        raise ValueError(f"these bytes hold no {root}: {e}") from None


def _table(form: Format, name: str, data: bytes, at: int) -> dict[str, Any]:
    (back,) = struct.unpack_from("<i", data, at)
    index = at - back
    if not 0 <= index < len(data):
        raise ValueError(f"these bytes hold no {name}: a table points outside of them")
    (size,) = struct.unpack_from("<H", data, index)
    known = (size - 4) // 2
    found: dict[str, Any] = {}
    for i, (field, kind) in enumerate(form[name]):
        offset = struct.unpack_from("<H", data, index + 4 + 2 * i)[0] if i < known else 0
        if kind in NUMBERS:
            place = at + offset
            found[field] = struct.unpack_from(f"<{NUMBERS[kind]}", data, place)[0] if offset else 0
        else:
            found[field] = _object(form, kind, data, at + offset) if offset else None
    return found


def _object(form: Format, kind: str, data: bytes, at: int) -> Any:
    (distance,) = struct.unpack_from("<I", data, at)
    at += distance
    if kind not in ("string", "bytes") and not kind.startswith("["):
        return _table(form, kind, data, at)
    (count,) = struct.unpack_from("<I", data, at)
    if count > len(data):
        raise ValueError(
            "these bytes are cut off, or no FlatBuffers: a row is longer than they are"
        )
    if kind in ("string", "bytes"):
        raw = data[at + 4 : at + 4 + count]
        return raw.decode() if kind == "string" else raw
    inner = kind[1:-1]
    if inner in NUMBERS:
        return list(struct.unpack_from(f"<{count}{NUMBERS[inner]}", data, at + 4))
    return [_object(form, inner, data, at + 4 + 4 * i) for i in range(count)]
