"""Elementwise functions of several steps."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS

CASES = lines("""
jnp.copysign(X, -X[::-1])
jnp.copysign(SPECIAL, -SPECIAL)
jnp.heaviside(X, 0.5)
jnp.heaviside(SPECIAL, 2.0)
jnp.hypot(X, X + 1)
jnp.hypot(I, 2)
jnp.hypot(np.float32(3e38), np.float32(3e38))
jnp.hypot(C, 1)
jnp.fmax(SPECIAL, 1.0)
jnp.fmin(SPECIAL, SPECIAL[::-1])
jnp.float_power(I, 2)
jnp.logaddexp(X, X + 2)
jnp.logaddexp2(X, X + 2)
jnp.logaddexp(SPECIAL, 0.0)
jnp.divmod(I, 2)
jnp.divmod(X, -0.7)
jnp.modf(X * 3)
jnp.frexp(X)
jnp.frexp(I)
jnp.frexp(SPECIAL)
jnp.frexp(C)
jnp.ldexp(X, I[:1, :1])
jnp.ldexp(X, 2.0)
jnp.ldexp(SPECIAL, np.int32(-3))
jnp.spacing(X)
jnp.sinc(X)
jnp.sinc(I)
jnp.i0(X)
jnp.i0(C)
jnp.angle(C)
jnp.angle(X)
jnp.angle(C, deg=True)
jnp.angle(I)
jnp.iscomplex(C)
jnp.isreal(C)
jnp.isreal(X)
jnp.nan_to_num(SPECIAL)
jnp.nan_to_num(SPECIAL, nan=1.0, posinf=2.0, neginf=-3.0)
jnp.nan_to_num(I)
jnp.nan_to_num(SPECIAL + 1j)
jnp.gcd(I, 4)
jnp.gcd(I, X)
jnp.lcm(I, 6)
jnp.lcm(np.int8(-4), np.int8(6))
jnp.fabs(I)
jnp.float_power(X, C)
jnp.trunc(X * 3)
jnp.sign(C)
jnp.isposinf(SPECIAL)
jnp.isneginf(SPECIAL)
jnp.signbit(SPECIAL)
jnp.nextafter(X, 2.0)
jnp.bitwise_count(I)
jnp.bitwise_count(-I)
jnp.left_shift(I, 2)
jnp.right_shift(-I, 1)
jnp.bitwise_right_shift(I, 1)
jnp.bitwise_invert(I)
jnp.cbrt(X)
jnp.log2(X + 3)
jnp.log10(X + 3)
jnp.exp2(X)
jnp.rint(X * 3)
jnp.reciprocal(X)
jnp.fmod(X, 0.3)
jnp.logical_xor(I, 0)
jnp.deg2rad(X)
jnp.square(C)
jnp.true_divide(I, 2)
jnp.matvec(X, X[0])
jnp.vecmat(X[:, 0], X)
jnp.vecdot(C, C)
jnp.unstack(X)
jnp.astype(X, "int32")
jnp.astype(C, "bool")
jnp.argsort(X, dtype="int8")
jnp.take_along_axis(X, np.array([[0, -1]]), 1, wrap_negative_indices=False)
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA)


def test_weak_types_of_numbers() -> None:
    """A number of Python beside an integer of rank 0 decides the dtype and leaves it weak."""
    one, many = jnp.array(1, "int8"), jnp.ones(2, "int8")
    for f in (jnp.hypot, jnp.heaviside):
        assert f(one, 0.5).weak_type and not f(many, 0.5).weak_type
    for f in (jnp.logaddexp, jnp.logaddexp2):
        assert f(one, 1j).weak_type and not f(many, 1j).weak_type
        assert not f(jnp.ones((), "complex64"), 1j).weak_type


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_divisors_and_multiples_of_the_least_integer(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = np.array([least, least + 1, 0, 1, 6, most - 1, most, -1, -6], dtype)
    x, y = np.repeat(numbers, 9), np.tile(numbers, 9)
    for name in ("gcd", "lcm"):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x, y).tolist()
        for f in (getattr(jnp, name), calque.jit(getattr(jnp, name))):
            assert f(jnp.asarray(x), jnp.asarray(y)).tolist() == wanted
