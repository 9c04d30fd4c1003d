"""The short names that formulas are built of: exact sums and products, bits, powers of two."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from calque.native.scalars.expr import FLOAT_BITS, cast, const, ref
from calque.native.scalars.vmath import base
from tests.native.evaluate import compiled
from tests.native.scalars.vmath.shared import INF, NAN, NUMPY, outputs, spread

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def exact(values: Any) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_and_products_in_two_parts(dtype: str) -> None:
    """The parts are the rounded result and all that it lacks."""
    r = np.random.default_rng(0)
    a, b = (
        (r.normal(size=800) * 2.0 ** r.uniform(-20, 20, 800)).astype(NUMPY[dtype]) for _ in "ab"
    )
    s, s_low, p, p_low = outputs(
        lambda x, y: [*base.two_sum(x, y), *base.two_product(x, y)], a, b, out=[dtype] * 4
    )
    assert (s == a + b).all() and (p == a * b).all() and s_low.any() and p_low.any()
    for x, y, *got in zip(*map(exact, (a, b, s, s_low, p, p_low)), strict=True):
        assert got[0] + got[1] == x + y and got[2] + got[3] == x * y
    large, small = np.where(np.abs(a) >= np.abs(b), a, b), np.where(np.abs(a) >= np.abs(b), b, a)
    fast = outputs(base.fast_two_sum, large, small, out=[dtype] * 2)
    assert [x.tobytes() for x in fast] == [s.tobytes(), s_low.tobytes()]
    zero = outputs(base.fast_two_sum, np.zeros_like(a), a, out=[dtype] * 2)
    assert (zero[0] == a).all() and not zero[1].any()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_scaling_rounds_once(dtype: str) -> None:
    """By an instruction and by two products: denormal results too, and the same bits."""
    t = NUMPY[dtype]
    top = {"f32": 250.0, "f64": 2000.0}[dtype]
    r = np.random.default_rng(1)
    a, n = r.uniform(0.7, 1.42, 4000).astype(t), np.rint(r.uniform(-top, top, 4000)).astype(t)

    def function(x: Any, k: Any) -> list[Any]:
        _, i = base.nearest_integer(k, 1.0)
        return [base.ldexp(x, i), base.ldexp_by_parts(x, base.whole(i))]

    one, two = outputs(function, a, n, out=[dtype] * 2)
    want = np.ldexp(a, n.astype(np.int32))
    assert (one == want).all() and (two == want).all()
    assert ((want > 0) & (want < np.finfo(t).tiny)).any() and np.isinf(want).any()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_nearest_integers(dtype: str) -> None:
    """The float, and the integer with all its bits after `whole`; ties to even."""
    top = {"f32": 2.0**20, "f64": 2.0**30}[dtype]
    x = np.concatenate([np.random.default_rng(2).uniform(-top, top, 3000), [0.5, 1.5, -0.5, -2.5]])
    x = x.astype(NUMPY[dtype])

    def function(v: Any) -> list[Any]:
        n, i = base.nearest_integer(v, 1.0)
        return [n, cast(base.whole(i), "i32")]

    n, i = outputs(function, x, out=[dtype, "i32"])
    assert (n == np.rint(x)).all() and (i == np.rint(x)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers_of_two_from_integers(dtype: str) -> None:
    info = np.finfo(NUMPY[dtype])
    n = np.arange(info.minexp, info.maxexp)
    kind = base.INT_OF[dtype]
    _, run = compiled(lambda i: [base.power_of_two(i, dtype)], [kind], [dtype], exact=True)
    (got,) = run(n.astype({"i32": np.int32, "i64": np.int64}[kind]))
    assert (got == np.ldexp(NUMPY[dtype](1), n)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_limits_pass_nans_and_hold_ends(dtype: str) -> None:
    x = spread(np.random.default_rng(3), 500).astype(NUMPY[dtype])
    most, least, odd = outputs(
        lambda v: [base.at_most(v, 2.0), base.no_less(v, -3.0), base.not_within(v, -4, 5)],
        x,
        out=[dtype, dtype, "i1"],
    )
    np.testing.assert_array_equal(most, np.minimum(x, 2))
    np.testing.assert_array_equal(least, np.maximum(x, -3))
    assert (odd.view(bool) == ~((x >= 2.0**-4) & (x < 2.0**5))).all()


def test_the_ends_of_a_range_of_powers() -> None:
    x = np.array(
        [2.0**-4, 2.0**5, np.nextafter(2.0**-4, 0), np.nextafter(2.0**5, 99), -1, NAN, INF]
    )
    (odd,) = outputs(lambda v: [base.not_within(v, -4, 5)], x, out=["i1"])
    assert odd.view(bool).tolist()[2:] == [True] * 5
    assert odd.view(bool).tolist()[0] is False


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_signs_are_bits(dtype: str) -> None:
    """Those of zeros and nans too."""
    t = NUMPY[dtype]
    x = np.array([0.0, -0.0, 1.5, -1.5, INF, -INF, NAN, 3.0], t)
    y = np.array([-1.0, -1.0, -1.0, 2.0, -0.0, 0.0, -2.0, NAN], t)
    flipped, copied = outputs(
        lambda a, b: [base.flip_sign(a, base.sign_bit(b)), base.copysign(a, b)],
        x,
        y,
        out=[dtype] * 2,
    )
    assert (np.signbit(flipped) == np.signbit(x) ^ np.signbit(y)).all()
    assert (np.signbit(copied) == np.signbit(y)).all()
    np.testing.assert_array_equal(np.abs(flipped), np.abs(x))


def test_polynomials_by_the_type_of_their_argument() -> None:
    short, long = (1.0, 2.0, 3.0), (1.0, -2.0, 4.0, 0.5)
    for dtype, few in (("f32", short), ("f64", long)):
        x = np.linspace(-2, 2, 101).astype(NUMPY[dtype])
        (got,) = outputs(lambda v: [base.poly(v, base.pick(v, short, long))], x, out=[dtype])
        want = sum(c * x.astype(np.longdouble) ** k for k, c in enumerate(few))
        assert np.allclose(got.astype(float), want.astype(float), rtol=1e-6, atol=1e-6)


def test_tables_are_read_by_the_low_five_bits() -> None:
    table = tuple(float(k) * 1.5 for k in range(32))
    _, run = compiled(lambda i: [base.lookup(i, table)], ["i32"], ["f32"])
    i = np.arange(-40, 100, dtype=np.int32)
    assert run(i)[0].tolist() == [table[k & 31] for k in i]


def test_seldom_sides_and_logic() -> None:
    x = np.array([-2.0, -0.0, 0.0, 2.0, NAN, INF])
    got = outputs(
        lambda v: [
            base.rare(base.less(v, 0.0), v, base.mul(v, -1.0)),
            base.where(base.any_of(base.is_nan(v), base.equal(v, INF), base.less(v, 0.0)), 1.0, v),
            base.where(base.all_of(base.less(v, 9.0), base.greater(v, -1.0)), v, 7.0),
        ],
        x,
        out=["f64"] * 3,
    )
    np.testing.assert_array_equal(got[0], [2, 0, 0, 2, NAN, INF])
    np.testing.assert_array_equal(got[1], [1, 0, 0, 2, 1, 1])
    np.testing.assert_array_equal(got[2], [7, 0, 0, 2, 7, 7])


def test_numbers_take_the_type_of_their_partner() -> None:
    for dtype in FLOAT_BITS:
        x = ref("x", dtype)
        assert base.pair(1.5, x) == (const(1.5, dtype), x)
        assert base.pair(x, 2) == (x, const(2.0, dtype))
        assert base.add(1.0, x).args[0] is const(1.0, dtype) and base.sub(x, 3).dtype == dtype
    assert base.add(const(0.0, "f32"), const(0.0, "f32")).op == "add"  # nothing is simplified
