"""Which floating type functions of integers give when 64-bit types are enabled."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.scipy import special, stats

SHORT = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")
LONG = ("int64", "uint64")
FUNCTIONS = {
    **{
        name: getattr(jnp, name)
        for name in (
            "sin", "exp", "sqrt", "cbrt", "log1p", "tanh", "deg2rad", "mean", "var", "std",
            "median", "average", "sinc", "exp2", "nanmean", "nanvar", "nanmedian",
        )
    },
    "divide": lambda x: x / x,
    "arctan2": lambda x: jnp.arctan2(x, x),
    "hypot": lambda x: jnp.hypot(x, x),
    "logaddexp": lambda x: jnp.logaddexp(x, x),
    "interp": lambda x: jnp.interp(x, x, x),
    "linspace": lambda x: jnp.linspace(x, x, 3),
    "norm": jnp.linalg.norm,
    "quantile": lambda x: jnp.quantile(x, 0.5),
    "quantile of a double": lambda x: jnp.quantile(x, np.float64(0.5)),
    "percentile": lambda x: jnp.percentile(x, 50),
    "histogram": lambda x: jnp.histogram(x)[1],
    "histogram with edges": lambda x: jnp.histogram(x, np.array([0.0, 1.0]))[1],
    "cov": jnp.cov,
    "gammaln": special.gammaln,
    "erf": special.erf,
    "fft": lambda x: jnp.fft.fft(x).real,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_integers_become_single_precision(name):
    f = FUNCTIONS[name]
    with calque.enable_x64():
        for dtype in (*SHORT, *LONG):
            expected = "float64" if dtype in LONG else "float32"
            for g in (f, calque.jit(f)):
                assert g(jnp.ones(3, dtype)).dtype == expected, dtype
        for dtype in ("float32", "float64"):
            assert f(jnp.ones(3, dtype)).dtype == dtype
    for dtype in SHORT:
        assert f(jnp.ones(3, dtype)).dtype == "float32", dtype


def test_python_numbers_are_long():
    with calque.enable_x64():
        assert jnp.sin(1).dtype == jnp.sin(1.0).dtype == "float64"
        assert jnp.sin(True).dtype == "float32"
        assert (jnp.int32(1) / 2).dtype == "float32"
        assert jnp.sin(jnp.asarray(1)).dtype == "float64"


def test_positions_are_short():
    with calque.enable_x64():
        for dtype in ("int32", "float64"):
            x = jnp.ones(3, dtype)
            assert jnp.searchsorted(x, x).dtype == jnp.digitize(x, x).dtype == "int32"


def test_types_that_stay():
    with calque.enable_x64():
        assert jnp.cumulative_prod(jnp.ones(3, "int8")).dtype == "int8"
        assert jnp.cumulative_sum(jnp.ones(3, "int8")).dtype == "int64"
        assert jnp.gcd(jnp.ones(3, "int8"), jnp.ones(3, bool)).tolist() == [1, 1, 1]
        assert jnp.left_shift(True, True).dtype == jnp.right_shift(True, True).dtype == "int32"


def test_types_of_their_own():
    with calque.enable_x64():
        assert jnp.rint(jnp.ones(3, "int32")).dtype == "float64"
        assert jnp.square(True).dtype == jnp.power(jnp.asarray(True), True).dtype == "int32"


def test_integers_that_become_the_default_float():
    with calque.enable_x64():
        ints = jnp.ones(3, "int8")
        assert jnp.linalg.vector_norm(ints).dtype == "float64"
        assert jnp.unwrap(ints, period=0.5).dtype == jnp.unwrap(ints).dtype == "float64"
        assert stats.norm.ppf(jnp.float32(0.5)).dtype == "float64"
        assert stats.norm.isf(jnp.float32(0.5)).dtype == "float64"
    assert jnp.linalg.vector_norm(jnp.ones(3, "int8")).dtype == "float32"


def test_integers_that_count_and_places():
    with calque.enable_x64():
        a = jnp.eye(2, dtype="float32")
        assert jnp.linalg.matrix_rank(a).dtype == "int64"
        assert jnp.linalg.lstsq(a, a)[2].dtype == "int64"
        assert jnp.argpartition(jnp.arange(3), 1).dtype == "int32"
        assert lax.shape_as_value((2, 3)).dtype == lax.shape_as_value(()).dtype == "int32"
        long = calque.ShapeDtypeStruct((2**31 - 1,), "float32")
        longer = calque.ShapeDtypeStruct((2**31,), "float32")
        places = [calque.eval_shape(jnp.searchsorted, a, 1.0).dtype for a in (long, longer)]
        assert places == ["int32", "int64"]


def test_a_triangle_of_ones_is_single():
    with calque.enable_x64():
        assert jnp.tri(3).dtype == "float32"
        assert jnp.tri(3, dtype=float).dtype == "float64"


@pytest.mark.parametrize("exponent", [np.int32(3), np.array(3), jnp.int32(3), 3])
def test_a_known_exponent_does_not_widen_integers(exponent):
    x = jnp.array([1, 2, 200], "uint8")
    for f in (lambda v: v**exponent, calque.jit(lambda v: jnp.power(v, exponent))):
        assert f(x).dtype == "uint8"
        assert f(x).tolist() == [1, 8, 200**3 % 256]
    assert (x ** np.array([3, 3, 3])).dtype == "int32"


def test_places_of_any_width_where_promotion_is_strict():
    with calque.enable_x64(), calque.numpy_dtype_promotion("strict"):
        for dtype in ("int32", "uint8", "int64"):
            out = jnp.insert(jnp.zeros(3), jnp.array([1, 2], dtype), jnp.ones(2))
            assert out.tolist() == [0, 1, 0, 1, 0]
