"""Powers, exponentials, logarithms and angles, by elements."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import elementwise as _elementwise
from calque.numpy import ufuncs as _ufuncs
from calque.numpy.descriptions.writing import written

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "float_power",
    "i0",
    "log",
    "log1p",
    "log2",
    "log10",
    "rad2deg",
    "radians",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


@written(_ufuncs.exp)
def exp(x: ArrayLike, /) -> Array:
    """e to the power `x`.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.exp(jnp.array([0.0, 1.0]))
    Array([1.       , 2.7182817], dtype=float32)"""


@written(_ufuncs.exp2)
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power `x`.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.exp2(jnp.array([0.0, 1.0, 3.0]))
    Array([1., 2., 8.], dtype=float32)"""


@written(_ufuncs.expm1)
def expm1(x: ArrayLike, /) -> Array:
    """`exp(x) - 1`, without the loss of digits that the subtraction has where `x` is near 0.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.expm1(jnp.array([0.0, 1e-5]))
    Array([0.000000e+00, 1.000005e-05], dtype=float32)"""


@written(_ufuncs.log)
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm; -inf at 0 and nan below it. Complex numbers get the principal value.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.log(jnp.array([1.0, 10.0]))
    Array([0.       , 2.3025851], dtype=float32)"""


@written(_ufuncs.log1p)
def log1p(x: ArrayLike, /) -> Array:
    """`log(1 + x)`, without the loss of digits that the addition has where `x` is near 0.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.log1p(jnp.array([0.0, 1e-5]))
    Array([0.00000e+00, 9.99995e-06], dtype=float32)"""


@written(_ufuncs.log2)
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to the base 2; -inf at 0 and nan below it.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.log2(jnp.array([1.0, 8.0]))
    Array([0., 3.], dtype=float32)"""


@written(_ufuncs.log10)
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to the base 10; -inf at 0 and nan below it.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.log10(jnp.array([1.0, 100.0]))
    Array([0., 2.], dtype=float32)"""


@written(_ufuncs.sqrt)
def sqrt(x: ArrayLike, /) -> Array:
    """The square root that is not negative; nan for real numbers below 0.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.sqrt(jnp.array([4.0, 2.0]))
    Array([2.       , 1.4142135], dtype=float32)"""


@written(_ufuncs.cbrt)
def cbrt(x: ArrayLike, /) -> Array:
    """The cube root, which negative numbers have too. Complex numbers are refused.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.cbrt(jnp.array([8.0, -27.0]))
    Array([ 2., -3.], dtype=float32)"""


@written(_elementwise.float_power)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x` raised to `y` in floating point, integers too.

    Args:
        x, y: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape: floats or complex numbers.
    Differs from NumPy:
        Integers give float32 (float64 with x64), where NumPy takes float64.

    >>> jnp.float_power(jnp.array([2, 3]), -1)
    Array([0.5       , 0.33333334], dtype=float32)"""


@written(_ufuncs.sin)
def sin(x: ArrayLike, /) -> Array:
    """The sine of angles in radians.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.sin(jnp.array([0.0, jnp.pi / 2]))
    Array([0., 1.], dtype=float32)"""


@written(_ufuncs.cos)
def cos(x: ArrayLike, /) -> Array:
    """The cosine of angles in radians.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.cos(jnp.array([0.0, jnp.pi]))
    Array([ 1., -1.], dtype=float32)"""


@written(_ufuncs.tan)
def tan(x: ArrayLike, /) -> Array:
    """The tangent of angles in radians.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.tan(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5574079], dtype=float32)"""


@written(_ufuncs.arcsin)
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is `x`; nan for real numbers outside [-1, 1].

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arcsin(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)"""


asin = arcsin


@written(_ufuncs.arccos)
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, pi] whose cosine is `x`; nan for real numbers outside [-1, 1].

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arccos(jnp.array([1.0, 0.0]))
    Array([0.       , 1.5707964], dtype=float32)"""


acos = arccos


@written(_ufuncs.arctan)
def arctan(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is `x`; `arctan2` knows all four quadrants.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arctan(jnp.array([0.0, 1.0]))
    Array([0.       , 0.7853982], dtype=float32)"""


atan = arctan


@written(_ufuncs.arctan2)
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point with the ordinate `x1` and the abscissa `x2`, in [-pi, pi].

    Args:
        x1, x2: arrays or numbers; integers and bools count as floats. Their shapes broadcast.
    Returns:
        An array of the common shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([1.0, -1.0]))
    Array([ 0.7853982, -2.3561945], dtype=float32)"""


atan2 = arctan2


@written(_ufuncs.sinh)
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine, `(exp(x) - exp(-x)) / 2`.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.sinh(jnp.array([0.0, 1.0]))
    Array([0.       , 1.1752012], dtype=float32)"""


@written(_ufuncs.cosh)
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine, `(exp(x) + exp(-x)) / 2`.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.cosh(jnp.array([0.0, 1.0]))
    Array([1.       , 1.5430806], dtype=float32)"""


@written(_ufuncs.tanh)
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, between -1 and 1.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.tanh(jnp.array([0.0, 1.0]))
    Array([0.       , 0.7615942], dtype=float32)"""


@written(_ufuncs.arcsinh)
def arcsinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine is `x`.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arcsinh(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8813736], dtype=float32)"""


asinh = arcsinh


@written(_ufuncs.arccosh)
def arccosh(x: ArrayLike, /) -> Array:
    """The number from 0 up whose hyperbolic cosine is `x`; nan for real numbers below 1.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arccosh(jnp.array([1.0, 2.0]))
    Array([0.      , 1.316958], dtype=float32)"""


acosh = arccosh


@written(_ufuncs.arctanh)
def arctanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent is `x`; infinite at -1 and 1, nan beyond.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.arctanh(jnp.array([0.0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)"""


atanh = arctanh


@written(_ufuncs.deg2rad)
def deg2rad(x: ArrayLike, /) -> Array:
    """Angles in degrees as radians.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.deg2rad(jnp.array([90.0, 180.0]))
    Array([1.5707964, 3.1415927], dtype=float32)"""


radians = deg2rad


@written(_ufuncs.rad2deg)
def rad2deg(x: ArrayLike, /) -> Array:
    """Angles in radians as degrees.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.rad2deg(jnp.array([jnp.pi, jnp.pi / 2]))
    Array([180.,  90.], dtype=float32)"""


degrees = rad2deg


@written(_elementwise.sinc)
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)`, and 1 at 0, where derivatives are right as well.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape: floats or complex numbers.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.sinc(jnp.array([0.0, 0.5]))
    Array([1.        , 0.63661975], dtype=float32)"""


@written(_elementwise.i0)
def i0(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the first kind and order 0. Complex numbers are refused.

    Args:
        x: an array or a number; integers and bools count as floats.
    Returns:
        An array of the same shape, of floats.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.i0(jnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)"""
