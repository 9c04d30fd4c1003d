"""Hashes that name what is kept on disk. `hashlib` would load OpenSSL, which takes longer than what
a small program does."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

BYTES = 32


def digest(data: bytes) -> bytes:
    """A hash of 32 bytes."""
    return blake2b(data, digest_size=BYTES).digest()


def hexdigest(text: str) -> str:
    """A hash of a text, as 64 digits."""
    return digest(text.encode()).hex()
