"""What the rules of all primitives share: which dtypes they take, constants, zeros, operands of
public functions, batching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import as_it_is
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dims import Dim, value_of
from calque.core.dtypes import (
    COMPLEX,
    FLOATS,
    PYTHON_SCALARS,
    SIGNED,
    UNSIGNED,
    bool_,
    canonicalize,
    float0,
    iinfo,
    is_complex,
    is_extended,
    is_float,
    is_integer,
)
from calque.core.primitives import REGISTRY, Zero, do
from calque.core.trace import VALUES, typeof
from calque.machine.caches import Table
from calque.ops.conversions import constant_of

# ---------------------------------------------------------------- which dtypes a primitive takes


class Accepts:
    """A set of dtypes with the words for it."""

    def __init__(self, words: str, dtypes: Sequence[Any], extended: bool = False):
        self.words, self.dtypes, self.extended = words, frozenset(dtypes), extended

    def __contains__(self, dtype: Any) -> bool:
        return dtype in self.dtypes or (self.extended and is_extended(dtype))


FLOAT = Accepts("floating", FLOATS)
INEXACT = Accepts("floating, complexfloating", (*FLOATS, *COMPLEX))
COMPLEXES = Accepts("complexfloating", COMPLEX)
INT = Accepts("integer", (*SIGNED, *UNSIGNED))
INT_OR_BOOL = Accepts("integer, bool", (*SIGNED, *UNSIGNED, bool_))
REAL = Accepts("integer, floating", (*SIGNED, *UNSIGNED, *FLOATS))
ORDERED = Accepts("integer, floating, bool", (*SIGNED, *UNSIGNED, *FLOATS, bool_))
NUMBER = Accepts("integer, floating, complexfloating", (*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX))
SIGNED_NUMBER = Accepts("floating, complexfloating, signedinteger", (*SIGNED, *FLOATS, *COMPLEX))
PLAIN = Accepts("integer, floating, complexfloating, bool", (*NUMBER.dtypes, bool_))
ANY = Accepts("anything", (*NUMBER.dtypes, bool_, float0), extended=True)

_REMEDY: Final = {
    FLOAT: "convert it first, for example with x.astype(jnp.float32)",
    INEXACT: "convert it first, for example with x.astype(jnp.float32)",
    NUMBER: "use the logical operations, or convert it first with x.astype(jnp.int32)",
    INT: "convert it first, for example with x.astype(jnp.int32)",
    INT_OR_BOOL: "convert it first, for example with x.astype(jnp.int32)",
}


def refuse_dtype(name: str, dtype: Any, accepts: Accepts, position: int | None = None) -> TypeError:
    at = "" if position is None else f" at position {position}"
    what = getattr(dtype, "name", dtype)
    advice = _REMEDY.get(accepts)
    tail = f" To use it, {advice}." if advice and not is_extended(dtype) else ""
    return TypeError(
        f"{name} does not accept dtype {what}{at}. Accepted dtypes{at} are subtypes of"
        f" {accepts.words}.{tail}"
    )


# ---------------------------------------------------------------- constants and zeros

_PYTHON_KIND: Final[dict[str, type]] = {
    "f": float,
    "V": float,
    "i": int,
    "u": int,
    "b": bool,
    "c": complex,
}
_constants: Final[Table[tuple[Any, ...], Any]] = Table("constants", 4096)


def const(like: Any, value: float | complex) -> Any:
    """The number `value` with the dtype of `like`, and with its weak type if it is of rank 0: what
    arrays of weak type make with constants is not weak, as in JAX."""
    aval = typeof(like)
    return scalar_of(aval.dtype, value) if aval.ndim else number_like(like, value)


def number_like(like: Any, value: float | complex) -> Any:
    """The number `value` with the dtype, and the weak type, of `like`, whatever its rank."""
    aval = typeof(like)
    if aval.weak_type and aval.dtype == canonicalize(_PYTHON_KIND[aval.dtype.kind]):
        return _PYTHON_KIND[aval.dtype.kind](value)
    return scalar_of(aval.dtype, value)


def scalar_of(dtype: Any, value: Any) -> Any:
    """The number `value` as a rank-0 NumPy array; as an Array where operations would take a NumPy
    array for one of 32 bits. Kept, so that equal constants are one object."""
    exact = (
        value and type(value) is not complex
    )  # 0.0 and -0.0 are equal, and so are complex numbers with them
    key = (dtype, type(value), value if exact else repr(value), config.enable_x64)
    x = _constants.find(key)
    if x is None:
        x = constant_of(value, dtype)
        x.setflags(write=False)
        x = as_it_is(x)
        _constants[key] = x
    return x


def filled(shape: Sequence[int], element: Any) -> Any:
    """A rank-0 value repeated to `shape`."""
    if not shape:
        return element
    return do.broadcast_in_dim(element, shape=tuple(shape), broadcast_dimensions=())


def filled_like(x: Any, value: float | complex) -> Any:
    """An array of the type of `x`, filled with `value`."""
    return filled(typeof(x).shape, number_like(x, value))


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """The sum of coefficients[k] x^k."""
    found: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        found = found * x + c
    return found


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of this aval."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return filled(aval.shape, zero_of(aval))


def zero_of(aval: ShapedArray) -> Any:
    """A zero of rank 0 of the dtype of this aval, and as weakly typed where Python has such a
    number."""
    if aval.weak_type:
        number = _PYTHON_ZEROS.get(aval.dtype.kind)
        if number is not None and typeof(number).dtype == aval.dtype:
            return number
    return scalar_of(aval.dtype, 0)


_PYTHON_ZEROS: Final = {"i": 0, "f": 0.0, "c": 0j}


def instantiate(t: Any) -> Any:
    """A tangent or cotangent as an array, also where it is Zero."""
    return zeros(t.aval) if type(t) is Zero else t


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The aval of tangents of values of `aval`."""
    return aval.to_tangent_aval()


def zero_like(x: Any) -> Zero:
    """The zero tangent of the value `x`."""
    return Zero(tangent_aval(typeof(x)))


def add_tangents(a: Any, b: Any) -> Any:
    """The sum of two tangents or cotangents, each of which may be Zero."""
    if type(a) is Zero:
        return b
    if type(b) is Zero:
        return a
    return do.add_any(a, b)


# ---------------------------------------------------------------- rank-0 operands among others


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` with shape `shape`: a rank-0 value is repeated, anything else has that shape already."""
    return x if len(shape) == typeof(x).ndim else filled(shape, x)


def gathered(ct: Any, aval: ShapedArray) -> Any:
    """The cotangent of an operand that was repeated: summed when the operand has rank 0."""
    t = typeof(ct)
    if t.ndim == aval.ndim:
        return ct
    return do.reduce_sum(ct, axes=tuple(range(t.ndim)))


# ---------------------------------------------------------------- batching


def move(x: Any, source: int, target: int) -> Any:
    """`x` with dimension `source` moved to `target`."""
    if source == target:
        return x
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return do.transpose(x, permutation=tuple(order))


def front(x: Any, dim: int | None, size: int) -> Any:
    """`x` with its batch dimension first; repeated `size` times if it has none."""
    return move(x, dim, 0) if dim is not None else repeated(x, size)


def repeated(x: Any, size: int, at: int = 0) -> Any:
    """`x` repeated along a new dimension `at`."""
    shape = list(typeof(x).shape)
    shape.insert(at, size)
    kept = tuple(i for i in range(len(shape)) if i != at)
    return do.broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=kept)


def batch_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The size of the batch dimension."""
    return next(typeof(x).shape[d] for x, d in zip(args, dims) if d is not None)


def expanded(x: Any, ndim: int) -> Any:
    """A batched value whose batch dimension is first, with size-1 dimensions after it up to rank
    `ndim`."""
    shape = typeof(x).shape
    if len(shape) == ndim:
        return x
    return do.reshape(x, new_sizes=shape + (1,) * (ndim - len(shape)))


def batch_elementwise(name: str) -> Callable[..., Any]:
    """The batching rule of elementwise primitives: batch dimensions are brought to one place,
    shapes made equal."""

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        args, dim = aligned(args, dims)
        out = REGISTRY[name].bind(*args, **params)
        return out, ([dim] * len(out) if REGISTRY[name].multiple_results else dim)

    return rule


def aligned(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Elementwise operands with one batch dimension in common. Unbatched operands of rank 0 stay as
    they are."""
    shapes = [typeof(x).shape for x in args]
    first = next(i for i, d in enumerate(dims) if d is not None)
    if all(
        (d is None and not s) or (d == dims[first] and s == shapes[first])
        for s, d in zip(shapes, dims)
    ):
        return list(args), dims[first]  # type: ignore[return-value]
    size = shapes[first][dims[first]]  # type: ignore[index]
    rank = max(len(s) - (d is not None) for s, d in zip(shapes, dims))
    base = next(
        s if d is None else s[:d] + s[d + 1 :]
        for s, d in zip(shapes, dims)
        if len(s) - (d is not None) == rank
    )
    dim = next((d for s, d in zip(shapes, dims) if d is not None and len(s) == rank + 1), 0)
    target = base[:dim] + (size,) + base[dim:]
    return [_align(x, s, d, dim, target) for x, s, d in zip(args, shapes, dims)], dim


def _align(x: Any, shape: tuple[int, ...], d: int | None, dim: int, target: tuple[int, ...]) -> Any:
    if d is None:
        if not shape:
            return x
        kept = tuple(i for i in range(len(target)) if i != dim)
        return do.broadcast_in_dim(x, shape=target, broadcast_dimensions=kept)
    if len(shape) == len(target):
        return move(x, d, dim)
    return do.broadcast_in_dim(x, shape=target, broadcast_dimensions=(dim,))


# ---------------------------------------------------------------- operands of public functions


def operand(x: Any) -> Any:
    """An operand that primitives take: NumPy arrays with the dtype that calque gives them, Python
    scalars as they are."""
    if isinstance(x, VALUES):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = typeof(x).dtype
        return x if x.dtype == dtype else np.asarray(x).astype(dtype)
    if isinstance(x, PYTHON_SCALARS):
        return x
    if type(x) is Dim:
        return value_of(x)
    if hasattr(x, "__jax_array__"):
        return operand(x.__jax_array__())
    typeof(x)  # says what is wrong with it
    return x


def initial_value(init: Any, aval: ShapedArray) -> Any:
    """What a reduction of such elements begins with: Python numbers take their dtype, infinities
    of integers are the ends of their range."""
    if isinstance(init, PYTHON_SCALARS) and not isinstance(init, np.generic):
        if isinstance(init, float) and np.isinf(init) and is_integer(aval.dtype):
            init = int(iinfo(aval.dtype).max if init > 0 else iinfo(aval.dtype).min)
        return scalar_of(aval.dtype, init)
    return operand(init)


def check_initial_values(name: str, xs: Sequence[Any], inits: Sequence[Any]) -> None:
    """Refuse what is of another dtype than the elements that it is combined with."""
    for x, init in zip(xs, inits, strict=True):
        dtype, other = typeof(x).dtype, typeof(init).dtype
        if dtype != other:
            raise TypeError(
                f"{name}: the initial value is of dtype {other.name}, the operand of {dtype.name}."
                f" Convert one of them: lax.convert_element_type(init, {dtype.name!r})"
            )


def index_operand(x: Any) -> Any:
    """Positions as an operand: those of NumPy that 32 bits cannot hold, where 64 are not enabled,
    stay beyond every end instead of coming round."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        dtype = typeof(x).dtype
        if dtype != x.dtype:
            info = np.iinfo(dtype)
            return np.asarray(np.clip(x, info.min, info.max)).astype(dtype)
    return operand(x)


def dtype_of(x: Any) -> Any:
    """The dtype of an operand; None for a Python scalar, which takes that of the others."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else None


def operands(name: str, *xs: Any) -> list[Any]:
    """Operands of one elementwise operation: one dtype, and one shape (or rank 0). Python scalars
    take the others' dtype."""
    try:
        taken = [operand(x) for x in xs]
    except TypeError as e:
        raise _interpreting(name, xs, e) from None
    return same_shapes(name, same_dtypes(name, taken))


def _interpreting(name: str, xs: Sequence[Any], error: TypeError) -> TypeError:
    """The error of an operand that is no array, with its place."""
    for i, x in enumerate(xs):
        try:
            operand(x)
        except TypeError:
            return TypeError(
                f"Error interpreting argument to {name} as a JAX value. The problematic value is of"
                f" type {type(x)} and was passed to {name} at position {i}. {error}"
            )
    return error


def same_dtypes(name: str, xs: list[Any]) -> list[Any]:
    """Operands of one dtype: Python scalars take that of the arrays, arrays of two dtypes are
    refused."""
    dtypes = [dtype_of(x) for x in xs]
    known = set(dtypes) - {None}
    if len(known) > 1:
        raise dtype_mismatch(name, [typeof(x).dtype for x in xs])
    if not known:
        return _all_python(name, xs)
    if None in dtypes:
        (dtype,) = known
        weak = all(typeof(x).weak_type for x, d in zip(xs, dtypes) if d is not None)
        return [
            x if d is not None else python_scalar(name, x, dtype, weak) for x, d in zip(xs, dtypes)
        ]
    return xs


def dtype_mismatch(name: str, dtypes: Sequence[Any]) -> TypeError:
    if float0 in dtypes:
        return TypeError(
            f"lax.{name}: float0s do not support any operations by design: they stand for tangents"
            " of integers, which have no values"
        )
    listed = ", ".join(str(getattr(d, "name", d)) for d in dtypes)
    return TypeError(
        f"lax.{name} requires arguments to have the same dtypes, got {listed}. (Tip: jnp.{name} is"
        " a similar function that does automatic type promotion on inputs;"
        " lax.convert_element_type converts one of them.)"
    )


_accepted: Final[Table[tuple[Any, type, Any], np.ndarray]] = Table(
    "numbers that dtypes can hold", 4096
)


def quick_scalar(name: str, x: Any, aval: ShapedArray) -> Any:
    """`python_scalar` for one array beside the number, remembering what was accepted before."""
    if aval.weak_type or not x:
        return python_scalar(name, x, aval.dtype, aval.weak_type)
    key = (aval.dtype, type(x), x)
    known = _accepted.find(key)
    if known is None:
        known = _accepted[key] = python_scalar(name, x, aval.dtype, False)
    return known


def python_scalar(name: str, x: Any, dtype: Any, weak: bool) -> Any:
    """A Python scalar beside an array of `dtype`: that dtype, when it holds numbers of this
    kind."""
    kind = type(x) if type(x) in _KIND_RANK else next(p for p in PYTHON_SCALARS if isinstance(x, p))
    own = _PYTHON_KIND[dtype.kind]
    if is_extended(dtype) or dtype == float0 or _KIND_RANK[kind] > _dtype_rank(dtype):
        raise dtype_mismatch(name, [dtype, canonicalize(kind)])
    if weak and canonicalize(own) == dtype:
        return own(x)
    if is_integer(dtype) and not iinfo(dtype).min <= x <= iinfo(dtype).max:
        raise OverflowError(f"{name}: Python int {x} is out of bounds for {dtype.name}")
    return scalar_of(dtype, x)


_KIND_RANK: Final[dict[type, int]] = {bool: 0, int: 1, float: 2, complex: 3}


def _dtype_rank(dtype: Any) -> int:
    """Which kinds of Python numbers a dtype holds: booleans, integers, floats, complex numbers."""
    return 1 if is_integer(dtype) else _KIND_RANK[_PYTHON_KIND[dtype.kind]]


def _all_python(name: str, xs: list[Any]) -> list[Any]:
    """Python scalars only: they must be of one kind."""
    kinds = {next(p for p in PYTHON_SCALARS if isinstance(x, p)) for x in xs}
    if len(kinds) > 1:
        raise dtype_mismatch(name, [typeof(x).dtype for x in xs])
    (kind,) = kinds
    return [x if type(x) is kind else kind(x) for x in xs]


def same_shapes(name: str, xs: Sequence[Any]) -> list[Any]:
    """Operands with size-1 dimensions repeated where another operand is larger."""
    shapes = [typeof(x).shape for x in xs]
    ranked = [s for s in shapes if s]
    if not ranked or all(s == ranked[0] for s in ranked):
        return list(xs)
    if len({len(s) for s in ranked}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes"
            f" {', '.join(map(str, shapes))}. (Tip: jnp.{name} broadcasts; lax.broadcast_in_dim"
            " adds dimensions.)"
        )
    target = tuple(next((d for d in ds if d != 1), 1) for ds in zip(*ranked))
    if any(d != t and d != 1 for s in ranked for d, t in zip(s, target)):
        raise incompatible(name, shapes)
    every = tuple(range(len(target)))
    return [
        (
            x
            if not s or s == target
            else do.broadcast_in_dim(
                squeezed(x, target),
                shape=target,
                broadcast_dimensions=_kept(s, target, every),
            )
        )
        for x, s in zip(xs, shapes)
    ]


def squeezed(x: Any, target: tuple[int, ...]) -> Any:
    """`x` without the size-1 dimensions that `target` has larger."""
    gone = tuple(i for i, (d, t) in enumerate(zip(typeof(x).shape, target)) if d != t)
    return do.squeeze(x, dimensions=gone)


def _kept(
    shape: tuple[int, ...], target: tuple[int, ...], every: tuple[int, ...]
) -> tuple[int, ...]:
    return tuple(i for i in every if shape[i] == target[i])


def incompatible(name: str, shapes: Sequence[tuple[int, ...]]) -> TypeError:
    return TypeError(
        f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}."
        " Dimensions must be equal, or 1: reshape or slice one of the operands."
    )


def axis_in(name: str, axis: Any, ndim: int) -> int:
    """A dimension number as a non-negative int; negative ones count from the end."""
    i = int(axis)
    if not -ndim <= i < ndim:
        raise ValueError(f"{name}: axis {i} is out of bounds for array of dimension {ndim}")
    return i % ndim


def is_inexact(x: Any) -> bool:
    dtype = typeof(x).dtype
    return is_float(dtype) or is_complex(dtype)


def check_places(what: str, n: Any, dtype: Any) -> None:
    """Positions along so many elements must fit in the dtype that counts them: beyond it they would
    wrap around, silently."""
    if type(n) is int and n - 1 > iinfo(dtype).max:
        raise OverflowError(
            f"{what}: positions along an axis of size {n} are beyond {dtype.name}; those of int64"
            " need calque.config.update('calque_enable_x64', True)"
        )
