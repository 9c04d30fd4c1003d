"""log, log1p and atanh of complex numbers against wider arithmetic, and at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.scalars.vmath.shared import (
    INF,
    NAN,
    check_complex,
    check_parts,
    complex_errors,
    complex_samples,
    run,
    whole,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def log1p(z: Any) -> Any:
    x, y = z.real, z.imag
    near = (np.abs(x) < 0.5) & (np.abs(y) < 0.5)
    re = np.log1p(np.where(near, x * (x + 2) + y * y, 0)) / 2
    return whole(np.where(near, re, np.log(whole(x + 1, y)).real), np.arctan2(y, x + 1))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_against_wider_arithmetic(dtype: str) -> None:
    check_complex("log1p", dtype, log1p, 1.4)
    check_complex("atanh", dtype, np.arctanh, 1.7)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_logarithms_of_sizes(dtype: str) -> None:
    """With the angle, for which there is `atan2`; of all sizes and near the circle."""
    for region, z in complex_samples(dtype).items():
        x, y = np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)
        got = whole(run("log_hypot", dtype, x, y), run("atan2", dtype, y, x))
        e = complex_errors(got, np.log(z.astype(np.clongdouble)))
        assert e.max() <= 1.7, (region, e.max(), z[e.argmax()])


def test_a_pole_and_what_is_next_to_it() -> None:
    for k in (-100, -146):
        check_parts("atanh", [(complex(1, 2.0**k), complex((1 - k) * np.log(2) / 2, np.pi / 4))])
    poles = [(complex(1, 0.0), complex(INF, 0.0)), (complex(-1, -0.0), complex(-INF, -0.0))]
    check_parts("atanh", poles)


def test_edges() -> None:
    right = np.pi / 2
    check_parts(
        "atanh",
        [
            (complex(INF, 1.0), complex(0.0, right)),
            (complex(-INF, -INF), complex(-0.0, -right)),
            (complex(2.0, -0.0), complex(np.arctanh(0.5), -right)),
            (complex(0.0, NAN), complex(0.0, NAN)),
            (complex(NAN, INF), complex(0.0, right)),
            (complex(INF, NAN), complex(0.0, NAN)),
            (complex(NAN, 1.0), complex(NAN, NAN)),
            (complex(-0.0, 0.0), complex(-0.0, 0.0)),
        ],
    )
    check_parts(
        "log1p",
        [
            (complex(-1.0, 0.0), complex(-INF, 0.0)),
            (complex(INF, 1.0), complex(INF, 0.0)),
            (complex(-INF, 1.0), complex(INF, np.pi)),
            (complex(0.0, -0.0), complex(0.0, -0.0)),
            (complex(1.0, NAN), complex(NAN, NAN)),
        ],
    )
