"""exp, exp2, expm1 and the logistic function of complex numbers against wider arithmetic, and at
the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from calque.native.scalars.vmath import complex_exponential
from tests.native.scalars.vmath.shared import (
    COMPLEX,
    INF,
    NAN,
    check_complex,
    check_parts,
    complex_errors,
    outputs,
    run_complex,
    whole,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def exp(z: Any) -> Any:
    return whole(np.exp(z.real) * np.cos(z.imag), np.exp(z.real) * np.sin(z.imag))


def expm1(z: Any) -> Any:
    half = np.sin(z.imag / 2)
    return whole(
        np.expm1(z.real) * np.cos(z.imag) - 2 * half * half, np.exp(z.real) * np.sin(z.imag)
    )


def logistic(z: Any) -> Any:
    """exp(z / 2) / (2 cosh(z / 2)), whose parts lose nothing."""
    x, y = np.clip(z.real / 2, -5600, 5600), z.imag / 2
    d = whole(np.cosh(x) * np.cos(y), np.sinh(x) * np.sin(y)) * 2
    out = exp(whole(x, y)) / d
    return np.where(z.real < -160, exp(z), np.where(z.real > 160, 1, out))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp": (exp, 1.7),
    "expm1": (expm1, 1.7),
    "logistic": (logistic, 1.4),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    f, most = FUNCTIONS[name]
    check_complex(name, dtype, f, most)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers_of_two_at_any_angle(dtype: str) -> None:
    """The angle is y ln 2 for y of every size."""
    r = np.random.default_rng(1)
    top = {"f32": 38, "f64": 307}[dtype]
    x = np.concatenate([r.uniform(-100, 100, 400), r.normal(size=200)])
    y = np.concatenate([10 ** r.uniform(-3, top, 400), r.integers(-9, 9, 200) * 2.2661800709135966])
    z = (x + 1j * y).astype(COMPLEX[dtype])
    with mpmath.workprec(1400):
        want = [mpmath.power(2, mpmath.mpc(v)) for v in z.tolist()]
        exact = whole(*(np.array([np.longdouble(mpmath.nstr(getattr(w, p), 25)) for w in want])
        for p in ("real", "imag")))  # fmt: skip
    assert complex_errors(run_complex("exp2", z), exact).max() <= 1.8


def test_edges() -> None:
    infinite = [
        (complex(INF, 0.0), complex(INF, 0.0)),
        (complex(INF, -0.0), complex(INF, -0.0)),
        (complex(INF, 2.0), complex(-INF, INF)),
        (complex(INF, INF), complex(INF, NAN)),
        (complex(INF, NAN), complex(INF, NAN)),
        (complex(NAN, 0.0), complex(NAN, 0.0)),
        (complex(NAN, 1.0), complex(NAN, NAN)),
        (complex(1.0, INF), complex(NAN, NAN)),
        (complex(1.0, -0.0), complex(np.e, -0.0)),
    ]
    check_parts("exp", [*infinite, (complex(-INF, 2.0), complex(-0.0, 0.0)), (-0.0 + 0j, 1 + 0j)])
    less = [(complex(1.0, -0.0), complex(np.e - 1, -0.0)), (complex(-0.0, 0.0), 0j)]
    check_parts("expm1", [*infinite[:-1], *less, (complex(-INF, 2.0), complex(-1.0, 0.0))])
    two = complex(1.0, -0.0), complex(2.0, -0.0)
    check_parts("exp2", [two, (complex(-INF, 4.0), complex(-0.0, 0.0))])
    check_parts(
        "logistic",
        [
            (complex(INF, NAN), complex(1.0, 0.0)),
            (complex(-INF, 1.0), complex(0.0, 0.0)),
            (complex(0.0, -0.0), complex(0.5, -0.0)),
            (complex(1.0, NAN), complex(NAN, NAN)),
        ],
    )


def test_what_grows_is_rounded_once() -> None:
    """(1 + p) of a pair whose rest is large."""
    high, low = np.float32([1.0, 0.5]), np.float32([0.25, -0.125])
    p = np.float32([0.25, -0.3])
    (got,) = outputs(
        lambda a, b, c: [complex_exponential.grown(complex_exponential.Pair(a, b), c)],
        high,
        low,
        p,
        out=["f32"],
    )
    want = (high.astype(float) + low) * (1 + p.astype(float))
    np.testing.assert_allclose(got, want, rtol=1.2e-7)
