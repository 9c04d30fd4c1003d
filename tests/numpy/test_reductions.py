"""Sums and their like: axes, masks, initial values, dtypes; held against NumPy."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
MASK = RNG.random((4, 5)) < 0.6


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std"])
def test_as_numpy(name, axis):
    for keepdims in (False, True):
        want = getattr(np, name)(X, axis=axis, keepdims=keepdims)
        got = getattr(jnp, name)(X, axis=axis, keepdims=keepdims)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "any", "all"])
def test_masks(name):
    x = X > 0 if name in ("any", "all") else X
    want = getattr(np, name)(x, axis=2, where=MASK)
    np.testing.assert_allclose(
        getattr(jnp, name)(x, axis=2, where=MASK), want, rtol=1e-4, atol=1e-6
    )


def test_initial_values():
    assert float(jnp.sum(X[0, 0], initial=10)) == pytest.approx(float(X[0, 0].sum()) + 10, rel=1e-6)
    assert float(jnp.max(X, initial=99)) == 99 and jnp.max(X, where=MASK, initial=-9).shape == ()
    with pytest.raises(ValueError, match="one has to specify 'initial'"):
        jnp.max(X, where=MASK)
    with pytest.raises(ValueError, match="must be a scalar"):
        jnp.sum(X, initial=X[0])
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        jnp.max(jnp.zeros((0, 2)))


@pytest.mark.parametrize(
    "given, result",
    [("bool", "int32"), ("int8", "int32"), ("uint8", "uint32"), ("float16", "float16")],
)
def test_dtypes_of_sums(given, result):
    assert jnp.sum(jnp.ones(3, given)).dtype == jnp.dtype(result)
    assert jnp.sum(jnp.ones(3, given), promote_integers=False).dtype != jnp.dtype("uint32")
    assert jnp.sum(jnp.ones(3, given), dtype="float32").dtype == jnp.float32


def test_half_sums_are_made_in_single():
    x = np.full(4096, 0.1, np.float16)
    assert abs(float(jnp.sum(x)) - x.astype(np.float32).sum()) < 0.5
    assert abs(float(jnp.mean(x)) - 0.1) < 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_are_made_in_the_dtype_that_is_asked_for(dtype):
    def operations(**options):
        program = calque.make_jaxpr(lambda x: jnp.mean(x, **options))(jnp.ones(4, dtype))
        return [e.primitive.name for e in program.eqns]

    wide = ["convert_element_type", "reduce_sum", "div", "convert_element_type"]
    assert operations() == wide
    assert operations(dtype=dtype) == ["reduce_sum", "div"]
    large = jnp.full(64, 6e4, "float16")
    assert jnp.mean(large) == 6e4 and jnp.isinf(jnp.mean(large, dtype="float16"))


@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_degrees_of_freedom(ddof):
    np.testing.assert_allclose(jnp.var(X, 1, ddof=ddof), X.var(1, ddof=ddof), rtol=1e-5)
    np.testing.assert_allclose(jnp.std(X, 1, correction=ddof), X.std(1, ddof=ddof), rtol=1e-5)
    with pytest.raises(ValueError, match="can't be provided simultaneously"):
        jnp.var(X, ddof=1, correction=1)


@pytest.mark.parametrize("x64", [False, True])
def test_a_variance_that_is_asked_for_in_integers_is_a_weak_float(x64):
    with calque.enable_x64(x64):
        for got in (jnp.var(X, dtype="int32"), jnp.var(X, dtype="uint8", ddof=X.size)):
            assert got.dtype == (jnp.float64 if x64 else jnp.float32) and got.weak_type
        assert not jnp.var(X, dtype="float32").weak_type
    with pytest.raises(TypeError, match="bool"):
        jnp.nanvar(X, dtype=bool)


def test_variances_in_integers_are_computed_in_integers():
    """As NumPy's: the mean and the quotient lose their fractions."""
    x = np.array([2, 2, -2, 2, 2, 2, 2, 1], "int32")
    assert float(jnp.var(x, dtype="int32")) == np.var(x, dtype="int32") == 1
    got = jnp.var(x.reshape(2, 4), axis=1, ddof=1, dtype="int8", keepdims=True)
    mean = [[1], [1]]
    want = ((x.reshape(2, 4) - mean) ** 2).sum(1, keepdims=True) // 3
    np.testing.assert_array_equal(got, want)
    where = np.array([True, False] * 4)
    assert float(jnp.var(x, dtype="int32", where=where)) == 3
    assert np.isnan(jnp.var(x, dtype="int32", ddof=8))
    assert float(jnp.var(x, dtype="int32", mean=np.zeros(1))) == 3


def test_means_of_integers_that_stay_integers_lose_no_digits():
    x = np.array([2**31 + 3, 2**31 + 3], "uint32")
    big = np.array([2**24 + 1, 2**24 + 1], "int32")
    assert int(jnp.mean(big, dtype="int32")) == 2**24 + 1
    assert int(jnp.mean(x[:1], dtype="uint32")) == 2**31 + 3


def test_variance_of_complex_numbers_is_real():
    z = (X + 1j * X[::-1]).astype(np.complex64)
    assert jnp.var(z).dtype == jnp.float32
    np.testing.assert_allclose(jnp.var(z, 1), z.var(1), rtol=1e-5)


def test_positions():
    for axis in (None, 0, 1, -1):
        assert jnp.argmax(X, axis).tolist() == X.argmax(axis).tolist()
        assert jnp.argmin(X, axis, keepdims=True).shape == X.argmin(axis, keepdims=True).shape
    assert int(jnp.argmax(jnp.array([1.0, np.nan, 3.0]))) == 1
    with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
        jnp.argmax(jnp.zeros((0,)))


def test_running():
    np.testing.assert_allclose(jnp.cumsum(X, 1), X.cumsum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.cumprod(X), X.ravel().cumprod(), rtol=1e-4, atol=1e-6)


def test_members_of_mapped_axes():
    f = calque.vmap(lambda x: jnp.sum(x, axis=(0, "i")), axis_name="i")
    np.testing.assert_allclose(f(X[:, 0]), [X[:, 0].sum()] * 3, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="over the mapped axes"):
        calque.vmap(lambda x: jnp.prod(x, axis="i"), axis_name="i")(X)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_extremes_of_narrow_dtypes(dtype):
    """What leaves the others as they are exists in every dtype, also without an infinity."""
    x = jnp.array([[3, 1, 2], [0, 5, 4]]).astype(dtype)
    assert jnp.max(x).astype(int) == 5 and jnp.min(x, axis=1).astype(int).tolist() == [1, 0]
    assert jnp.nanmax(x, axis=0).astype(int).tolist() == [3, 5, 4]
    mask = np.array([[True, True, False], [False, False, False]])
    assert jnp.max(x, where=mask, initial=0).astype(int) == 3
    assert jnp.min(x, where=mask, initial=7).astype(int) == 1
    assert jnp.nanargmax(x) == 4


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "complex64"])
def test_mean_of_some_in_a_dtype(dtype, x64):
    """The number of elements is counted in the dtype that is asked for."""
    with calque.enable_x64(x64):
        x = jnp.arange(24.0).reshape(3, 8)
        assert jnp.mean(x, dtype=dtype, where=x < 5).dtype == dtype
        np.testing.assert_array_equal(jnp.mean(x, axis=1, dtype=dtype, where=x % 8 < 3)[:1], [1])


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_a_number_is_a_line_of_one(name: str) -> None:
    for number in (2.0, 3, True, np.float32(4)):
        for axis in (None, 0, -1):
            got = getattr(jnp, name)(number, axis)
            assert got.shape == (1,) and got[0] == number
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(2.0, axis=1)
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(jnp.float32(2), axis=0)


@pytest.mark.parametrize("ddof", [0, 0.5, 1, 1.5, 2])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_no_more_elements_than_are_taken_off(name: str, ddof: float) -> None:
    """A mask that leaves too few gives nan, not 0 / -1."""
    x = np.array([[1.0, 2.0, 4.0, 7.0]] * 3, "float32")
    where = np.array([[True, True, True, False], [True, False, False, False], [False] * 4])
    f = getattr(jnp, name)
    for g in (f, calque.jit(f, static_argnames=("axis", "ddof"))):
        got = g(x, axis=1, ddof=ddof, where=where)
        assert not np.isnan(got[0]) and np.isnan(got[2])
        assert np.isnan(got[1]) == (ddof >= 1)
        assert np.isnan(g(x[:, :2], axis=1, ddof=ddof, where=False)).all()


@pytest.mark.parametrize(
    "axes", [range(2), {0, 1}, [0, 1], np.array([0, 1]), jnp.array([0, -1])], ids=repr
)
def test_axes_stand_in_every_collection(axes: Any) -> None:
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    assert jnp.sum(x, axis=axes) == 15 and jnp.any(x, axis=axes)
    assert jnp.flip(x, axes).tolist() == x[::-1, ::-1].tolist()


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_a_weak_number_is_a_line_of_one(name):
    f = getattr(jnp, name)
    for x in (2.5, jnp.asarray(2.5)):
        for g in (f, lambda x: f(x, axis=0), calque.jit(lambda x: f(x, axis=-1))):
            assert g(x).tolist() == [2.5]
    with pytest.raises(ValueError, match="out of bounds"):
        f(jnp.float32(2.5), axis=0)
