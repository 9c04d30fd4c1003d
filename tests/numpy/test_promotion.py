"""What the settings for promotion forbid: operations that the user asks for, in any way; not what
the library does for its own ends."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.scipy import special

X, Y = jnp.ones((2, 3)), jnp.ones(3)

ASKED = {
    "operator": lambda: X - Y,
    "reflected operator": lambda: np.ones(3, np.float32) - X,
    "function": lambda: jnp.arctan2(X, Y),
    "ufunc": lambda: jnp.subtract(X, Y),
    "clip": lambda: jnp.clip(X, Y, 2 * Y),
    "inside jit": lambda: jax.jit(lambda x, y: x * y)(X, Y),
    "inside grad": lambda: jax.grad(lambda x: (x * Y).sum())(X),
    "inside a loop": lambda: jax.lax.fori_loop(0, 2, lambda i, x: x + Y, X),
}
OWN = {
    "resize": lambda: jax.image.resize(X, (4, 4), "linear"),
    "var": lambda: jnp.var(X, axis=1),
    "cov": lambda: jnp.cov(X),
    "vander": lambda: jnp.vander(Y),
    "softmax": lambda: jax.nn.softmax(X),
    "layer of jit": lambda: jax.jit(lambda x: jnp.std(x, axis=0))(X),
    "pad": lambda: jnp.pad(X, 1, mode="linear_ramp"),
    "interp": lambda: jnp.interp(X, Y, Y),
    "median": lambda: jnp.median(X, axis=0),
}


@pytest.mark.parametrize("name", ASKED)
def test_ranks_that_the_user_mixes(name):
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        ASKED[name]()


@pytest.mark.parametrize("name", OWN)
def test_ranks_that_the_library_mixes(name):
    want = OWN[name]()
    with jax.numpy_rank_promotion("raise"):
        assert jnp.array_equal(OWN[name](), want)


def test_dtypes():
    i, Z = jnp.arange(3), X * 1j
    with jax.numpy_dtype_promotion("strict"):
        for mixed in (lambda: Y + i, lambda: jnp.add(Y, i), lambda: jnp.concatenate([Y, i])):
            with pytest.raises(jax.dtypes.TypePromotionError, match="int32"):
                mixed()
        assert (Y + 1).tolist() == [2, 2, 2]
        jnp.pad(Z, 1, mode="linear_ramp")
        jnp.median(X)
        jax.image.resize(X, (4, 4), "cubic")


class Holder:
    """Holds a value, answers for it, and passes on what it is asked."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)


OF_HOLDERS = {
    "operator": lambda h, y: y + h,
    "ufunc": lambda h, y: jnp.maximum(h, y),
    "ufunc of one": lambda h, y: jnp.sin(h),
    "lax": lambda h, y: lax.mul(h, y),
    "lax of one": lambda h, y: lax.neg(h),
    "one part": lambda h, y: lax.concatenate([h], 0),
    "the same shape": lambda h, y: lax.reshape(h, (3,)),
    "the same type": lambda h, y: lax.convert_element_type(h, jnp.float32),
    "a list": lambda h, y: jnp.array([h, y, h]),
    "positions": lambda h, y: lax.dynamic_slice(y, jnp.argmax(h)[None], (2,)),
    "a sum": lambda h, y: jnp.sum(h) + y,
    "a product": lambda h, y: jnp.einsum("i,i->", h, y),
    "a function": lambda h, y: jax.nn.softmax(h),
    "a choice": lambda h, y: jnp.where(y > 0, h, y),
    "a division": lambda h, y: y // Holder(jnp.exp(h)),
}


@pytest.mark.parametrize("name", OF_HOLDERS)
def test_objects_that_hold_a_value(name):
    """They have an `aval` as well, and still are no operands of primitives."""
    f = OF_HOLDERS[name]
    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, -1.0, 0.5])
    pair = jnp.stack([x, y])

    def held(x, y):
        return f(Holder(x), y)

    want, got = f(x, y), held(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(jax.jit(held)(x, y), want, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda y: f(Holder(x), y))(y), want, rtol=1e-6)
    for axes in ((0, None), (None, 0), (0, 0)):
        args = [pair if a == 0 else v for a, v in zip(axes, (x, y))]
        mapped = jax.vmap(held, axes)(*args)
        np.testing.assert_allclose(mapped, jax.vmap(f, axes)(*args), rtol=1e-6)
    ones = (jnp.ones(3), jnp.ones(3))
    for a, b in zip(jax.jvp(held, (x, y), ones), jax.jvp(f, (x, y), ones)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jax.scipy.fft.dct(x),
        lambda x: jax.scipy.fft.idctn(x, type=3),
        lambda x: jax.scipy.special.wofz(x),
        lambda x: jax.scipy.linalg.sqrtm(x),
        lambda x: jax.scipy.linalg.solve_sylvester(x, x, x),
        lambda x: jax.scipy.linalg.toeplitz(x[0], 2.0),
        lambda x: jnp.cov(x.astype(complex)),
        lambda x: jnp.corrcoef(x.astype(complex)),
    ],
)
def test_functions_bring_their_own_numbers_together_under_strict_promotion(call):
    """What a function needs inside, complex numbers for real ones, is no business of the flag."""
    x = jnp.float32([[3.0, 1.0, 0.5], [1.0, 4.0, 1.0], [0.5, 1.0, 5.0]])
    with jax.numpy_dtype_promotion("strict"):
        found = call(x)
    np.testing.assert_array_equal(found, call(x))


def test_weak_types_of_functions_of_two():
    """A Python number beside an array of integers or bools."""
    whole, flags = jnp.arange(2), jnp.array([True, False])
    assert jnp.heaviside(2.0, whole).weak_type and not jnp.heaviside(2, whole).weak_type
    assert jnp.logaddexp(2.0, whole).weak_type and not jnp.logaddexp2(2.0, whole).weak_type
    assert not jnp.gcd(2, flags).weak_type and not jnp.lcm(flags, 2).weak_type
    assert jnp.logaddexp2(2.0, jnp.asarray(1.0)).weak_type


WEAK = {
    "mean": (lambda x: jnp.mean(x), False),
    "average": (lambda x: jnp.average(x), False),
    "count of an average": (lambda x: jnp.average(x, returned=True)[1], False),
    "frexp": (lambda x: jnp.frexp(x)[0], False),
    "ldexp": (lambda x: jnp.ldexp(x, 2), False),
    "round": (lambda x: jnp.round(x, 2), True),
    "round to tens": (lambda x: jnp.round(x, -1), True),
    "round to nothing": (lambda x: jnp.round(x, -50), True),
    "round of complex numbers": (lambda x: jnp.round(x + 1j, 2), True),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_functions_of_numbers(name):
    f, weak = WEAK[name]
    for x in (2.5, jnp.asarray(2.5)):
        for g in (f, jax.jit(f)):
            out = g(x)
            assert isinstance(out, jax.Array) and out.weak_type == weak
            assert out.dtype == (np.complex64 if "complex" in name else np.float32)


WEAK_ARRAYS = {  # whether what functions make of a weak array is weak
    "rad2deg": (jnp.rad2deg, False),
    "sinc": (jnp.sinc, False),
    "logit": (special.logit, False),
    "hypot": (lambda x: jnp.hypot(x, 2.0), False),
    "heaviside": (lambda x: jnp.heaviside(x, x), False),
    "logaddexp2": (lambda x: jnp.logaddexp2(x, 1.0), False),
    "rel_entr": (lambda x: special.rel_entr(x, 2.0), False),
    "rel_entr of a number": (lambda x: special.rel_entr(2.0, x), True),
    "kl_div": (lambda x: special.kl_div(x, x), False),
    "logaddexp": (lambda x: jnp.logaddexp(x, 1.0), True),
    "softplus": (jax.nn.softplus, True),
    "remainder": (lambda x: jnp.remainder(x, 2.0), True),
    "floor_divide": (lambda x: jnp.floor_divide(x, 2.0), True),
    "fraction": (lambda x: jnp.modf(x)[0], True),
    "reciprocal": (jnp.reciprocal, True),
    "imag": (jnp.imag, True),
    "rounded complex numbers": (lambda x: jnp.round(x + 1j, 1), False),
    "sort_complex": (lambda x: jnp.sort_complex(x + 1j), False),
    "logical_not": (jnp.logical_not, False),
    "logical_and": (lambda x: jnp.logical_and(x, 1), False),
    "isreal": (jnp.isreal, False),
    "isnan": (lambda x: jnp.isnan(lax.full_like(x, 2, int)), False),
    "isnan of weak integers": (lambda x: jnp.isnan(lax.broadcast(2, (3,))), True),
    "power of whole numbers": (lambda x: lax.pow(x, np.arange(3)), False),
}


@pytest.mark.parametrize("name", WEAK_ARRAYS)
def test_constants_make_results_of_weak_arrays_strong(name):
    f, weak = WEAK_ARRAYS[name]
    x = lax.broadcast(0.5, (3,))
    assert x.weak_type
    for g in (f, jax.jit(f)):
        assert g(x).weak_type == weak


def test_truths_of_weak_numbers_are_weak():
    x = jnp.asarray(2.5)
    for f in (jnp.isnan, jnp.iscomplex, jnp.isreal, jnp.logical_not):
        assert f(x).weak_type and f(x).dtype == bool
    assert jnp.logical_or(x, jnp.asarray(True)).weak_type
    assert not jnp.logical_or(x, jnp.ones(2, bool)).weak_type
    assert not jnp.logical_or(jnp.float32(1), 2.0).weak_type
