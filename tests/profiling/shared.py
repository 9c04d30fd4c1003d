"""Reading what the profilers write: messages of protocol buffers."""

from __future__ import annotations

from typing import Any


def message(raw: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number: integers, and bytes."""
    out: dict[int, list[Any]] = {}
    at = 0
    while at < len(raw):
        key, at = varint(raw, at)
        if key & 7 == 0:
            value, at = varint(raw, at)
        else:
            assert key & 7 == 2
            length, at = varint(raw, at)
            value, at = raw[at : at + length], at + length
        out.setdefault(key >> 3, []).append(value)
    return out


def varint(raw: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        n |= (raw[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if raw[at - 1] < 128:
            return n, at
