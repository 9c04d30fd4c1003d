"""Powers with functions of their own: what `pow` gives, at all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from calque.native.scalars.powers import NAMES
from calque.native.scalars.vmath import TABLE, power_roots
from tests.native.run_kernel import bits
from tests.native.scalars.vmath.shared import INF, NUMPY, errors, outputs, run, spread

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_every_name_has_its_function() -> None:
    assert set(power_roots.FUNCTIONS) == set(NAMES.values())
    assert all(TABLE[name] is f for name, f in power_roots.FUNCTIONS.items())


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", NAMES)
def test_fixed_powers(exponent: float, dtype: str) -> None:
    """What `pow` gives, with all of C's special cases."""
    x = spread(np.random.default_rng(9), 20000).astype(NUMPY[dtype])
    y = np.full(x.shape, exponent, x.dtype)
    got, want = (
        run(NAMES[exponent], dtype, x),
        np.power(x.astype(np.longdouble), y.astype(np.longdouble)),
    )
    e = errors(got, want)
    assert e.max() <= 1.5, (e.max(), x[e.argmax()])
    special = run("pow", dtype, x, y)
    edge = (special == 0) | ~np.isfinite(special)
    assert (bits(got) == bits(special))[edge].all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("exponent", [e for e in NAMES if abs(e) >= 1.5])
def test_beginnings_of_overflow(exponent: float, dtype: str) -> None:
    """Around the arguments whose powers are the largest and the smallest numbers, no more is lost
    than the type itself loses."""
    t = NUMPY[dtype]
    info = np.finfo(t)
    x = []
    least = np.longdouble(info.smallest_subnormal)
    for edge in (np.longdouble(info.max), np.longdouble(info.tiny), least, least / 2):
        near = t(edge ** (1 / np.longdouble(exponent)))
        x.append(near * (1 + np.linspace(-1e-4, 1e-4, 501)).astype(t))
    arguments = np.concatenate(x)
    got = run(NAMES[exponent], dtype, arguments)
    want = arguments.astype(np.longdouble) ** np.longdouble(exponent)
    assert errors(got, want).max() <= 1.5
    assert np.isinf(got).any() and (got == 0).any()


def test_roots_know_no_sign_of_zero_and_infinity() -> None:
    x = np.array([-0.0, 0.0, -INF, INF, 4.0, -4.0])
    (got,) = outputs(lambda v: [power_roots.without_sign(v)], x, out=["f64"])
    assert (bits(got) == bits(np.array([0.0, 0.0, INF, INF, 4.0, -4.0]))).all()
