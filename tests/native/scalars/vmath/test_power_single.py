"""pow of float32: its logarithm as a pair of float32, what it makes of it, and the bits of machines
that read tables otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, load, var
from calque.native.scalars.node import make
from calque.native.scalars.vmath import power_single
from calque.native.scalars.vmath.base import ldexp
from calque.native.scalars.vmath.logarithm import unusual
from tests.native.run_kernel import bits, run_plain
from tests.native.scalars.vmath.shared import INF, NAN, errors, outputs, pairs, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def positive(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = [2.0 ** rng.uniform(-149, 128, n), 1 + rng.normal(size=n) * 10.0 ** rng.uniform(-7, -1, n)]
    return np.concatenate([*x, [1.0, 2.0**-149, 2.0**-126, 3.4e38]]).astype(np.float32)


def test_the_logarithm_as_a_pair() -> None:
    """Far more digits than a float32 has, of small and of large ones alike; denormals too."""
    x = positive(5000)
    h, low = outputs(lambda v: power_single.log2_pair(v, unusual(v)), x, out=["f32"] * 2)
    got = h.astype(np.longdouble) + low
    want = np.log2(x.astype(np.longdouble))
    assert (np.abs(got - want) <= np.minimum(np.abs(want) * 2.0**-30, 2.0**-35)).all()
    assert got[x == 1].tolist() == [0] * int((x == 1).sum())
    minus = outputs(lambda v: power_single.log2_pair(v, unusual(v)), -x, out=["f32"] * 2)
    assert [a.tobytes() for a in minus] == [h.tobytes(), low.tobytes()]


def test_products_keep_their_rest() -> None:
    rng = np.random.default_rng(1)
    y, h = (rng.normal(size=3000).astype(np.float32) for _ in range(2))
    low = (h * rng.uniform(-1, 1, 3000) * 2.0**-25).astype(np.float32)
    t, t_low = outputs(power_single.times, y, h, low, out=["f32"] * 2)
    assert (t == y * h).all()
    want = y.astype(np.longdouble) * (h.astype(np.longdouble) + low)
    assert (np.abs(t + t_low.astype(np.longdouble) - want) <= np.abs(want) * 2.0**-46).all()


def test_powers_of_two_in_parts() -> None:
    rng = np.random.default_rng(2)
    t = rng.uniform(-120, 120, 3000).astype(np.float32)
    t_low = (rng.uniform(-0.5, 0.5, 3000) * np.spacing(t)).astype(np.float32)
    (got,) = outputs(lambda a, b: [ldexp(*power_single.exp2_parts(a, b))], t, t_low, out=["f32"])
    assert errors(got, np.exp2(t.astype(np.longdouble) + t_low)).max() <= 1.0


def test_cases_of_their_own() -> None:
    """What C says of zeros, infinities, nans, negative bases, and results out of range."""
    x = [0, -0.0, -0.0, 0, -8, -8, -8, 1, NAN, -INF, -INF, INF, 2, 2, -2, 0.5, -1, -1, 2, NAN]
    y = [-1, -3, 3, INF, 3, 2, 0.5, NAN, 0, 3, -3, -1, 1000, -1000, 1001, INF, INF, -INF, -149, 1]
    a, b = np.array(x, np.float32), np.array(y, np.float32)
    got = run("pow", "f32", a, b)
    want = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    assert (bits(got) == bits(want)).all(), (got, want)


def test_same_bits_without_permutations() -> None:
    """Tables are read by gathers and loads where registers are not permuted."""
    n = var("n")
    i = var("i", n)
    x, y = pairs("f32")
    x, y = np.abs(x), y * 5
    a, b, to = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32"), Buffer("z", (n,), "f32")
    body = (
        For(
            i,
            (Store(to, (i,), make("pow", (load(a, (i,)), load(b, (i,))), "f32")),),
            kind="vector",
            width=8,
        ),
    )
    got = np.empty_like(x)
    run_plain(body, {a: x, b: y, to: got, "n": len(x)}, avx512=False)
    assert (bits(got) == bits(run("pow", "f32", x, y))).all()
