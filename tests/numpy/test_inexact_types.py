"""Which floating type functions of integers give when 64-bit types are enabled."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy import special

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
