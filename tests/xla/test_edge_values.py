"""Elements at the edges of their types on XLA's CPU, which are those of calque's own engine: the
least and the largest numbers, shifts as long as a number, quotients by 0, what a conversion cannot
hold, and types of fewer bits than a byte, whose constants XLA takes for others."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_numpy
from calque.core.config import config
from calque.core.dtypes import as_dtype, finfo, iinfo
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)]
SHORT_FLOATS = [
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16", "float16",
]  # fmt: skip
PAIRS: dict[str, Callable[..., Any]] = {
    name: getattr(lax, name)
    for name in (
        "add", "sub", "mul", "div", "rem", "max", "min", "bitwise_and", "bitwise_or",
        "bitwise_xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "eq", "ne",
        "lt", "le", "gt", "ge", "mulhi",
    )
}  # fmt: skip
ALONE: dict[str, Callable[..., Any]] = {
    name: getattr(lax, name)
    for name in ("neg", "abs", "sign", "bitwise_not", "clz", "population_count", "square")
}


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def integers(name: str) -> np.ndarray:
    low, high = int(iinfo(name).min), int(iinfo(name).max)
    some = [low, low + 1, -3, -2, -1, 0, 1, 2, 3, 7, 31, 33, 63, 64, high // 2, high - 1, high]
    kept = sorted({v for v in some if low <= v <= high})
    whole = np.uint64 if low == 0 else np.int64
    return np.array(kept, whole).astype(as_dtype(name))


def floats(name: str) -> np.ndarray:
    top = float(finfo(name).max)
    some = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3, -100.9, 127, 128, 255.7, -129, 6, -6]
    whole = [2.0**31, 2.0**32, -(2.0**31), 1e19, -1e19, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        return np.array([*some, *whole, top, -top]).astype(as_dtype(name))


def both(f: Callable[..., Any], *args: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each result on calque's own engine, and on XLA."""
    here, there = [
        [np.asarray(to_numpy(x)) for x in jax.tree.leaves(jax.jit(f, backend=b)(*args))]
        for b in ("cpu", "xla_cpu")
    ]
    assert [(x.shape, x.dtype) for x in here] == [(x.shape, x.dtype) for x in there]
    return list(zip(here, there, strict=True))


def same_integers(names: Any, found: list[tuple[np.ndarray, np.ndarray]]) -> None:
    wrong = [
        f"{name}: {there.tolist()} on XLA, {here.tolist()} here"
        for name, (here, there) in zip(names, found, strict=True)
        if here.tobytes() != there.tobytes()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    e = integers(name)
    x, y = [np.array(v) for v in zip(*itertools.product(e, e))]
    same_integers(PAIRS, both(lambda x, y: [f(x, y) for f in PAIRS.values()], x, y))
    alone = {k: f for k, f in ALONE.items() if k != "abs" or "u" not in name}
    same_integers(alone, both(lambda x: [f(x) for f in alone.values()], e))


@pytest.mark.parametrize("name", INTEGERS)
def test_a_constant_beside_an_operand(name: str) -> None:
    """XLA folds constants, by rules of its own for each type."""
    e = integers(name)
    constants = e if e.size < 5 else e[[0, e.size // 2, -1]]
    told = [
        (f"{p}, {c} {'before' if before else 'behind'}", f, c, before)
        for (p, f), c, before in itertools.product(PAIRS.items(), constants, (True, False))
    ]

    def all_of_them(x: Any) -> list[Any]:
        filled = {c: jnp.full(x.shape, c) for c in constants}
        return [f(filled[c], x) if before else f(x, filled[c]) for _, f, c, before in told]

    same_integers([t[0] for t in told], both(all_of_them, e))


@pytest.mark.parametrize("name", INTEGERS)
def test_two_constants(name: str) -> None:
    """XLA divides constants while it compiles, and must not divide by 0."""
    e = integers(name)
    pairs = list(itertools.product(e[[0, e.size // 2, -1]] if e.size > 5 else e, repeat=2))
    divided = {p: PAIRS[p] for p in ("div", "rem")}

    def all_of_them() -> list[Any]:
        return [f(lax.full((), x), lax.full((), y)) for f in divided.values() for x, y in pairs]

    same_integers([f"{p} of {x}, {y}" for p in divided for x, y in pairs], both(all_of_them))


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *SHORT_FLOATS, "float32", "float64"])
def test_conversions_to_integers(name: str) -> None:
    """What does not fit is the nearest number that does, NaN is 0; integers keep their lowest
    bits."""
    if name == "bool":
        x = np.array([False, True])
    else:
        x = integers(name) if name in INTEGERS else floats(name)
    to = ["bool", *INTEGERS]
    same_integers(to, both(lambda x: [lax.convert_element_type(x, d) for d in to], x))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_a_complex_number_is_true_unless_both_parts_are_zero(name: str) -> None:
    z = np.array([0, 1j, -1j, 2, complex(0, np.nan), complex(-0.0, -0.0)], name)
    ((here, there),) = both(lambda z: lax.convert_element_type(z, bool), z)
    assert here.tolist() == there.tolist() == [False, True, True, True, True, False]


@pytest.mark.parametrize("name", SHORT_FLOATS)
def test_functions_of_short_floats_are_worked_out_in_longer_ones(name: str) -> None:
    """Where a step is beyond the type, or XLA has no such function of bytes."""
    x = np.array([0.5, 1, 1.5, 2, 3, 4, 6], as_dtype(name))
    one = np.ones(7, as_dtype(name))

    def results(x: Any, one: Any) -> list[Any]:
        powers = [lax.integer_pow(x, y) for y in (-1, -2, -3, -6)]
        special = [lax.erfc(x), lax.bessel_i1e(x), lax.bessel_i0e(x), lax.zeta(x + x, one)]
        return [*powers, *special, lax.exp2(x), lax.polygamma(one, x), lax.cumlogsumexp(x, 0)]

    for here, there in both(results, x, one):
        near = float(finfo(name).eps) * 1.01
        np.testing.assert_allclose(there.astype(float), here.astype(float), near)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_the_largest_numbers_have_a_bessel_function(name: str) -> None:
    top = float(finfo(name).max)
    x = np.array([top, -top, top / 4, top / 1024]).astype(as_dtype(name))
    ((here, there),) = both(lax.bessel_i0e, x)
    assert (there > 0).all()
    np.testing.assert_allclose(there.astype(float), here.astype(float), 0.01)


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_arrays_of_fewer_bits_than_a_byte(name: str) -> None:
    """XLA's CPU ends the process that joins arrays of two bits; folds of them start anywhere."""
    x = np.resize(integers(name) if "int" in name else floats(name)[:6], (4, 4))
    zero, one = np.zeros((), x.dtype), np.ones((), x.dtype)

    def results(x: Any) -> list[Any]:
        joined = [jnp.concatenate([x[0], x[1, :0], x[2]]), jnp.stack([x, x]), jnp.roll(x, 1, 1)]
        folds = [
            lax.reduce(x, zero, lax.max, (0,)),
            lax.reduce(x, one, lambda a, b: lax.min(a, b), (1,)),
            lax.cummin(x, 0),
            lax.cummax(x, 1),
            lax.reduce_window(x, one, lambda a, b: lax.min(a, b), (2, 2), (1, 1), "VALID"),
        ]
        best = [*lax.top_k(x, 2), *lax.top_k(x, 2, axis=0), lax.sort(x, dimension=0)]
        image = x[None, None]
        products = [
            lax.dot_general(x, x, (((1,), (0,)), ((), ())), preferred_element_type=np.float32),
            lax.conv_general_dilated(image, image[..., :2, :2], (1, 1), "VALID"),
        ]
        return [*joined, *folds, *best, *products]

    for k, (here, there) in enumerate(both(results, x)):
        assert here.astype(float).tolist() == there.astype(float).tolist(), k


def test_powers_of_two_without_a_sign_have_neighbours() -> None:
    dtype = as_dtype(ml_dtypes.float8_e8m0fnu)
    e = np.array([2.0**-100, 0.5, 1, 2, 2.0**100, np.nan]).astype(dtype)
    x, y = [np.array(v) for v in zip(*itertools.product(e, e))]
    ((here, there),) = both(lax.nextafter, x, y)
    assert here.tobytes() == there.tobytes()


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn"])
def test_floats_of_six_bits_are_refused(name: str) -> None:
    """XLA mostly ends the process that has some."""
    x = np.ones(3, as_dtype(name))
    for f, told in ((lambda x: x, x), (lambda x: x.astype(name).astype(np.float32), np.ones(3))):
        with pytest.raises(NotImplementedError, match=rf"arrays of {name}.*backend='cpu'"):
            jax.jit(f, backend="xla_cpu")(told)
