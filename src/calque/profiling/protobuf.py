"""Writing messages in the wire format of protocol buffers."""

from __future__ import annotations

from collections.abc import Iterable


def varint(n: int) -> bytes:
    """An integer, seven bits a byte; negative ones as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field: int, n: int) -> bytes:
    """An integer as a field."""
    return varint(field << 3) + varint(n)


def data(field: int, content: bytes | str) -> bytes:
    """A text, bytes, or a message as a field."""
    raw = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def numbers(field: int, ns: Iterable[int]) -> bytes:
    """Several integers as one packed field."""
    return data(field, b"".join(map(varint, ns)))
