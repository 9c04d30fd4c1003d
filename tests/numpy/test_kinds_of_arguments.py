"""Arguments of every kind that NumPy and JAX take, and the values at the edges of integers."""

import math

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
WRAPPING = {
    "+": lambda a, v: a + v,
    "+ from the left": lambda a, v: v + a,
    "maximum": jnp.maximum,
    "&": lambda a, v: a & v,
    "where": lambda a, v: jnp.where(a > 1, a, v),
    "at.set": lambda a, v: a.at[0].set(v),
    "at.add": lambda a, v: a.at[0].add(v),
    "full_like": jnp.full_like,
    "pad": lambda a, v: jnp.pad(a, 1, constant_values=v),
    "max": lambda a, v: jnp.max(a, initial=v),
    "full": lambda a, v: jnp.full(2, v, a.dtype),
}


@pytest.mark.parametrize("x64", (False, True))
@pytest.mark.parametrize("name", WRAPPING)
@pytest.mark.parametrize("jitted", (False, True))
def test_python_integers_come_round(name, x64, jitted):
    f = WRAPPING[name]
    with calque.enable_x64(x64):
        for dtype in (*UNSIGNED, "int8", "int16")[0 : None if x64 else 3]:
            for v in (-1, -2, 300, -70000):
                near = np.asarray(v).astype(dtype)[()]
                g = calque.jit(f, static_argnums=1) if jitted else f
                a = jnp.arange(3, dtype=dtype)
                got = g(a, v)
                assert got.dtype == dtype and got.tolist() == f(a, near).tolist(), (dtype, v)


@pytest.mark.parametrize("jitted", (False, True))
@pytest.mark.parametrize("dtype", ("int8", "uint8", "int32", "uint32"))
def test_remainders_by_zero(dtype, jitted):
    x = jnp.arange(-3, 4).astype(dtype)
    for y in (0, jnp.zeros((), dtype), jnp.asarray([0, 2, 0, 3, 0, 1, 0], dtype)):
        divisors = np.broadcast_to(np.asarray(y).astype(dtype), x.shape)
        with np.errstate(divide="ignore"):
            for f, g in ((jnp.remainder, np.remainder), (jnp.fmod, np.fmod)):
                got = (calque.jit(f) if jitted else f)(x, y)
                assert got.tolist() == g(np.asarray(x), divisors).tolist()
        assert jnp.divmod(x, y)[1].tolist() == jnp.remainder(x, y).tolist()


@pytest.mark.parametrize(
    "name", ("sum", "mean", "max", "prod", "any", "std", "nansum", "median", "ptp", "flip")
)
def test_axes_are_any_sequence(name):
    x = jnp.arange(6.0).reshape(2, 3)
    f, whole = getattr(jnp, name), getattr(np, name)(np.asarray(x), axis=(0, 1))
    for axis in (range(2), [0, 1], (np.int32(0), 1)):
        np.testing.assert_allclose(f(x, axis=axis), whole, rtol=1e-6)


def test_an_ellipsis_that_the_result_lacks_is_summed():
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0, 48).reshape(2, 3, 4)
    assert jnp.einsum("i...,i...->i", x, y).tolist() == (x * y).sum((1, 2)).tolist()
    assert jnp.einsum("i...->i", x).tolist() == x.sum((1, 2)).tolist()
    assert float(jnp.einsum("...->", x)) == x.sum()
    assert jnp.einsum("...i,i...->...", x[0], y[0].T).shape == (3,)


def test_bounds_of_random_integers_are_truncated():
    key = calque.random.key(0)
    draw = calque.random.randint
    expected = draw(key, (20,), 0, 10).tolist()
    for low, high in ((0.0, 10.0), (0.7, 10.9), (np.float32(0.5), jnp.float32(10.5)), (False, 10)):
        assert draw(key, (20,), low, high).tolist() == expected
    with pytest.raises(TypeError, match="real"):
        draw(key, (), 0, 1j)


def test_windows_begin_with_any_number():
    x = jnp.arange(5)
    assert lax.reduce_window(x, -jnp.inf, lax.max, (2,)).tolist() == [1, 2, 3, 4]
    assert lax.reduce_window(x, math.inf, lax.min, (2,)).tolist() == [0, 1, 2, 3]
    assert lax.reduce_window(x, 0.0, lax.add, (2,)).tolist() == [1, 3, 5, 7]
    assert lax.reduce_window(x * 1.0, 0, lax.add, (2,)).dtype == "float32"


def test_objects_that_are_not_mapped():
    marker = object()

    def f(x, *rest, **named):
        assert rest == (marker, "name") or rest == ()
        return x * 2

    xs = jnp.arange(3.0)
    assert calque.vmap(f, in_axes=(0, None, None))(xs, marker, "name").tolist() == [0, 2, 4]
    assert calque.vmap(lambda t: t["x"], in_axes=({"x": 0, "f": None},))(
        {"x": xs, "f": max}
    ).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        calque.vmap(f)(xs, "name")


@pytest.mark.parametrize("f", (jnp.sort, lambda x: lax.top_k(x, 0)[0], lambda x: x[jnp.argsort(x)]))
def test_gradients_of_nothing(f):
    g = calque.grad(lambda x: f(x).sum())
    for run in (g, calque.jit(g)):
        assert run(jnp.zeros(0)).shape == (0,)
    assert calque.vmap(g)(jnp.zeros((2, 0))).shape == (2, 0)
    assert calque.grad(lambda x: jnp.sort(x, 0).sum())(jnp.zeros((0, 3))).shape == (0, 3)
    assert jnp.gradient(jnp.zeros((0, 3)), axis=1).shape == (0, 3)


def test_logarithms_of_the_gamma_function_near_zero():
    with calque.enable_x64():
        for x in (1e-300, 1e-170, 1e-100, 1e-21, 1e-19, 1e-10):
            expected = math.lgamma(-x)
            assert abs(float(lax.lgamma(np.float64(-x))) - expected) <= 2e-16 * abs(expected) * 2
        assert float(lax.lgamma(np.float64(-5e-324))) == pytest.approx(-math.log(5e-324))


NOTHING_TO_DO = {
    "repeat by counts": lambda x: jnp.repeat(x, np.array([1, 1]), axis=0),
    "repeat by a list": lambda x: jnp.repeat(x, [1, 2], axis=1),
    "full": lambda x: jnp.full(x.shape, x),
    "full_like": lambda x: jnp.full_like(x, x),
    "bitcast": lambda x: lax.bitcast_convert_type(x, x.dtype),
    "broadcast": lambda x: jnp.broadcast_to(x, x.shape),
    "reshape": lambda x: jnp.reshape(x, x.shape),
    "astype": lambda x: jnp.astype(x, x.dtype),
    "squeeze": jnp.squeeze,
    "transpose": lambda x: jnp.transpose(x, (0, 1)),
}


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_what_has_nothing_to_do_gives_an_array_nevertheless(name):
    x = np.array([[1, 2], [3, 4]], np.float32)
    out = NOTHING_TO_DO[name](x)
    assert isinstance(out, calque.Array)
    expected = np.repeat(x, [1, 2], axis=1) if name == "repeat by a list" else x
    np.testing.assert_array_equal(out, expected)


def test_updates_by_bools_of_python_where_promotion_is_strict():
    with calque.numpy_dtype_promotion("strict"):
        assert jnp.arange(3).at[1].set(True).tolist() == [0, 1, 2]
        assert jnp.arange(3).at[1].add(True).tolist() == [0, 2, 2]
        for wrong in (np.bool_(True), jnp.array(True)):
            with pytest.raises(calque.dtypes.TypePromotionError):
                jnp.arange(3).at[1].set(wrong)
        with pytest.raises(calque.dtypes.TypePromotionError):
            jnp.arange(3.0).at[1].set(True)
