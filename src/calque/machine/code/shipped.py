"""Machine code that comes with the package: images of the runtime and its routines for levels of
x86-64, so that the first process on a machine compiles none of it.

A pack holds the images of one level. They are found as those of the disk cache are, by a digest of
all that decides them: the sources, the constants that another Python may change, how they were
compiled. So a pack of other sources holds nothing that is asked for, and one pack may serve several
Pythons. A package without packs (a checkout) compiles. Packs are the package's own files and are
trusted like its modules; an entry that is not whole is no entry.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Mapping
from typing import Final

from calque.machine.code import image, target
from calque.machine.code.digest import BYTES, digest, hexdigest
from calque.machine.once import once

_MAGIC: Final = b"calque pack 1\0"
_FORMAT: Final = "shipped-1"
_LENGTH_BYTES: Final = 8
_DIRECTORY: Final = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "images"
)
# What a processor has that runs the code of a level, as LLVM names it.
_V2: Final = frozenset(("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"))
_V3: Final = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4: Final = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS: Final = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}

_Index = dict[str, tuple[int, int]]  # key -> where its entry begins, how many bytes it has


@once
def level() -> str | None:
    """The best level of x86-64 whose code this process can run; None where images are not used."""
    return level_of(target.describe()) if image.usable() else None


def level_of(described: target.Target) -> str | None:
    """The best level of x86-64 that a processor has."""
    if not described.is_x86:
        return None
    if not described.features or "+" not in described.features:  # CALQUE_CPU names a processor
        return described.cpu if described.cpu in LEVELS else None
    has = {flag[1:] for flag in described.features.split(",") if flag.startswith("+")}
    return next((name for name, needed in LEVELS.items() if needed <= has), None)


def pack_of(level_name: str, directory: str = _DIRECTORY) -> str:
    """The file of a level's pack."""
    return os.path.join(directory, f"{level_name}.pack")


def key_of(level_name: str, content: str, opt: int, passes: str | None) -> str:
    """The name of an image in a pack."""
    return hexdigest(f"{_FORMAT}\0{level_name}\0{opt}\0{passes or ''}\0{content}")


def find(content: str, opt: int, passes: str | None) -> bytes | None:
    """The image of what a key determines, if the package has one for this processor."""
    opened = _opened()
    if opened is None:
        return None
    name, index = opened
    entry = index.get(key_of(name, content, opt, passes))
    return None if entry is None else _entry(pack_of(name), *entry)


@once
def _opened() -> tuple[str, _Index] | None:
    """The level whose pack the package has, and what is in it."""
    name = level()
    if name is None:
        return None
    try:
        with open(pack_of(name), "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            text = _checked(file.read(length))
    except OSError:
        return None
    if text is None:
        return None
    start = len(_MAGIC) + _LENGTH_BYTES + length
    return name, {key: (start + at, count) for key, (at, count) in marshal.loads(text).items()}


def _entry(path: str, at: int, count: int) -> bytes | None:
    try:
        with open(path, "rb") as file:
            file.seek(at)
            return _checked(file.read(count))
    except OSError:
        return None


def _checked(blob: bytes) -> bytes | None:
    """What follows its own digest, unless it was altered."""
    data = blob[BYTES:]
    return data if blob[:BYTES] == digest(data) else None


def write(path: str, images: Mapping[str, bytes]) -> None:
    """Write a pack of images by key; equal ones are written once."""
    places: dict[bytes, tuple[int, int]] = {}
    blobs: list[bytes] = []
    index: _Index = {}
    end = 0
    for key, data in sorted(images.items()):
        if data not in places:
            blob = digest(data) + data
            places[data] = (end, len(blob))
            blobs.append(blob)
            end += len(blob)
        index[key] = places[data]
    text = marshal.dumps(index, 4)
    head = digest(text) + text
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(_MAGIC + len(head).to_bytes(_LENGTH_BYTES, "little") + head)
        file.writelines(blobs)


def read(path: str) -> dict[str, bytes]:
    """All images of a pack; nothing of one that is not there."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        raw = file.read()
    begin = len(_MAGIC) + _LENGTH_BYTES
    length = int.from_bytes(raw[len(_MAGIC) : begin], "little")
    text = _checked(raw[begin : begin + length])
    if not raw.startswith(_MAGIC) or text is None:
        raise ValueError(f"{path} is no pack of images, or an altered one; delete it")
    found = {}
    for key, (at, count) in marshal.loads(text).items():
        data = _checked(raw[begin + length + at : begin + length + at + count])
        if data is None:
            raise ValueError(f"{path} is altered; delete it")
        found[key] = data
    return found
