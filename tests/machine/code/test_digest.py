"""Hashes that name what is kept on disk: they must never change, or caches are lost."""

import hashlib

from calque.machine.code.digest import BYTES, digest, hexdigest


def test_hashes_are_those_of_the_library():
    for data in (b"", b"calque", bytes(10_000)):
        assert digest(data) == hashlib.blake2b(data, digest_size=32).digest()
    assert len(digest(b"x")) == BYTES == 32


def test_of_texts():
    assert hexdigest("é") == digest("é".encode()).hex() and len(hexdigest("")) == 64
    assert hexdigest("a") != hexdigest("b")
