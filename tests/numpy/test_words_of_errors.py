"""Errors of array functions: their classes, and the words that programs look for."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
C = X.astype(np.complex64)

ERRORS = {
    "array + list": (lambda: jnp.ones(2) + [1, 2], TypeError, "'ArrayImpl' and 'list'"),
    "dict - array": (lambda: {} - jnp.ones(2), TypeError, "'dict' and 'ArrayImpl'"),
    "array < set": (lambda: jnp.ones(2) < {1}, TypeError, "'ArrayImpl' and 'set'"),
    "array == tuple": (lambda: jnp.ones(2) == (1, 2), TypeError, "'ArrayImpl' and 'tuple'"),
    "complex arange": (lambda: jnp.arange(2j), ValueError, "complex start/stop/step"),
    "clip": (lambda: jnp.clip(C, 0), ValueError, "Complex values have no ordering"),
    "hypot": (lambda: jnp.hypot(C, C), ValueError, "not well defined for complex"),
    "fewer dimensions": (lambda: jnp.broadcast_to(X, (3,)), ValueError, "fewer dimensions"),
    "axis twice": (lambda: jnp.expand_dims(X, (1, 1)), ValueError, "repeated axis"),
    "diagonal": (lambda: jnp.trace(X, axis1=1, axis2=-1), ValueError, "can not be same"),
    "tensordot lengths": (lambda: jnp.tensordot(X, X, ([0], [0, 1])), TypeError, "equal length"),
    "tensordot names": (lambda: jnp.tensordot(X, X, ("a", "b")), TypeError, "either ints"),
    "tensordot text": (lambda: jnp.tensordot(X, X, "ab"), TypeError, "an int, a pair of ints"),
    "shape of two": (lambda: jnp.zeros(2, 3), TypeError, r"when you meant .*zeros\(\(2, 3\)\)"),
    "shape of floats": (lambda: jnp.ones(1.5), TypeError, "concrete values of integer type"),
    "masked operand": (
        lambda: calque.jit(jnp.sin)(np.ma.array([1.0, 2.0], mask=[0, 1])),
        ValueError,
        "masked arrays are not supported",
    ),
    "records": (lambda: jnp.array(3, [("a", "<i4")]), TypeError, "only supports number, bool"),
    "positions of array": (lambda: jnp.array(1, None, 1, 2, 3, 4), TypeError, "at most 5"),
    "twice given": (lambda: jnp.array(1, None, True, copy=False), TypeError, "multiple values"),
    "integer covariance": (lambda: jnp.cov(X, dtype=int), ValueError, "cov: dtype must be"),
    "integer correlation": (lambda: jnp.corrcoef(X, dtype=int), ValueError, "corrcoef: dtype"),
    "where of ints": (lambda: jnp.mean(X, where=np.ones(3, int)), ValueError,
                      "jnp.mean: where must be"),
    "where of ints, without nans": (
        lambda: jnp.nanstd(X, where=np.ones(3, int)),
        ValueError,
        "jnp.nanstd: where must be",
    ),
    "variance of complex numbers": (lambda: jnp.var(C, dtype=np.float32), ValueError, "complex"),
    "integer too long": (lambda: jnp.array([2**70]), OverflowError, "Python int too large"),
    "vector as initial": (lambda: jnp.max(X, initial=np.ones(3)), ValueError, "must be a scalar"),
    "in of a matrix": (lambda: 1 in jnp.ones((2, 2)), ValueError, "must be one-dimensional"),
    "vector in": (lambda: np.ones(2) in jnp.ones(2), ValueError, "must be a scalar"),
    "text in": (lambda: "a" in jnp.ones(2), TypeError, "unsupported operand type"),
    "fft axes": (lambda: jnp.fft.fft(X, axis=[0]), ValueError, r"calque.numpy.fft.fftn. Got axis"),
    "hfft axes": (lambda: jnp.fft.hfft(X, axis=(0,)), ValueError, r"fft.hfftn. Got axis = \(0,\)"),
    "interp of complex": (lambda: jnp.interp(C, X[0], X[0]), ValueError, "complex x values"),
    "traced slice": (
        lambda: calque.jit(lambda a: jnp.mgrid[a:3])(0),
        calque.errors.ConcretizationTypeError,
        "slice start of jnp.mgrid",
    ),
    "traced text": (
        lambda: calque.jit(lambda x: x.tobytes())(X),
        calque.errors.ConcretizationTypeError,
        r"The tobytes\(\) method was called on traced array",
    ),
    "narrow floats": (
        lambda: jnp.ones(2, "float8_e4m3fn") + jnp.ones(2),
        calque.dtypes.TypePromotionError,
        "8-bit floats do not support implicit promotion",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fun, error, words = ERRORS[name]
    with pytest.raises(error, match=words):
        fun()


WARNINGS = {
    "positions": (lambda: jnp.array(X, None, False), DeprecationWarning, "by position"),
    "size of a list": (lambda: jnp.size([1, 2]), DeprecationWarning, "size requires ndarray"),
    "complex to real": (lambda: jnp.array(C).astype(float), DeprecationWarning, "complex to real"),
    "update": (
        lambda: jnp.arange(3).at[0].set(np.float32(1)),
        FutureWarning,
        "scatter inputs have incompatible types",
    ),
    "floats as classes": (
        lambda: calque.nn.one_hot(jnp.ones(2), 3),
        DeprecationWarning,
        "should be integer-typed",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name):
    fun, category, words = WARNINGS[name]
    with pytest.warns(category, match=words):
        fun()


def test_rank_promotion_is_told_of():
    with calque.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="Following NumPy"):
        jnp.ones(2) + jnp.ones((1, 2))


def test_a_named_tuple_may_multiply_arrays():
    class Scaled(tuple):
        def __rmul__(self, other):
            return ("scaled", other.shape)

    assert jnp.ones(3) * Scaled() == ("scaled", (3,))


STRICT = {
    "bool + int": lambda: jnp.ones(2, bool) + 1,
    "int * float": lambda: jnp.arange(2) * 1.5,
    "float + int array": lambda: jnp.ones(2) + jnp.arange(2),
    "of another size": lambda: jnp.ones(4) + jnp.arange(4),
}


@pytest.mark.parametrize("name", STRICT)
def test_strict_promotion_keeps_the_type_that_a_number_meets(name):
    with calque.numpy_dtype_promotion("strict"):
        for _ in range(3):  # also when machine code might learn it
            with pytest.raises(
                calque.dtypes.TypePromotionError, match="jax_numpy_dtype_promotion=strict"
            ):
                STRICT[name]()
        assert (jnp.arange(2) + 1).tolist() == [1, 2]
        # what the library brings together for its own ends is no business of the user's
        assert jnp.pad(jnp.ones(2, np.complex64), 1, "linear_ramp").shape == (4,)
        assert calque.lax.dot(jnp.ones(2, np.float16), jnp.ones(2, np.int16)) == 2
