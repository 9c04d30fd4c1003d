"""The Faddeeva function and its kin: values beside SciPy, symmetries, borders between rules."""

import numpy as np
import pytest
import scipy.special

import calque
import calque.numpy as jnp
from calque.scipy import special
from calque.scipy.special.faddeeva import _STEP, faddeeva
from tests.ops.helpers import x64

AXIS = np.concatenate([[0.0], np.logspace(-6, 3, 25)])
GRID = (AXIS[:, None] + 1j * AXIS[None, :]).ravel()


@pytest.mark.parametrize("quarter", [1, -1, "conj", "-conj"])
def test_the_whole_plane(quarter):
    z = {1: GRID, -1: -GRID, "conj": GRID.conj(), "-conj": -GRID.conj()}[quarter]
    z = z[np.abs(z.real**2 - z.imag**2) < 600]
    with x64(), np.errstate(all="ignore"):
        want = scipy.special.wofz(z)
        fine = np.isfinite(want)
        got = np.asarray(special.wofz(z))[fine]
        assert (np.abs(got - want[fine]) <= 1e-12 * np.abs(want[fine])).all()
    few = z[np.abs(z.real * z.imag) < 100].astype(np.complex64)
    with np.errstate(all="ignore"):
        want = scipy.special.wofz(few.astype(complex))
        fine = np.abs(want) < 1e30
        np.testing.assert_allclose(np.asarray(special.wofz(few))[fine], want[fine], rtol=1e-4)


def test_near_the_nodes_of_the_rule():
    """Where one rule would divide by almost nothing, the other is used."""
    with x64():
        x = np.concatenate([_STEP * (k / 2 + d) for k in range(1, 30)
                            for d in [np.array([-1e-9, 0, 1e-9, 0.2499, 0.2501])]])  # fmt: skip
        for y in (0.0, 1e-12, 1e-3):
            real, imaginary = faddeeva(jnp.asarray(x), jnp.full_like(x, y))
            want = scipy.special.wofz(x + 1j * y)
            np.testing.assert_allclose(real, want.real, rtol=1e-11, atol=1e-15)
            np.testing.assert_allclose(imaginary, want.imag, rtol=1e-11)


def test_huge_arguments_and_none():
    z = np.array([1e200 + 1e200j, 1e300j, complex(np.inf, 3), complex(0, np.inf)])
    with x64(), np.errstate(all="ignore"):
        got = np.asarray(special.wofz(z))
        np.testing.assert_allclose(got[:2], (1j / np.sqrt(np.pi) / z)[:2], rtol=1e-13)
        assert (got[2:] == 0).all() and np.isnan(special.wofz(complex(np.nan, 1)))


@pytest.mark.parametrize("name", ["erfcx", "dawsn"])
def test_on_the_axes(name):
    x = np.concatenate([-AXIS[AXIS < 20], AXIS])
    with x64(), np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(x)
        np.testing.assert_allclose(getattr(special, name)(x), want, rtol=2e-13)
    f = getattr(special, name)
    assert f(np.float16([0.5])).dtype == np.float16 and np.isnan(f(np.float32(np.nan)))
    assert np.signbit(special.dawsn(np.float32(-0.0)))


def test_definitions_tie_them_together():
    x = np.linspace(0, 4, 9)
    with x64():
        w = np.asarray(special.wofz(x))
        np.testing.assert_allclose(w.real, np.exp(-x * x), rtol=1e-12)
        dawson = np.asarray(special.dawsn(x))
        np.testing.assert_allclose(w.imag, 2 / np.sqrt(np.pi) * dawson, rtol=1e-12)
        np.testing.assert_allclose(special.wofz(1j * x), special.erfcx(x), rtol=1e-12)
        np.testing.assert_allclose(special.erfcx(x + 0j), special.erfcx(x), rtol=1e-12)


@pytest.mark.parametrize("name", ["erfcx", "dawsn"])
def test_derivatives_of_any_order(name):
    """Both satisfy a differential equation: y'' = 2 (+ or -) (x y' + y)."""
    f, sign = getattr(special, name), 1 if name == "erfcx" else -1
    with x64():
        for x in (-1.5, 0.0, 0.3, 1.4, 1.6, 7.0):
            y, d1, d2 = f(x), calque.grad(f)(x), calque.grad(calque.grad(f))(x)
            assert float(d2) == pytest.approx(float(2 * sign * (x * d1 + y)), rel=1e-9, abs=1e-12)
