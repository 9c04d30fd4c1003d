"""What the array API standard 2024.12 says, as tables: signatures, dtypes by category, the
promotion lattice.

Where JAX differs on purpose, so does calque:

    astype(copy=True) by default   copy=False: arrays are immutable
    asarray(copy=False)            copies where it must, instead of an error
    x[i] = y                       refused: x.at[i].set(y)
    x[i] out of bounds             clamped (the standard leaves it open)
    floor_divide, remainder        a zero has the sign of the dividend, not that of Python
    integers with floats           promote to the float (left open)
    from_dlpack(copy=None)         copies what cannot be shared
"""

import re

# One line for each function. Names before / are positional-only, those after * keyword-only.
SIGNATURES = [
    "",
    "arange(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray(obj, /, *, dtype=None, device=None, copy=None)",
    "empty(shape, *, dtype=None, device=None)",
    "empty_like(x, /, *, dtype=None, device=None)",
    "eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "from_dlpack(x, /, *, device=None, copy=None)",
    "full(shape, fill_value, *, dtype=None, device=None)",
    "full_like(x, /, fill_value, *, dtype=None, device=None)",
    "linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "meshgrid(*arrays, indexing='xy')",
    "ones(shape, *, dtype=None, device=None)",
    "ones_like(x, /, *, dtype=None, device=None)",
    "tril(x, /, *, k=0)",
    "triu(x, /, *, k=0)",
    "zeros(shape, *, dtype=None, device=None)",
    "zeros_like(x, /, *, dtype=None, device=None)",
    "astype(x, dtype, /, *, copy=True, device=None)",
    "can_cast(from_, to, /)",
    "finfo(type, /)",
    "iinfo(type, /)",
    "isdtype(dtype, kind)",
    "result_type(*arrays_and_dtypes)",
    "clip(x, /, min=None, max=None)",
    "take(x, indices, /, *, axis=None)",
    "take_along_axis(x, indices, /, *, axis=-1)",
    "matmul(x1, x2, /)",
    "matrix_transpose(x, /)",
    "tensordot(x1, x2, /, *, axes=2)",
    "vecdot(x1, x2, /, *, axis=-1)",
    "broadcast_arrays(*arrays)",
    "broadcast_to(x, /, shape)",
    "concat(arrays, /, *, axis=0)",
    "expand_dims(x, /, *, axis=0)",
    "flip(x, /, *, axis=None)",
    "moveaxis(x, source, destination, /)",
    "permute_dims(x, /, axes)",
    "repeat(x, repeats, /, *, axis=None)",
    "reshape(x, /, shape, *, copy=None)",
    "roll(x, /, shift, *, axis=None)",
    "squeeze(x, /, axis)",
    "stack(arrays, /, *, axis=0)",
    "tile(x, repetitions, /)",
    "unstack(x, /, *, axis=0)",
    "argmax(x, /, *, axis=None, keepdims=False)",
    "argmin(x, /, *, axis=None, keepdims=False)",
    "count_nonzero(x, /, *, axis=None, keepdims=False)",
    "nonzero(x, /)",
    "searchsorted(x1, x2, /, *, side='left', sorter=None)",
    "where(condition, x1, x2, /)",
    "unique_all(x, /)",
    "unique_counts(x, /)",
    "unique_inverse(x, /)",
    "unique_values(x, /)",
    "argsort(x, /, *, axis=-1, descending=False, stable=True)",
    "sort(x, /, *, axis=-1, descending=False, stable=True)",
    "cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)",
    "cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)",
    "max(x, /, *, axis=None, keepdims=False)",
    "mean(x, /, *, axis=None, keepdims=False)",
    "min(x, /, *, axis=None, keepdims=False)",
    "prod(x, /, *, axis=None, dtype=None, keepdims=False)",
    "std(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "sum(x, /, *, axis=None, dtype=None, keepdims=False)",
    "var(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "all(x, /, *, axis=None, keepdims=False)",
    "any(x, /, *, axis=None, keepdims=False)",
    "diff(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    "linalg.cholesky(x, /, *, upper=False)",
    "linalg.cross(x1, x2, /, *, axis=-1)",
    "linalg.det(x, /)",
    "linalg.diagonal(x, /, *, offset=0)",
    "linalg.eigh(x, /)",
    "linalg.eigvalsh(x, /)",
    "linalg.inv(x, /)",
    "linalg.matmul(x1, x2, /)",
    "linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')",
    "linalg.matrix_power(x, n, /)",
    "linalg.matrix_rank(x, /, *, rtol=None)",
    "linalg.matrix_transpose(x, /)",
    "linalg.outer(x1, x2, /)",
    "linalg.pinv(x, /, *, rtol=None)",
    "linalg.qr(x, /, *, mode='reduced')",
    "linalg.slogdet(x, /)",
    "linalg.solve(x1, x2, /)",
    "linalg.svd(x, /, *, full_matrices=True)",
    "linalg.svdvals(x, /)",
    "linalg.tensordot(x1, x2, /, *, axes=2)",
    "linalg.trace(x, /, *, offset=0, dtype=None)",
    "linalg.vecdot(x1, x2, /, *, axis=-1)",
    "linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)",
    "fft.fft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.ifft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.fftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.ifftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.rfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.irfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.rfftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.irfftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.hfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)",
    "fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)",
    "fft.fftshift(x, /, *, axes=None)",
    "fft.ifftshift(x, /, *, axes=None)",
    "",
][1:-1]

# Elementwise functions: the categories of dtypes that they take, and what becomes of them.
ALL, NUMERIC, FLOATING, REAL, REAL_FLOATING, INTEGRAL_OR_BOOL, INTEGRAL, COMPLEX, BOOL = (
    "all", "numeric", "floating", "real", "real floating", "integral or bool", "integral",
    "complex", "bool",
)  # fmt: skip
UNARY = {
    **dict.fromkeys(
        ["abs", "ceil", "floor", "negative", "positive", "round", "sign", "square", "trunc"],
        (NUMERIC, "same"),
    ),
    **dict.fromkeys(
        [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "log",
            "log1p",
            "log2",
            "log10",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ],
        (FLOATING, "same"),
    ),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], (NUMERIC, "bool")),
    "bitwise_invert": (INTEGRAL_OR_BOOL, "same"),
    "conj": (NUMERIC, "same"),
    "real": (NUMERIC, "component"),
    "imag": (COMPLEX, "component"),
    "logical_not": (BOOL, "bool"),
    "signbit": (REAL_FLOATING, "bool"),
}
UNARY.update(dict.fromkeys(("ceil", "floor", "trunc"), (REAL, "same")), abs=(NUMERIC, "component"))
BINARY = {
    **dict.fromkeys(["add", "multiply", "subtract", "pow"], (NUMERIC, "promoted")),
    "divide": (FLOATING, "promoted"),
    **dict.fromkeys(["floor_divide", "remainder", "maximum", "minimum"], (REAL, "promoted")),
    **dict.fromkeys(
        ["atan2", "copysign", "hypot", "logaddexp", "nextafter"], (REAL_FLOATING, "promoted")
    ),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], (INTEGRAL_OR_BOOL, "promoted")),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], (INTEGRAL, "promoted")),
    **dict.fromkeys(["equal", "not_equal"], (ALL, "bool")),
    **dict.fromkeys(["greater", "greater_equal", "less", "less_equal"], (REAL, "bool")),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], (BOOL, "bool")),
}
SIGNATURES += [f"{name}(x, /)" for name in UNARY] + [f"{name}(x1, x2, /)" for name in BINARY]

METHODS = """
__abs__() __add__(other, /) __and__(other, /) __array_namespace__(*, api_version=None) __bool__() __complex__()
__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) __dlpack_device__() __eq__(other, /) __float__()
__floordiv__(other, /) __ge__(other, /) __getitem__(key, /) __gt__(other, /) __index__() __int__() __invert__()
__le__(other, /) __lshift__(other, /) __lt__(other, /) __matmul__(other, /) __mod__(other, /) __mul__(other, /)
__ne__(other, /) __neg__() __or__(other, /) __pos__() __pow__(other, /) __rshift__(other, /) __setitem__(key, value, /)
__sub__(other, /) __truediv__(other, /) __xor__(other, /) to_device(device, /, *, stream=None)
"""
ATTRIBUTES = ("dtype", "device", "mT", "ndim", "shape", "size", "T")
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
REALS, COMPLEXES = ("float32", "float64"), ("complex64", "complex128")
DTYPES = ("bool", *SIGNED, *UNSIGNED, *REALS, *COMPLEXES)
CATEGORIES = {
    ALL: DTYPES,
    NUMERIC: DTYPES[1:],
    FLOATING: REALS + COMPLEXES,
    REAL: SIGNED + UNSIGNED + REALS,
    REAL_FLOATING: REALS,
    INTEGRAL_OR_BOOL: ("bool", *SIGNED, *UNSIGNED),
    INTEGRAL: SIGNED + UNSIGNED,
    COMPLEX: COMPLEXES,
    BOOL: ("bool",),
}
COMPONENT = {"complex64": "float32", "complex128": "float64"}


def bits(dtype: str) -> int:
    return int(re.sub(r"\D", "", dtype))


def promoted(a: str, b: str) -> str | None:
    """The dtype of the lattice, None where the standard leaves it open."""
    if a == b:
        return a
    if "bool" in (a, b):
        return None
    if a in REALS + COMPLEXES or b in REALS + COMPLEXES:
        if a not in REALS + COMPLEXES or b not in REALS + COMPLEXES:
            return None
        wide = 64 in (
            bits(a) // (2 if a in COMPLEXES else 1),
            bits(b) // (2 if b in COMPLEXES else 1),
        )
        return (COMPLEXES if a in COMPLEXES or b in COMPLEXES else REALS)[wide]
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=bits)
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    needed = max(bits(signed), 2 * bits(unsigned))
    return f"int{needed}" if needed <= 64 else None
