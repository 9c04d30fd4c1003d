"""sinh, cosh and tanh of complex numbers against wider arithmetic, and at the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.native.scalars.vmath import complex_hyperbolic
from tests.native.scalars.vmath.shared import INF, NAN, check_complex, check_parts, outputs, whole

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def sinh(z: Any) -> Any:
    return whole(np.sinh(z.real) * np.cos(z.imag), np.cosh(z.real) * np.sin(z.imag))


def cosh(z: Any) -> Any:
    return whole(np.cosh(z.real) * np.cos(z.imag), np.sinh(z.real) * np.sin(z.imag))


def tanh(z: Any) -> Any:
    x = np.clip(z.real, -5600, 5600)
    s, c = np.sinh(x), np.cos(z.imag)
    d = s * s + c * c
    return whole(s * np.cosh(x) / d, np.sin(z.imag) * c / d)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"sinh": sinh, "cosh": cosh, "tanh": tanh}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    check_complex(name, dtype, FUNCTIONS[name], 1.75)


def test_edges() -> None:
    check_parts(
        "sinh",
        [
            (complex(0.0, 2.0), complex(-0.0, np.sin(2))),
            (complex(-0.0, -2.0), complex(0.0, -np.sin(2))),
            (complex(-1.0, -0.0), complex(-np.sinh(1), -0.0)),
            (complex(INF, 2.0), complex(-INF, INF)),
            (complex(INF, INF), complex(INF, NAN)),
            (complex(-INF, 0.0), complex(-INF, 0.0)),
            (complex(1.0, INF), complex(NAN, NAN)),
            (complex(NAN, 0.0), complex(NAN, 0.0)),
        ],
    )
    check_parts(
        "cosh",
        [
            (complex(0.0, 2.0), complex(np.cos(2), 0.0)),
            (complex(-0.0, 2.0), complex(np.cos(2), -0.0)),
            (complex(-1.0, 0.0), complex(np.cosh(1), -0.0)),
            (complex(INF, INF), complex(INF, NAN)),
            (complex(-INF, 0.0), complex(INF, -0.0)),
            (complex(NAN, 0.0), complex(NAN, 0.0)),
        ],
    )
    check_parts(
        "tanh",
        [
            (complex(INF, 1.0), complex(1.0, 0.0)),
            (complex(-INF, -1.0), complex(-1.0, -0.0)),
            (complex(0.0, INF), complex(0.0, NAN)),
            (complex(-0.0, -0.0), complex(-0.0, -0.0)),
            (complex(1.0, INF), complex(NAN, NAN)),
            (complex(1000.0, 1.0), complex(1.0, 0.0)),
            (complex(1000.0, 2.0), complex(1.0, -0.0)),
            (complex(NAN, 0.0), complex(NAN, 0.0)),
        ],
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_the_real_functions(dtype: Any) -> None:
    """Both as pairs of which the sum is right to some more digits."""
    x = np.random.default_rng(0).uniform(-60, 60, 2000).astype(dtype)

    def parts(a: Any) -> list[Any]:
        h = complex_hyperbolic.parts(a, 90.0)
        return [*h.sinh, *h.cosh, h.n]

    name = {np.float32: "f32", np.float64: "f64"}[dtype]
    kind = {np.float32: "i32", np.float64: "i64"}[dtype]
    s, s_low, c, c_low, n = outputs(parts, x, out=[name] * 4 + [kind])
    wide = np.abs(x.astype(np.longdouble))
    for high, low, f in ((s, s_low, np.sinh), (c, c_low, np.cosh)):
        got = np.ldexp(high.astype(np.longdouble) + low, n.astype(int) - 1)
        np.testing.assert_allclose(got, f(wide), rtol=float(np.finfo(dtype).eps) / 1.6)
