"""Nodes of the scalar language: immutable, interned (equality is identity), weakly held so that
memory does not grow.

Every node knows the names (loop variables, sizes, accumulators, parameters) and the buffers it
depends on, so that hoisting, stride analysis and legality checks are set operations.
"""

from __future__ import annotations

import struct
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import ref as WeakRef

import ml_dtypes
import numpy as np

from calque.machine.caches import Interned, memo

INT_BITS: Final = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "u8": 8,
    "u16": 16,
    "u32": 32,
    "u64": 64,
}
SIGNED: Final = frozenset({"i8", "i16", "i32", "i64"})
UNSIGNED: Final = frozenset({"i1", "u8", "u16", "u32", "u64"})
FLOAT_BITS: Final = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
DTYPES: Final = frozenset(INT_BITS) | frozenset(FLOAT_BITS)
_BYTES: Final = {d: max(8, bits) // 8 for d, bits in (INT_BITS | FLOAT_BITS).items()}

NP_FLOAT: Final[dict[str, Any]] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_NP_BITS: Final[dict[str, Any]] = {
    "f16": np.uint16,
    "bf16": np.uint16,
    "f32": np.uint32,
    "f64": np.uint64,
}

# Element types that live in memory only: an expression sees their bytes (`elements` converts them).
STORED_AS_U8: Final = ("float8_", "float6_", "float4_", "uint4", "uint2")
STORED_AS_I8: Final = ("int4", "int2")


def scalar_dtype(dtype: str) -> str:
    """The dtype of an expression that reads an element of a buffer of ``dtype``."""
    if dtype in DTYPES:
        return dtype
    if dtype.startswith(STORED_AS_U8):
        return "u8"
    if dtype.startswith(STORED_AS_I8):
        return "i8"
    raise TypeError(f"no scalar dtype {dtype!r}")


def is_float(dtype: str) -> bool:
    return dtype in FLOAT_BITS


def item_size(dtype: str) -> int:
    """Bytes of an element in memory (a bool is a byte)."""
    size = _BYTES.get(dtype)
    return _BYTES[scalar_dtype(dtype)] if size is None else size


class Buffer:
    """A dense row-major array in memory; ``shape`` holds ``i64`` expressions, so sizes may be given
    at run time.

    ``place``: ``arg`` comes from the caller; ``stack`` is private to a call (constant shape);
    ``lane`` is too, and each of its elements is one value per lane of the enclosing vector loop
    (indices are uniform); ``const`` holds ``data``, the bytes of a small constant array.
    """

    __slots__ = ("data", "dtype", "name", "place", "shape")

    def __init__(
        self,
        name: str,
        shape: Iterable[Expr | int],
        dtype: str,
        place: str = "arg",
        data: bytes | None = None,
    ) -> None:
        self.name: str = name
        self.shape: tuple[Expr, ...] = tuple(const(d) if isinstance(d, int) else d for d in shape)
        self.dtype: str = dtype
        self.place: str = place
        self.data: bytes | None = data
        if place not in ("arg", "stack", "lane", "const") or (place == "const") != (
            data is not None
        ):
            raise ValueError(
                f"buffer {name}: no place {place!r}"
                if data is None
                else f"buffer {name}: data without place const"
            )
        if place != "arg" and any(d.op != "const" for d in self.shape):
            raise ValueError(f"buffer {name}: a {place} buffer has a constant shape")

    def __repr__(self) -> str:
        return f"Buffer({self.name}: {self.dtype}, rank {len(self.shape)})"


class Expr:
    """One interned node. Build with the functions of this package, never directly."""

    __slots__ = (
        "__weakref__",
        "args",
        "attr",
        "bufs",
        "depth",
        "dtype",
        "index",
        "interval",
        "names",
        "op",
        "sum",
    )
    op: str
    args: tuple[Expr, ...]
    dtype: str
    attr: Any
    names: frozenset[str]
    bufs: frozenset[Buffer]
    depth: int  # of the tree below
    index: bool  # made of loop variables, sizes and constants alone: never wraps around
    interval: tuple[int, int] | None  # kept here by ``ranges``, once it has been asked for
    sum: tuple[dict[Expr, int], int] | None  # by ``sums``, likewise

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.op} {self.attr if self.attr is not None else len(self.args)}>"

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("expressions are not pickled: identity is their equality")


class _Entry(WeakRef):  # type: ignore[type-arg]
    __slots__ = ("key",)
    key: tuple[Any, ...]


_pool: Final[Interned[tuple[Any, ...], _Entry]] = Interned("expressions", "expressions that live")


def _forget(
    entry: Any, pool: Any = _pool, remove: Callable[..., None] = _remove_dead_weakref
) -> None:
    remove(pool, entry.key)  # atomic: never drops an entry that has been replaced


def pool_size() -> int:
    """How many distinct nodes are alive."""
    return len(_pool)


DEEP: Final = 48  # walks over expressions may recurse over so many levels, not over more
LANE: Final = "<lane>"  # the name on which every read of a lane buffer depends
_SMALL: Final = 1 << 62  # smaller integers need no wrapping
_NO_INDEX: Final = frozenset({"ref", "param", "load"})
_NO_NAMES: Final[frozenset[str]] = frozenset()
_NO_BUFS: Final[frozenset[Buffer]] = frozenset()


def make(op: str, args: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
    """The node itself, without simplification."""
    key = (op, args, dtype, attr)
    entry = _pool.get(key)
    if entry is not None:
        found: Expr | None = entry()
        if found is not None:
            return found
    e = Expr()
    e.op, e.args, e.dtype, e.attr = op, args, dtype, attr
    index = dtype == "i64" and op not in _NO_INDEX
    names, bufs, depth = _NO_NAMES, _NO_BUFS, 0
    for a in args:
        index = index and a.index
        if a.depth > depth:
            depth = a.depth
        # when one set already is the union it is shared, not copied
        if a.names is not names and a.names:
            these = a.names
            names = these if names <= these else names if these <= names else names | these
        if a.bufs is not bufs and a.bufs:
            those = a.bufs
            bufs = those if bufs <= those else bufs if those <= bufs else bufs | those
    e.names, e.bufs, e.depth, e.index = names, bufs, depth + 1, index
    if op in ("var", "ref", "param"):
        e.names |= {attr[0]}
    elif op == "load":
        e.bufs |= {attr}
        if attr.place == "lane":
            e.names |= {LANE}
    e.interval = e.sum = None
    new = _Entry(e, _forget)
    new.key = key
    while True:  # another thread may have made the same node meanwhile
        entry = _pool.setdefault(key, new)
        if entry is new:
            _pool.made += 1
            return e
        found = entry()
        if found is not None:
            return found
        _remove_dead_weakref(_pool, key)


# --- leaves ---------------------------------------------------------------------------------------


def wrap(value: int, dtype: str) -> int:
    """``value`` modulo the integer type."""
    bits = INT_BITS[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype in SIGNED and value >> (bits - 1) else value


def float_bits(value: Any, dtype: str) -> int:
    """The bit pattern of ``value`` rounded to a float dtype."""
    if dtype == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    if dtype == "f32" and type(value) is float:
        try:
            return int(struct.unpack("<I", struct.pack("<f", value))[0])
        except OverflowError:
            pass
    with np.errstate(over="ignore", invalid="ignore"):
        return int(np.asarray(value).astype(NP_FLOAT[dtype]).view(_NP_BITS[dtype]))


def bits_float(bits: int, dtype: str) -> float:
    """The value of a bit pattern, as a Python float."""
    if dtype == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    return float(np.asarray(bits, _NP_BITS[dtype]).view(NP_FLOAT[dtype]))


@memo("integers in indices", 1 << 10)
def _integer(value: int) -> Expr:
    return make("const", (), "i64", value)


def const(value: Any, dtype: str = "i64") -> Expr:
    """A constant. Integers and bools keep their (wrapped) value, floats their bit pattern: -0.0 and
    every nan stay themselves."""
    if dtype == "i1":
        return make("const", (), dtype, bool(value))
    if dtype in INT_BITS:
        if type(value) is int and dtype == "i64" and -_SMALL < value < _SMALL:
            return _integer(value)
        return make("const", (), dtype, wrap(int(value), dtype))
    if dtype in FLOAT_BITS:
        return make("const", (), dtype, float_bits(value, dtype))
    raise TypeError(f"no scalar dtype {dtype!r}")


def const_bits(bits: int, dtype: str) -> Expr:
    """A float constant from its bit pattern."""
    return make("const", (), dtype, bits)


def const_value(e: Expr) -> Any:
    """The Python number of a constant."""
    return bits_float(e.attr, e.dtype) if e.dtype in FLOAT_BITS else e.attr


def var(name: str, extent: Expr | int | None = None) -> Expr:
    """A loop variable in ``[0, extent)``, or (no extent) a size given at run time."""
    return make("var", (), "i64", (name, const(extent) if isinstance(extent, int) else extent))


def ref(name: str, dtype: str) -> Expr:
    """The value of an accumulator, a loop's state or a ``Let``."""
    return make("ref", (), dtype, (name,))


def param(name: str, dtype: str) -> Expr:
    """A scalar handed to the kernel at each call: not part of its code."""
    return make("param", (), dtype, (name,))


def load(buf: Buffer, idx: Iterable[Expr], guard: Expr | None = None) -> Expr:
    """An element. ``guard`` false: nothing is read and the value is 0."""
    args = tuple(idx)
    if len(args) != len(buf.shape):
        raise ValueError(f"{buf.name} has {len(buf.shape)} dimensions, {len(args)} indices given")
    if guard is not None and not (guard.op == "const" and guard.attr is True):
        args += (guard,)
    return make("load", args, scalar_dtype(buf.dtype), buf)


def index_and_guard(e: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
    """The parts of a load."""
    r = len(e.attr.shape)
    return e.args[:r], (e.args[r] if len(e.args) > r else None)


def is_const(e: Expr, value: Any = None) -> bool:
    """Is ``e`` a constant (equal to ``value``)?"""
    return e.op == "const" and (value is None or const_value(e) == value)
