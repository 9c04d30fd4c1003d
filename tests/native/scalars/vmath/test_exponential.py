"""exp and its kin against wider arithmetic, and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, cast, load, var
from calque.native.scalars.node import make
from calque.native.scalars.vmath import exponential
from calque.native.scalars.vmath.base import whole
from tests.native.run_kernel import bits, run_plain
from tests.native.scalars.vmath.shared import INF, NUMPY, SPECIAL, check, errors, outputs, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def logistic(x: Any) -> Any:
    return np.where(x < -50, np.exp(x), 1 / (1 + np.exp(-x)))


# name: reference, range of ordinary arguments (for f32 and f64), most units in the last place
FUNCTIONS: dict[
    str, tuple[Callable[[Any], Any], tuple[float, float], tuple[float, float], float]
] = {
    "exp": (np.exp, (-105, 90), (-746, 711), 1.0),
    "exp2": (np.exp2, (-151, 129), (-1076, 1025), 1.0),
    "expm1": (np.expm1, (-20, 90), (-40, 711), 2.0),
    "logistic": (logistic, (-105, 90), (-746, 711), 2.0),
    "tanh": (np.tanh, (-10, 10), (-20, 20), 2.0),
    "sinh": (np.sinh, (-90, 90), (-711, 711), 2.0),
    "cosh": (np.cosh, (-90, 90), (-711, 711), 2.0),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    f, narrow, wide, most = FUNCTIONS[name]
    check(name, dtype, f, narrow if dtype == "f32" else wide, most)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_last_finite_results(dtype: str) -> None:
    """Overflow begins where it must, and not an argument earlier."""
    t = NUMPY[dtype]
    largest = np.finfo(t).max
    for name, f in (("exp", np.exp), ("expm1", np.expm1), ("cosh", np.cosh), ("sinh", np.sinh)):
        edge = np.log(np.longdouble(largest)) + (name in ("cosh", "sinh")) * np.log(
            np.longdouble(2)
        )
        x = (t(edge) + np.arange(-3, 4) * np.spacing(t(edge))).astype(t)
        got, want = run(name, dtype, x), f(x.astype(np.longdouble))
        assert (np.isinf(got) == (want > largest)).all(), name
        assert np.isinf(got).any() and np.isfinite(got).any()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_arguments_are_reduced(dtype: str) -> None:
    """x = n ln 2 + r with |r| of at most half of ln 2, to more digits than the type has."""
    top = {"f32": 80.0, "f64": 700.0}[dtype]
    x = np.random.default_rng(0).uniform(-top, top, 5000).astype(NUMPY[dtype])

    def function(v: Any) -> list[Any]:
        r, n = exponential.reduce(v)
        return [r, cast(whole(n), "i32")]

    r, n = outputs(function, x, out=[dtype, "i32"])
    assert (n == np.rint(x / np.log(2))).all()
    assert np.abs(r).max() <= np.log(2) / 2 * (1 + 1e-6)
    ln2 = np.longdouble("0.693147180559945309417232121458176568")
    rest = np.abs(x.astype(np.longdouble) - n * ln2 - r)
    assert (rest <= np.spacing(NUMPY[dtype](0.35))).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_correction_counts(dtype: str) -> None:
    """exp(x + low) of a `low` that is too small to be added to x."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-50, 50, 4000).astype(NUMPY[dtype])
    low = (np.spacing(x) * rng.uniform(-0.5, 0.5, len(x))).astype(NUMPY[dtype])
    (got,) = outputs(lambda a, b: [exponential.exp_corrected(a, b)], x, low, out=[dtype])
    assert errors(got, np.exp(x.astype(np.longdouble) + low)).max() <= 1.0
    assert errors(got, np.exp(x.astype(np.longdouble))).max() > 4


def test_clamped_arguments_keep_nans() -> None:
    x = np.array([-INF, -5, 0.5, 7, INF, np.nan], np.float32)
    (got,) = outputs(lambda v: [exponential.clamp(v, (-4.0, 6.0))], x, out=["f32"])
    np.testing.assert_array_equal(got, np.array([-4, -4, 0.5, 6, 6, np.nan], np.float32))


def test_same_bits_without_a_scaling_instruction() -> None:
    n = var("n")
    i = var("i", n)
    x = np.concatenate([np.random.default_rng(8).uniform(-110, 95, 5000), SPECIAL]).astype(
        np.float32
    )
    for name, wide in (
        ("exp", x),
        ("exp2", x * 1.5),
        ("exp", x.astype(np.float64) * 7),
        ("exp2", x.astype(np.float64) * 10),
    ):
        dtype = "f32" if wide.dtype == np.float32 else "f64"
        source, to = Buffer("x", (n,), dtype), Buffer("y", (n,), dtype)
        body = (
            For(
                i,
                (Store(to, (i,), make(name, (load(source, (i,)),), dtype)),),
                kind="vector",
                width=16,
            ),
        )
        got = np.empty_like(wide)
        run_plain(body, {source: wide, to: got, "n": len(wide)}, avx512=False)
        want = run(name, dtype, wide)
        assert (bits(got) == bits(want)).all()
