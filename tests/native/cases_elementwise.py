"""Cases of element-wise primitives: every dtype, every shape, special values."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special

from calque.core import dtypes
from calque.core.primitives import Primitive
from calque.ops.rounding import RoundingMethod
from tests.native.cases import (
    SHAPES,
    Case,
    accepted,
    cases_of,
    is_floating,
    numbers,
    specials,
    wild,
)

EXACT = (
    "neg", "sign", "abs", "max", "min", "floor", "ceil", "is_finite", "nextafter", "clamp",
    "mulhi", "and", "or", "xor", "not",
    "shift_left", "shift_right_logical", "shift_right_arithmetic", "population_count", "clz",
    "real", "imag", "complex",
    "copy", "eq", "ne", "lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to", "stop_gradient",
)  # fmt: skip
ROUNDED = (
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "square",
    "sqrt",
    "add_any",
)  # to nearest, so equal for reals, near for complex numbers
NEAR = {
    "exp": 2, "exp2": 2, "expm1": 3, "log": 2, "log1p": 3, "logistic": 4, "tanh": 3, "sinh": 3,
    "cosh": 3, "asinh": 3, "acosh": 3,
    "atanh": 4, "sin": 2, "cos": 2, "tan": 4, "asin": 3, "acos": 3, "atan": 3, "atan2": 4,
    "cbrt": 2, "rsqrt": 2, "erf": 3, "erfc": 4,
    "erf_inv": 4, "normal_erf_inv": 80, "multiply_add": 1,
    "drawn_erf": 8, "drawn_exp": 8, "drawn_log": 8, "drawn_log1p": 8,
    "drawn_pow": 4, "drawn_tan": 4,
    "lgamma": 4, "digamma": 8, "pow": 4, "bessel_i0e": 1, "bessel_i1e": 1,
    "igamma": 1, "igammac": 1,
    "igamma_grad_a": 1, "polygamma": 1, "random_gamma_grad": 1, "regularized_incomplete_beta": 1,
    "zeta": 1,
}  # fmt: skip
ZEROS_ALIKE = ("max", "min", "clamp", "nextafter")  # which of two zeros comes out is not said
# the meanings themselves are not nearer
SPECIAL64 = {
    "erfc": 200, "lgamma": 8, "digamma": 8, "bessel_i0e": 8, "bessel_i1e": 10,
    "drawn_log1p": 200, "normal_erf_inv": 1_000_000,
}  # fmt: skip
SCALES: dict[str, Callable[..., Any]] = {  # near their zeros and poles
    "erfc": lambda x: np.where(np.abs(x) > 25, 1.0, 0.0),  # its meaning gives no subnormal numbers
    "lgamma": lambda x: np.ones(x.shape),
    "digamma": lambda x: (
        1 + scipy.special.psi(x.astype(np.float64)) ** 2 * np.abs(x.astype(np.float64))
    ),
}
COMPLEX_ULPS = {
    "pow": 64,
    "tan": 32,
    "atanh": 32,
    "asinh": 32,
    "acosh": 32,
    "asin": 32,
    "acos": 32,
    "atan": 32,
    "tanh": 32,
}
OPERANDS = {
    "clamp": 3, "multiply_add": 3, "regularized_incomplete_beta": 3, "threefry2x32": 4,
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "rem", "max", "min", "and", "or", "xor", "eq", "ne", "lt",
        "le", "gt", "ge", "eq_to", "lt_to", "le_to",
         "shift_left", "shift_right_logical", "shift_right_arithmetic", "nextafter", "atan2",
         "pow", "drawn_pow", "complex", "mulhi", "add_any",
         "igamma", "igammac", "igamma_grad_a", "polygamma", "random_gamma_grad", "zeta"), 2,
    ),
}  # fmt: skip
EVERY_SHAPE = ("add", "exp", "max", "eq", "div", "sqrt")  # the others go the same way
FEW = ((), (0,), (17,), (3, 5), (130,))
FIRST = (
    np.dtype("float32"),
    np.dtype("int32"),
    np.dtype("bool"),
    np.dtype("uint32"),
    np.dtype("complex64"),
)


def shaped(p: Primitive, dtype: Any, n: int, case: Callable[..., Case]) -> Iterator[Case]:
    """Every shape, and a scalar beside an array."""
    for k, shape in enumerate(SHAPES if p.name in EVERY_SHAPE else FEW):
        yield case(p, *[wild(dtype, *shape, seed=3 * k + i) for i in range(n)])
    if n > 1 and p.name != "clamp":
        for i in range(n):
            yield case(p, *[wild(dtype, *(() if i == j else (33,)), seed=j) for j in range(n)])


def of_dtype(p: Primitive, dtype: Any, n: int, case: Callable[..., Case]) -> Iterator[Case]:
    """All pairs of special values, plain numbers, wild numbers."""
    s = specials(dtype)
    pairs = [np.asarray(a).astype(dtype).reshape(-1) for a in np.meshgrid(*[s] * min(n, 2))]
    more = [
        np.concatenate([numbers(dtype, 131, seed=i), wild(dtype, 561, seed=i)]) for i in range(n)
    ]
    yield case(
        p, *[np.concatenate([pairs[i % len(pairs)], more[i]]).astype(dtype) for i in range(n)]
    )


def plain_case(p: Primitive, *args: Any, **params: Any) -> Case:
    dtype = np.asarray(args[0]).dtype
    exact = p.name in EXACT or not (is_floating(dtype) or dtype.kind == "c")
    if exact and not (p.name in ("abs", "sign") and dtype.kind == "c"):
        return Case(p, args, params, 0 if p.name in ZEROS_ALIKE else None)
    if dtype.kind == "c":
        return Case(p, args, params, COMPLEX_ULPS.get(p.name, 16))
    if p.name in ROUNDED:
        return Case(
            p, args, params, 0 if dtype.name.startswith(("float4", "float6")) else None
        )  # no NaN
    return Case(
        p,
        args,
        params,
        (
            SPECIAL64.get(p.name)
            if dtype == np.float64 and p.name in SPECIAL64
            else NEAR.get(p.name, 4)
        ),
        SCALES.get(p.name),
    )


@cases_of(*EXACT, *ROUNDED, *(name for name in NEAR if name != "pow"))
def elementwise(p: Primitive) -> Iterator[Case]:
    n = OPERANDS.get(p.name, 1)
    takes = accepted(p, [()] * n)
    assert takes, p
    yield from shaped(p, next((d for d in FIRST if d in takes), takes[0]), n, plain_case)
    for d in takes:
        yield from of_dtype(p, d, n, plain_case)


@cases_of("pow")
def powers_of_integers(p: Primitive) -> Iterator[Case]:
    yield from elementwise(p)
    for d in (np.dtype("float32"), np.dtype("float16"), np.dtype("complex64")):
        yield Case(p, (numbers(d, 130), numbers(np.int32, 130, low=0, high=5)), {}, 16)


@cases_of("conj")
def conjugate(p: Primitive) -> Iterator[Case]:
    for d in (np.dtype("complex64"), np.dtype("complex128"), np.dtype("float32")):
        yield Case(p, (numbers(d, 17, 5),), {"input_dtype": d})


@cases_of("integer_pow")
def integer_pow(p: Primitive) -> Iterator[Case]:
    for y in (0, 1, 2, 3, 4, 5, 7, 13, -1, -2, -3, -8):
        for d in accepted(p, [()], y=y):
            if y >= 0 or not dtypes.is_integer(d):
                yield Case(
                    p,
                    (wild(d, 65, seed=y + 9),),
                    {"y": y},
                    None if dtypes.is_integer(d) else 2 * abs(y) + 1,
                )
    yield from (Case(p, (wild(np.float32, *s),), {"y": 3}, 7) for s in SHAPES)


@cases_of("round")
def rounding(p: Primitive) -> Iterator[Case]:
    for method in RoundingMethod:
        for d in accepted(p, [()], rounding_method=method):
            halves = (np.arange(-20, 21) / 2).astype(d)
            yield Case(
                p,
                (np.concatenate([halves, wild(d, 100), specials(d)]),),
                {"rounding_method": method},
            )


@cases_of("reduce_precision")
def reduce_precision(p: Primitive) -> Iterator[Case]:
    for d in accepted(p, [()], exponent_bits=5, mantissa_bits=3):
        for e, m in ((5, 10), (8, 7), (4, 3), (8, 23), (2, 1), (5, 0), (11, 52)):
            yield Case(
                p,
                (np.concatenate([wild(d, 200), specials(d)]),),
                {"exponent_bits": e, "mantissa_bits": m},
            )


@cases_of("select_n")
def select(p: Primitive) -> Iterator[Case]:
    for shape in SHAPES:
        for d in (*dtypes.ALL,) if shape == (17, 33) else (np.dtype("float32"), np.dtype("bool")):
            which = numbers(bool, *shape)
            yield Case(p, (which, wild(d, *shape), wild(d, *shape, seed=1)), {})
            yield Case(
                p,
                (
                    which[(0,) * which.ndim] if which.size else np.bool_(1),
                    wild(d, *shape),
                    wild(d, *shape, seed=1),
                ),
                {},
            )
    several = numbers(np.int32, 5, 20, low=0, high=2)
    yield Case(p, (several, *[numbers(np.float32, 5, 20, seed=i) for i in range(3)]), {})
    yield Case(p, (several * 5 - 4, *[numbers(np.int16, 5, 20, seed=i) for i in range(3)]), {})
    yield Case(p, (several, numbers(np.float32, 5, 20)), {})


@cases_of("convert_element_type")
def convert(p: Primitive) -> Iterator[Case]:
    for a in dtypes.ALL:
        for b in dtypes.ALL:
            x = np.concatenate([specials(a), wild(a, 70), numbers(a, 40)]).astype(a)
            yield Case(p, (x,), {"new_dtype": b, "weak_type": False, "sharding": None})
    for shape in SHAPES:
        yield Case(
            p,
            (wild(np.float32, *shape),),
            {"new_dtype": np.dtype("int8"), "weak_type": False, "sharding": None},
        )


@cases_of("bitcast_convert_type")
def bitcast(p: Primitive) -> Iterator[Case]:
    for a in dtypes.ALL:
        for b in dtypes.ALL:
            for shape in ((33,), (), (7, 2), (3, 4), (5, 8), (2, 16)):
                if (a.itemsize == b.itemsize) == (len(shape) < 2) and accepted(
                    p, [shape], [a], new_dtype=b
                ):
                    yield Case(p, (bits(a, *shape),), {"new_dtype": b})


def bits(dtype: Any, *shape: int) -> np.ndarray:
    """Numbers of every size without NaN, whose bits a conversion need not keep."""
    x = wild(dtype, *shape)
    return (
        np.where(np.isnan(x.astype(np.float64)), np.zeros((), dtype), x).astype(dtype)
        if is_floating(dtype)
        else x
    )


@cases_of("threefry2x32")
def threefry(p: Primitive) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case(p, tuple(wild(np.uint32, *shape, seed=i) for i in range(4)), {})
    yield Case(
        p, (np.uint32(1), np.uint32(2), wild(np.uint32, 7, 5), wild(np.uint32, 7, 5, seed=1)), {}
    )


@cases_of("name", "optimization_barrier", "empty", "iota")
def trivial(p: Primitive) -> Iterator[Case]:
    if p.name == "name":
        yield Case(p, (numbers(np.float32, 7),), {"name": "x"})
    elif p.name == "optimization_barrier":
        yield Case(p, (numbers(np.float32, 7), numbers(np.int8, 3, 5)), {})
    else:
        for d in accepted(p, [], **params_of_new(p, (3,), np.dtype("float32"))) or dtypes.ALL:
            for shape in ((130,), (3, 5), (0, 4), (17, 33), (2, 3, 70)):
                yield from new_arrays(p, shape, d)


def params_of_new(p: Primitive, shape: tuple[int, ...], dtype: Any) -> dict[str, Any]:
    if p.name == "empty":
        return {"dtype": dtype, "shape": shape, "out_sharding": None}
    return {"dtype": dtype, "shape": shape, "dimension": len(shape) - 1, "sharding": None}


def new_arrays(p: Primitive, shape: tuple[int, ...], dtype: Any) -> Iterator[Case]:
    params = params_of_new(p, shape, dtype)
    try:
        p.shape(**params)
    except (TypeError, ValueError):
        return
    if p.name == "empty":
        yield Case(p, (), params, check=lambda c, got: None)
        return
    for k in range(len(shape)):
        if shape[k] <= 2 ** min(7, 8 * dtype.itemsize - 1) or not is_floating(dtype):
            yield Case(p, (), {**params, "dimension": k})
