"""Angles brought near zero, against pi by integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from calque.native.scalars.vmath import reduction
from tests.native.evaluate import compiled
from tests.native.scalars.vmath.shared import NUMPY, angle, outputs, pi_bits

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
BITS = 2400


def turns(x: float) -> Fraction:
    """x / pi modulo 2, in [-1, 1), to some 1000 bits after the point."""
    m, d = x.as_integer_ratio()
    over = ((m << (2 * BITS)) // d) // pi_bits(BITS)
    return Fraction((over + (1 << BITS)) % (2 << BITS) - (1 << BITS), 1 << BITS)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_half_turns_of_huge_arguments(dtype: str) -> None:
    """As good, beside the distance to the next quarter, as the result of a function must be: also
    for the argument of each type that is nearest to one."""
    t, rng = NUMPY[dtype], np.random.default_rng(0)
    low, high = {"f32": (18, 128), "f64": (40, 1024)}[dtype]
    worst = {"f32": 16367173.0 * 2.0**72, "f64": 6381956970095103.0 * 2.0**797}[dtype]
    x = np.concatenate([2.0 ** rng.uniform(low, high, 200) * rng.choice([-1, 1], 200), [worst]])
    x = x.astype(t)
    head, rest = outputs(reduction.half_turns, x, out=["f64"] * 2)
    assert np.abs(head).max() <= 1
    for v, h, r in zip(x.tolist(), head.tolist(), rest.tolist(), strict=True):
        want = turns(v)
        error = abs(Fraction(h) + Fraction(r) - want)
        error = min(error, 2 - error)  # -1 is 1
        quarter = abs(2 * want - round(2 * want))
        assert error <= quarter * Fraction(1, 2 ** {"f32": 40, "f64": 54}[dtype]), v


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_common_arguments(dtype: str) -> None:
    """x less a multiple of pi: as a number, and as a number with its rest, which is exact beside
    it even where next to nothing is left."""
    t, rng = NUMPY[dtype], np.random.default_rng(1)
    top = {"f32": 17, "f64": 39}[dtype]
    near = np.rint(2.0 ** rng.uniform(0, top - 2, 300)) * np.longdouble(np.pi)
    x = np.concatenate([2.0 ** rng.uniform(-2, top, 300), near.astype(t)]).astype(t)
    want = [angle(float(v), 1) for v in x]
    q, r = np.array([a for a, _ in want], t), np.array([b for _, b in want])

    plain, high, low = outputs(
        lambda v, k: [reduction.common(v, k, 1.0), *reduction.common_pair(v, k, 1.0)],
        x,
        q,
        out=[dtype] * 3,
    )
    eps = float(np.finfo(t).eps)
    assert (np.abs(plain - r) <= eps * np.abs(r) * 2).all()
    pair = high.astype(np.longdouble) + low
    assert (np.abs(pair - r) <= eps * np.abs(r) / 4).all()


def test_modulo_2_is_exact() -> None:
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.normal(size=500) * 2.0 ** rng.uniform(-9, 60, 500), [1, -1, 3, 2, 4]])
    (got,) = outputs(lambda v: [reduction.modulo_2(v)], p, out=["f64"])
    for v, g in zip(p.tolist(), got.tolist(), strict=True):
        assert abs(g) <= 1 and (Fraction(v) - Fraction(g)) % 2 == 0


def test_windows_of_the_bits_of_the_reciprocal_of_pi() -> None:
    """Every shift of the stream, with the weights that the four parts have."""
    e = np.arange(1024, dtype=np.uint64)
    _, run = compiled(reduction._window, ["u64"], ["f64"] * 4, exact=True)
    parts = run(e)
    assert all((p >= 0).all() and (p < 2.0 ** (1 - 52 * k)).all() for k, p in enumerate(parts))
    for k in range(0, 1024, 7):
        got = sum(Fraction(float(p[k])) for p in parts)
        want = Fraction(1 << BITS, pi_bits(BITS)) * Fraction(2) ** (k - 12) % 2
        assert 0 <= want - got < Fraction(1, 2**206)


def test_turns_become_angles() -> None:
    rng = np.random.default_rng(3)
    f = rng.uniform(-0.5, 0.5, 500)
    rest = f * 2.0**-54
    (got,) = outputs(lambda a, b: [reduction.turns_to_angle(a, b, 0.5)], f, rest, out=["f64"])
    pi = Fraction(pi_bits(200), 1 << 200)
    for a, b, g in zip(f.tolist(), rest.tolist(), got.tolist(), strict=True):
        want = (Fraction(a) + Fraction(b)) * pi / 2
        assert abs(Fraction(g) - want) <= abs(want) * Fraction(1, 2**52)
