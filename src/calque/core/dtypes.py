"""Element types: canonical forms under the x64 flag, the promotion lattice with weak types, short
names."""

from __future__ import annotations

import warnings
from typing import Any, Final

import ml_dtypes
import numpy as np

from calque.core.config import config
from calque.core.source import user_frame
from calque.machine.caches import memo
from calque.machine.lazy import LazyModule
from calque.machine.once import once
from calque.machine.state import Inside, PerThread

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float0 = np.dtype([("float0", np.void, 0)])

FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    )
    if hasattr(ml_dtypes, name)
)
INT4 = tuple(
    np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "int4") if hasattr(ml_dtypes, name)
)
UINT4 = tuple(
    np.dtype(getattr(ml_dtypes, name)) for name in ("uint2", "uint4") if hasattr(ml_dtypes, name)
)

bool_ = np.dtype(bool)
SIGNED = (*INT4, *(np.dtype(f"int{n}") for n in (8, 16, 32, 64)))
UNSIGNED = (*UINT4, *(np.dtype(f"uint{n}") for n in (8, 16, 32, 64)))
FLOATS = (*FLOAT8, bfloat16, np.dtype("float16"), np.dtype("float32"), np.dtype("float64"))
COMPLEX = (np.dtype("complex64"), np.dtype("complex128"))
ALL = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)
_KNOWN: Final = frozenset(ALL) | {float0}
_INEXACT = frozenset(FLOATS) | frozenset(COMPLEX)

_NARROW: Final = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
_PYTHON_WIDE: Final = {
    bool: bool_,
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}
difflib = LazyModule("difflib")
PYTHON_SCALARS = (bool, int, float, complex)
_PLAIN: Final[dict[Any, Any]] = {d: d for d in _KNOWN} | _PYTHON_WIDE  # what is asked for most


class ExtendedDType:
    """A dtype that NumPy does not know, such as a typed random key. Compared by identity or by its
    own `__eq__`."""

    name: str
    itemsize: int
    type: Any = None
    kind = "V"
    storage: np.dtype  # the NumPy dtype that holds the elements in memory

    def short_name(self) -> str:
        return self.name


def canonicalize(dtype: Any) -> Any:
    """The dtype that values of this type have: 64-bit types become 32-bit ones unless
    `calque_enable_x64` is set."""
    dt = _PLAIN.get(dtype) if isinstance(dtype, (np.dtype, type)) else None
    if dt is None:
        if isinstance(dtype, ExtendedDType):
            return dtype
        dt = as_dtype(dtype)
    return dt if config.enable_x64 else _NARROW.get(dt, dt)


def asked(dtype: Any) -> Any:
    """`canonicalize` of a dtype that the user gave as an argument: one who names 64 bits and gets
    32 of them is told so, by an error if `calque_explicit_x64_dtypes` says so. The types `int`,
    `float` and `complex` name no size."""
    if config.enable_x64:
        return canonicalize(dtype)
    dt = _PLAIN.get(dtype) if isinstance(dtype, (np.dtype, type)) else None
    dt = as_dtype(dtype) if dt is None else dt
    half = _NARROW.get(dt)
    if half is None:
        return dt
    if dtype is not None and not (isinstance(dtype, type) and dtype in _PYTHON_WIDE):
        _tell_of_half(dt)
    return half


class ToldAtEachCall(Exception):
    """This call warns, and so must each one like it: filters of warnings decide who hears of it."""


class _Learning(PerThread, name="calls that machine code learns"):
    on = False


_learning: Final = _Learning()


def learning() -> Inside[_Learning]:
    """A `with` block that traces a call so that machine code may serve such calls: what would warn
    raises ToldAtEachCall, since machine code warns of nothing."""
    return _learning.inside(on=True)


def halved(value: Any) -> Any:
    """An argument of a function as it is, or `asked` of it where it names a dtype of 64 bits."""
    if isinstance(value, (np.dtype, type)) or (type(value) is str and len(value) > 1):
        try:
            wide = as_dtype(value)
        except TypeError:  # it is no dtype
            return value
        return asked(value) if wide in _NARROW else value
    return value


_MISSING: Final = {
    wide: (
        f"Explicitly requested dtype {wide} is not available while 64-bit types are off",
        f": ask for {half}, or turn them on with"
        ' calque.config.update("calque_enable_x64", True) or the variable CALQUE_ENABLE_X64=1',
    )
    for wide, half in _NARROW.items()
}
_TOLD: Final = {
    wide: f"{what}, and the result is {_NARROW[wide]}{instead}"
    for wide, (what, instead) in _MISSING.items()
}


def _tell_of_half(wide: np.dtype) -> None:
    if config.explicit_x64_dtypes == "error":
        raise ValueError("".join(_MISSING[wide]))
    frame = user_frame()
    if frame is None:
        return
    if _learning.on:
        raise ToldAtEachCall
    warnings.warn_explicit(
        _TOLD[wide],
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _near(dtype: Any) -> str:
    """The name that was meant, if one is like it."""
    names = sorted({d.name for d in _KNOWN})
    near = difflib.get_close_matches(dtype, names, 1) if isinstance(dtype, str) else []
    return f": did you mean {near[0]!r}?" if near else ""


def as_dtype(dtype: Any) -> Any:
    """`dtype` as an np.dtype in native byte order; anything calque has no arrays of is refused."""
    if isinstance(dtype, ExtendedDType):
        return dtype
    try:
        dt = np.dtype(
            getattr(dtype, "dtype", dtype)
            if not isinstance(dtype, (type, str))
            else _scalar_alias(dtype)
        )
    except TypeError as e:
        raise TypeError(f"{dtype!r} is not understood as a dtype{_near(dtype)}") from e
    if not dt.isnative:
        dt = dt.newbyteorder("=")
    if dt not in _KNOWN:
        if dt.kind in "SUOMmV" or dt.itemsize > 16 or dt not in _KNOWN:
            raise TypeError(
                f"calque arrays cannot have dtype {dt}: as JAX only supports number, bool, and"
                " string dtypes, and strings are not offered here, the dtypes are"
                f" {', '.join(short_name(d) for d in ALL)}"
            )
    return dt


def _scalar_alias(dtype: Any) -> Any:
    if isinstance(dtype, str):
        extra = getattr(ml_dtypes, dtype, None)
        return extra if isinstance(extra, type) else dtype
    return (
        getattr(dtype, "dtype", dtype)
        if isinstance(getattr(dtype, "dtype", None), np.dtype)
        else dtype
    )


_SHORT: Final = {
    "bool": "bool",
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}


@memo("short names of dtypes", "dtypes")
def short_name(dtype: Any) -> str:
    """The short name that jaxprs print: f32, i8, bf16, c64, f8_e4m3fn, bool."""
    if isinstance(dtype, ExtendedDType):
        return dtype.short_name()
    if dtype == float0:
        return "float0"
    name = dtype.name
    if name in _SHORT:
        return _SHORT[name]
    return name.replace("uint", "u").replace("int", "i").replace("float", "f")


def storage(dtype: Any) -> np.dtype:
    """The NumPy dtype of an array's memory."""
    return dtype.storage if isinstance(dtype, ExtendedDType) else dtype


def is_float(dtype: Any) -> bool:
    return dtype in FLOATS


def is_complex(dtype: Any) -> bool:
    return dtype in COMPLEX


def is_inexact(dtype: Any) -> bool:
    return dtype in _INEXACT


def is_signed(dtype: Any) -> bool:
    return dtype in SIGNED


def is_unsigned(dtype: Any) -> bool:
    return dtype in UNSIGNED


def is_integer(dtype: Any) -> bool:
    return dtype in SIGNED or dtype in UNSIGNED


def is_extended(dtype: Any) -> bool:
    return isinstance(dtype, ExtendedDType)


def real_part(dtype: Any) -> Any:
    """The dtype of the real part: float32 for complex64, itself for real types."""
    return {COMPLEX[0]: np.dtype("float32"), COMPLEX[1]: np.dtype("float64")}.get(dtype, dtype)


def complex_of(dtype: Any) -> Any:
    """The complex dtype that holds values of `dtype`: of two double numbers for doubles and
    integers of 64 bits."""
    return COMPLEX[1] if inexact_of(dtype) in (np.dtype("float64"), COMPLEX[1]) else COMPLEX[0]


def inexact_of(dtype: Any) -> Any:
    """The inexact type in which functions of real numbers work: float32 for bools and integers of
    up to 32 bits, float64 for longer ones; inexact types are their own."""
    if dtype in _INEXACT:
        return dtype
    return np.dtype("float64" if dtype.itemsize == 8 else "float32")


def tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents: the same for floating and complex types, float0 for the others."""
    return dtype if dtype in _INEXACT else float0


def finfo(dtype: Any) -> Any:
    """What a dtype of floats can hold.

    Args:
        dtype: a dtype of floats or complex numbers, bfloat16 and the floats of 8 bits and fewer
            too.
    Returns:
        An object with `bits`, `eps`, `max`, `min`, `smallest_normal` and more, as that of NumPy.

    >>> float(jnp.finfo(jnp.float32).eps)
    1.1920928955078125e-07"""
    return ml_dtypes.finfo(as_dtype(dtype))


def iinfo(dtype: Any) -> Any:
    """What a dtype of integers can hold.

    Args:
        dtype: a dtype of integers, those of 2 and 4 bits too.
    Returns:
        An object with `bits`, `max` and `min`, as that of NumPy.

    >>> jnp.iinfo(jnp.int4).max
    7"""
    dt = as_dtype(dtype)
    if is_inexact(dt):
        raise ValueError(f"Invalid integer data type {dt.kind!r}: {dt} has finfo")
    return ml_dtypes.iinfo(dt)


# ---------------------------------------------------------------- promotion: JAX's lattice
# Nodes are dtypes and the weak Python types "int", "float", "complex"; an edge leads to a type that
# can hold both.


@once
def _lattice() -> dict[Any, frozenset[Any]]:
    i, u = (
        [np.dtype(f"int{n}") for n in (8, 16, 32, 64)],
        [np.dtype(f"uint{n}") for n in (8, 16, 32, 64)],
    )
    f16, f32, f64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
    up: dict[Any, list[Any]] = {
        bool_: ["int"],
        "int": [u[0], i[0], *INT4, *UINT4],
        u[0]: [i[1], u[1]],
        u[1]: [i[2], u[2]],
        u[2]: [i[3], u[3]],
        u[3]: ["float"],
        i[0]: [i[1]],
        i[1]: [i[2]],
        i[2]: [i[3]],
        i[3]: ["float"],
        "float": [*FLOAT8, bfloat16, f16, "complex"],
        bfloat16: [f32],
        f16: [f32],
        f32: [f64, COMPLEX[0]],
        f64: [COMPLEX[1]],
        "complex": [COMPLEX[0]],
        COMPLEX[0]: [COMPLEX[1]],
        COMPLEX[1]: [],
        **{d: [] for d in (*FLOAT8, *INT4, *UINT4)},
    }
    reach: dict[Any, frozenset[Any]] = {}
    for node in up:
        seen, todo = {node}, [node]
        while todo:
            for n in up[todo.pop()]:
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        reach[node] = frozenset(seen)
    return reach


@memo("joins of dtypes", "sets of dtypes")
def _join(*nodes: Any) -> Any:
    reach = _lattice()
    common = frozenset.intersection(*(reach[n] for n in nodes))
    least = [n for n in common if common <= reach[n]]
    if len(least) == 1:
        return least[0]
    names = ", ".join(n if isinstance(n, str) else n.name for n in nodes)
    narrow = sorted({finfo(n).bits for n in nodes if n in FLOAT8})
    raise TypePromotionError(
        f"Input dtypes ({names}) have no available implicit dtype promotion path."
        + "".join(f" {bits}-bit floats do not support implicit promotion." for bits in narrow)
        + " Use an explicit conversion such as x.astype(jnp.float32)."
    )


class TypePromotionError(ValueError):
    """Two dtypes have no common type in the promotion lattice."""


_WEAK_DTYPE: Final = {
    "int": np.dtype("int64"),
    "float": np.dtype("float64"),
    "complex": np.dtype("complex128"),
}


def weak_node(dtype: Any) -> Any:
    """The lattice node of a weakly typed value of `dtype`."""
    if dtype == bool_:
        return bool_
    return "int" if is_integer(dtype) else "complex" if is_complex(dtype) else "float"


def promote(items: tuple[tuple[Any, bool], ...]) -> tuple[Any, bool]:
    """The common (dtype, weak_type) of several (dtype, weak_type): the promotion table of JAX."""
    first = items[0]
    if items.count(first) == len(items):
        return first
    if len(items) > 2:
        items = tuple(dict.fromkeys(items))
    return _promote(items, config.numpy_dtype_promotion == "strict", config.enable_x64)


@memo("promotions of operands", "dtypes of operands, each of them once")
def _promote(items: tuple[tuple[Any, bool], ...], strict: bool, x64: bool) -> tuple[Any, bool]:
    kinds = {d for d, _ in items}
    if any(isinstance(d, ExtendedDType) for d in kinds):
        if len(kinds) == 1:
            return next(iter(kinds)), False
        raise TypeError(
            f"dtypes {', '.join(map(str, kinds))} have no common type: convert one of them"
            " explicitly."
        )
    if float0 in kinds:
        raise TypeError(
            "float0s do not support any operations by design: they stand for tangents of integers,"
            " which have no values"
        )
    strong = {d for d, weak in items if not weak}
    if strict and len(strong) > 1:
        raise _not_strict(strong)
    if len(kinds) == 1 and not strong:
        return next(iter(kinds)), True
    nodes = {weak_node(d) if weak else d for d, weak in items}
    node = _join(*sorted(nodes, key=str))
    if strict and strong and node not in strong:  # a Python number keeps the type that it meets
        raise _not_strict(nodes)
    if isinstance(node, str):
        return canonicalize_as(_WEAK_DTYPE[node], x64), True
    return canonicalize_as(node, x64), not strong and node != bool_


def _not_strict(nodes: set[Any]) -> TypePromotionError:
    names = ", ".join(sorted(n if isinstance(n, str) else n.name for n in nodes))
    return TypePromotionError(
        f"Input dtypes {names} have no available implicit dtype promotion path when"
        " jax_numpy_dtype_promotion=strict (the same flag as calque_numpy_dtype_promotion):"
        " convert explicitly."
    )


def promote_in_any_case(items: tuple[tuple[Any, bool], ...]) -> tuple[Any, bool]:
    """As `promote` does unless promotion is strict: where a rule of its own brings dtypes
    together."""
    kinds = tuple(dict.fromkeys(items))
    return kinds[0] if len(kinds) == 1 else _promote(kinds, False, config.enable_x64)


def wide_promotion(items: tuple[tuple[Any, bool], ...]) -> Any:
    """The common dtype of types as they are named, 64-bit ones too, whether these are enabled or
    not. Where none is named and they are not enabled, there is none to be found either."""
    found = _promote(tuple(dict.fromkeys(items)), config.numpy_dtype_promotion == "strict", True)[0]
    named = config.enable_x64 or any(dtype in _NARROW for dtype, _ in items)
    return found if named else canonicalize_as(found, False)


def canonicalize_as(dtype: Any, x64: bool) -> Any:
    return dtype if x64 else _NARROW.get(dtype, dtype)
