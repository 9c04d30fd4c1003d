"""What the help of universal functions says: a table of sentences and examples, and the argument
lists that those of a kind share."""

from __future__ import annotations

from typing import Final

from calque.numpy.descriptions.parts import described, entries

__all__ = ["of_object", "of_ufunc"]

_TABLE: Final = """
negative: The numbers with the opposite sign. Unsigned integers wrap around; bools are refused.
>>> jnp.negative(jnp.array([1.0, -2.0]))
Array([-1.,  2.], dtype=float32)

positive: The numbers as they are, `+x`.
>>> jnp.positive(jnp.array([1, -2]))
Array([ 1, -2], dtype=int32)

absolute: The absolute value; of a complex number, its modulus.
= An array of the same shape and dtype; of real numbers for complex ones.
>>> jnp.absolute(jnp.array([-1.5, 2.0]))
Array([1.5, 2. ], dtype=float32)

fabs: The absolute value in floating point. Complex numbers are refused: `absolute` takes them.
>>> jnp.fabs(jnp.array([-3, 4]))
Array([3., 4.], dtype=float32)

sign: The sign: -1, 0 or 1; `x / abs(x)` for complex numbers, nan for nan.
>>> jnp.sign(jnp.array([-2.5, 0.0, 4.0]))
Array([-1.,  0.,  1.], dtype=float32)

floor: The largest whole number that is not above `x`. Integers stay integers.
>>> jnp.floor(jnp.array([-1.5, 1.5]))
Array([-2.,  1.], dtype=float32)

ceil: The smallest whole number that is not below `x`. Integers stay integers.
>>> jnp.ceil(jnp.array([-1.5, 1.5]))
Array([-1.,  2.], dtype=float32)

rint: The nearest whole number; halves go to the even one. Integers become floats.
= An array of the same shape, of floats, or complex numbers where `x` is.
>>> jnp.rint(jnp.array([0.5, 1.5, 2.7]))
Array([0., 2., 3.], dtype=float32)

trunc: The whole number next to `x` on the side of 0. Integers stay integers; complex numbers are
refused.
>>> jnp.trunc(jnp.array([-1.7, 1.7]))
Array([-1.,  1.], dtype=float32)

exp: e to the power `x`.
>>> jnp.exp(jnp.array([0.0, 1.0]))
Array([1.       , 2.7182817], dtype=float32)

exp2: 2 to the power `x`.
>>> jnp.exp2(jnp.array([0.0, 1.0, 3.0]))
Array([1., 2., 8.], dtype=float32)

expm1: `exp(x) - 1`, without the loss of digits that the subtraction has where `x` is near 0.
>>> jnp.expm1(jnp.array([0.0, 1e-5]))
Array([0.000000e+00, 1.000005e-05], dtype=float32)

log: The natural logarithm; -inf at 0 and nan below it. Complex numbers get the principal value.
>>> jnp.log(jnp.array([1.0, 10.0]))
Array([0.       , 2.3025851], dtype=float32)

log1p: `log(1 + x)`, without the loss of digits that the addition has where `x` is near 0.
>>> jnp.log1p(jnp.array([0.0, 1e-5]))
Array([0.00000e+00, 9.99995e-06], dtype=float32)

log2: The logarithm to the base 2; -inf at 0 and nan below it.
>>> jnp.log2(jnp.array([1.0, 8.0]))
Array([0., 3.], dtype=float32)

log10: The logarithm to the base 10; -inf at 0 and nan below it.
>>> jnp.log10(jnp.array([1.0, 100.0]))
Array([0., 2.], dtype=float32)

sin: The sine of angles in radians.
>>> jnp.sin(jnp.array([0.0, jnp.pi / 2]))
Array([0., 1.], dtype=float32)

cos: The cosine of angles in radians.
>>> jnp.cos(jnp.array([0.0, jnp.pi]))
Array([ 1., -1.], dtype=float32)

tan: The tangent of angles in radians.
>>> jnp.tan(jnp.array([0.0, 1.0]))
Array([0.       , 1.5574079], dtype=float32)

sinh: The hyperbolic sine, `(exp(x) - exp(-x)) / 2`.
>>> jnp.sinh(jnp.array([0.0, 1.0]))
Array([0.       , 1.1752012], dtype=float32)

cosh: The hyperbolic cosine, `(exp(x) + exp(-x)) / 2`.
>>> jnp.cosh(jnp.array([0.0, 1.0]))
Array([1.       , 1.5430806], dtype=float32)

tanh: The hyperbolic tangent, between -1 and 1.
>>> jnp.tanh(jnp.array([0.0, 1.0]))
Array([0.       , 0.7615942], dtype=float32)

arcsin: The angle in [-pi/2, pi/2] whose sine is `x`; nan for real numbers outside [-1, 1].
>>> jnp.arcsin(jnp.array([0.0, 1.0]))
Array([0.       , 1.5707964], dtype=float32)

arccos: The angle in [0, pi] whose cosine is `x`; nan for real numbers outside [-1, 1].
>>> jnp.arccos(jnp.array([1.0, 0.0]))
Array([0.       , 1.5707964], dtype=float32)

arctan: The angle in [-pi/2, pi/2] whose tangent is `x`; `arctan2` knows all four quadrants.
>>> jnp.arctan(jnp.array([0.0, 1.0]))
Array([0.       , 0.7853982], dtype=float32)

arcsinh: The number whose hyperbolic sine is `x`.
>>> jnp.arcsinh(jnp.array([0.0, 1.0]))
Array([0.       , 0.8813736], dtype=float32)

arccosh: The number from 0 up whose hyperbolic cosine is `x`; nan for real numbers below 1.
>>> jnp.arccosh(jnp.array([1.0, 2.0]))
Array([0.      , 1.316958], dtype=float32)

arctanh: The number whose hyperbolic tangent is `x`; infinite at -1 and 1, nan beyond.
>>> jnp.arctanh(jnp.array([0.0, 0.5]))
Array([0.        , 0.54930615], dtype=float32)

sqrt: The square root that is not negative; nan for real numbers below 0.
>>> jnp.sqrt(jnp.array([4.0, 2.0]))
Array([2.       , 1.4142135], dtype=float32)

cbrt: The cube root, which negative numbers have too.
>>> jnp.cbrt(jnp.array([8.0, -27.0]))
Array([ 2., -3.], dtype=float32)

square: `x * x`. Bools count as int32.
>>> jnp.square(jnp.array([2, -3]))
Array([4, 9], dtype=int32)

reciprocal: `1 / x`, in floating point for integers as well.
! Integers give floats, where NumPy divides them as integers.
>>> jnp.reciprocal(jnp.array([2, 4]))
Array([0.5 , 0.25], dtype=float32)

deg2rad: Angles in degrees as radians.
>>> jnp.deg2rad(jnp.array([90.0, 180.0]))
Array([1.5707964, 3.1415927], dtype=float32)

rad2deg: Angles in radians as degrees.
>>> jnp.rad2deg(jnp.array([jnp.pi, jnp.pi / 2]))
Array([180.,  90.], dtype=float32)

conjugate: The complex conjugate: the imaginary part with the opposite sign. Real numbers are
themselves.
>>> jnp.conjugate(jnp.array([1 + 2j, 3 - 1j]))
Array([1.-2.j, 3.+1.j], dtype=complex64)

real: The real part. Real numbers are themselves.
= An array of real numbers of the same shape: a value, not a view to write through.
>>> jnp.real(jnp.array([1 + 2j, 3 - 1j]))
Array([1., 3.], dtype=float32)

imag: The imaginary part, 0 for real numbers.
= An array of real numbers of the same shape: a value, not a view to write through.
>>> jnp.imag(jnp.array([1 + 2j, 3 - 1j]))
Array([ 2., -1.], dtype=float32)

isnan: Tells which elements are not a number. A complex number is nan if either part is.
= An array of bools of the same shape.
>>> jnp.isnan(jnp.array([1.0, jnp.nan]))
Array([False,  True], dtype=bool)

isinf: Tells which elements are infinite. A complex number is infinite if either part is.
= An array of bools of the same shape.
>>> jnp.isinf(jnp.array([1.0, -jnp.inf]))
Array([False,  True], dtype=bool)

isfinite: Tells which elements are neither infinite nor nan.
= An array of bools of the same shape.
>>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
Array([ True, False, False], dtype=bool)

isposinf: Tells which elements are positive infinity. Complex numbers are refused.
= An array of bools of the same shape.
>>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
Array([ True, False], dtype=bool)

isneginf: Tells which elements are negative infinity. Complex numbers are refused.
= An array of bools of the same shape.
>>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
Array([False,  True], dtype=bool)

signbit: Tells which elements have their sign bit set: negative numbers and -0.0.
= An array of bools of the same shape.
>>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
Array([ True,  True, False], dtype=bool)

logical_not: Tells which elements are 0 or false.
= An array of bools of the same shape.
>>> jnp.logical_not(jnp.array([0, 3]))
Array([ True, False], dtype=bool)

bitwise_not: Every bit inverted: `-x - 1` for signed integers, not for bools.
= An array of the same shape and dtype.
>>> jnp.bitwise_not(jnp.array([0, 5]))
Array([-1, -6], dtype=int32)

bitwise_count: How many bits of the absolute value are set.
= An array of uint8 of the same shape.
>>> jnp.bitwise_count(jnp.array([7, -8]))
Array([3, 1], dtype=uint8)

add: The sums `x + y`. For bools, whether either is true.
>>> jnp.add(jnp.array([1, 2]), 0.5)
Array([1.5, 2.5], dtype=float32, weak_type=True)

subtract: The differences `x - y`. Bools are refused: `logical_xor` is meant.
>>> jnp.subtract(jnp.array([5, 2]), 3)
Array([ 2, -1], dtype=int32)

multiply: The products `x * y`. For bools, whether both are true.
>>> jnp.multiply(jnp.arange(3), jnp.array([[1], [10]]))
Array([[ 0,  1,  2],
       [ 0, 10, 20]], dtype=int32)

true_divide: The quotients `x1 / x2`, in floating point also for integers; infinite or nan where
`x2` is 0.
>>> jnp.true_divide(jnp.array([1, 3]), 2)
Array([0.5, 1.5], dtype=float32)

floor_divide: The quotients rounded down, `x1 // x2`. Complex numbers are refused.
! Integers divided by 0 give a number without meaning, and no warning.
>>> jnp.floor_divide(jnp.array([7, -7]), 2)
Array([ 3, -4], dtype=int32)

remainder: What is left by `floor_divide`, with the sign of the divisor, as `x1 % x2` in Python.
Integers modulo 0 are 0, floats nan.
>>> jnp.remainder(jnp.array([7, -7]), 3)
Array([1, 2], dtype=int32)

fmod: What is left by a division rounded towards 0: it has the sign of `x1`, as in C.
>>> jnp.fmod(jnp.array([7, -7]), 3)
Array([ 1, -1], dtype=int32)

power: `x1` to the power `x2`. An exponent that is a Python int becomes repeated multiplication.
Integers to a negative power are 0, unless they are 1 or -1.
! Integers to a negative power are no error. There is no `out`, `where` or `dtype`.
>>> jnp.power(jnp.array([2, 3]), jnp.array([3, 2]))
Array([8, 9], dtype=int32)

maximum: The larger of two numbers; nan if either is. Complex numbers are compared by their real
parts, then by their imaginary parts.
>>> jnp.maximum(jnp.array([1.0, 5.0]), 3.0)
Array([3., 5.], dtype=float32)

minimum: The smaller of two numbers; nan if either is. Complex numbers are compared by their real
parts, then by their imaginary parts.
>>> jnp.minimum(jnp.array([1.0, 5.0]), 3.0)
Array([1., 3.], dtype=float32)

arctan2: The angle of the point with the ordinate `x1` and the abscissa `x2`, in [-pi, pi].
>>> jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([1.0, -1.0]))
Array([ 0.7853982, -2.3561945], dtype=float32)

nextafter: The next number after `x` that the dtype has, on the way to `y`.
>>> jnp.nextafter(jnp.array([1.0]), 2.0) - 1
Array([1.1920929e-07], dtype=float32)

bitwise_and: The bits that are set in both operands, `x & y`.
>>> jnp.bitwise_and(jnp.array([6, 5]), 3)
Array([2, 1], dtype=int32)

bitwise_or: The bits that are set in either operand, `x | y`.
>>> jnp.bitwise_or(jnp.array([6, 5]), 3)
Array([7, 7], dtype=int32)

bitwise_xor: The bits that are set in just one operand, `x ^ y`.
>>> jnp.bitwise_xor(jnp.array([6, 5]), 3)
Array([5, 6], dtype=int32)

left_shift: The bits of `x` moved `y` places up, `x << y`: times 2 to the power `y`.
>>> jnp.left_shift(jnp.array([1, 3]), 2)
Array([ 4, 12], dtype=int32)

bitwise_left_shift: The bits of `x` moved `y` places up, `x << y`: times 2 to the power `y`.
>>> jnp.bitwise_left_shift(jnp.array([1, 3]), 2)
Array([ 4, 12], dtype=int32)

right_shift: The bits of `x1` moved `x2` places down, `x1 >> x2`: over 2 to the power `x2`, rounded
down. Signed numbers keep their sign.
>>> jnp.right_shift(jnp.array([8, -8]), 2)
Array([ 2, -2], dtype=int32)

logical_and: Tells where both operands are true.
= An array of bools of the common shape.
>>> jnp.logical_and(jnp.array([0, 1, 2]), True)
Array([False,  True,  True], dtype=bool)

logical_or: Tells where either operand is true.
= An array of bools of the common shape.
>>> jnp.logical_or(jnp.array([0, 1, 2]), False)
Array([False,  True,  True], dtype=bool)

logical_xor: Tells where just one operand is true.
= An array of bools of the common shape.
>>> jnp.logical_xor(jnp.array([0, 1, 2]), True)
Array([ True, False, False], dtype=bool)

equal: Tells where `x` equals `y`; nan equals nothing.
= An array of bools of the common shape.
>>> jnp.equal(jnp.array([1, 2]), 2)
Array([False,  True], dtype=bool)

not_equal: Tells where `x` differs from `y`; nan differs from everything.
= An array of bools of the common shape.
>>> jnp.not_equal(jnp.array([1, 2]), 2)
Array([ True, False], dtype=bool)

less: Tells where `x` is less than `y`. Complex numbers are compared by their real parts, then by
their imaginary parts.
= An array of bools of the common shape.
>>> jnp.less(jnp.array([1, 2, 3]), 2)
Array([ True, False, False], dtype=bool)

less_equal: Tells where `x` is at most `y`. Complex numbers are compared by their real parts, then
by their imaginary parts.
= An array of bools of the common shape.
>>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
Array([ True,  True, False], dtype=bool)

greater: Tells where `x` is greater than `y`. Complex numbers are compared by their real parts, then
by their imaginary parts.
= An array of bools of the common shape.
>>> jnp.greater(jnp.array([1, 2, 3]), 2)
Array([False, False,  True], dtype=bool)

greater_equal: Tells where `x` is at least `y`. Complex numbers are compared by their real parts,
then by their imaginary parts.
= An array of bools of the common shape.
>>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
Array([False,  True,  True], dtype=bool)

copysign: The size of `x1` with the sign of `x2`, that of -0.0 included.
>>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
Array([-1., -2.], dtype=float32)

heaviside: The step function: 0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.
>>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
Array([0. , 0.5, 1. ], dtype=float32)

hypot: The length of the hypotenuse, `sqrt(x1**2 + x2**2)`, without overflow on the way. Complex
numbers are refused.
>>> jnp.hypot(jnp.array([3.0, 1e30]), jnp.array([4.0, 0.0]))
Array([5.e+00, 1.e+30], dtype=float32)

fmax: The larger of two numbers; where one is nan, the other.
>>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
Array([1. , 0.5], dtype=float32)

fmin: The smaller of two numbers; where one is nan, the other.
>>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.5)
Array([0.5, 0.5], dtype=float32)

float_power: `x` raised to `y` in floating point, integers too.
! The floats are those of the promoted dtypes, float32 for integers, where NumPy takes float64.
>>> jnp.float_power(jnp.array([2, 3]), -1)
Array([0.5       , 0.33333334], dtype=float32)

spacing: The distance from `x` to the next float away from zero; of a float16, to the next above it.
>>> jnp.spacing(jnp.array([1.0, 1e6]))
Array([1.1920929e-07, 6.2500000e-02], dtype=float32)

sinc: `sin(pi x) / (pi x)`, and 1 at 0, where derivatives are right as well.
>>> jnp.sinc(jnp.array([0.0, 0.5]))
Array([1.        , 0.63661975], dtype=float32)

i0: The modified Bessel function of the first kind and order 0. Complex numbers are refused.
>>> jnp.i0(jnp.array([0.0, 1.0]))
Array([1.       , 1.2660658], dtype=float32)

logaddexp: `log(exp(x) + exp(y))`, without overflow: the sum of numbers that are kept as logarithms.
>>> jnp.logaddexp(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
Array([6.9314718e-01, 1.0006932e+03], dtype=float32)

logaddexp2: `log2(2**x + 2**y)`, without overflow: the sum of numbers that are kept as logarithms.
>>> jnp.logaddexp2(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
Array([1.000e+00, 1.001e+03], dtype=float32)

iscomplex: Tells which elements have an imaginary part other than 0.
= An array of bools of the same shape.
>>> jnp.iscomplex(jnp.array([1 + 0j, 1 + 2j]))
Array([False,  True], dtype=bool)

isreal: Tells which elements have no imaginary part, or 0 as one.
= An array of bools of the same shape.
>>> jnp.isreal(jnp.array([1 + 0j, 1 + 2j]))
Array([ True, False], dtype=bool)
"""

# promotion of the operands -> what they may be, and what comes back
_KINDS: Final = {
    "promote_dtypes": ("", "the dtype that the operands have together"),
    "promote_numeric": ("", "the dtype that the operands have together, an integer for bools"),
    "promote_inexact": ("; integers and bools count as floats", "floats or complex numbers"),
    "promote_inexact_strong": (
        "; integers and bools count as floats",
        "floats",
    ),
    "_bools": ("; anything but 0 is true", "bools"),
    "_integers": (" of integers or bools", "the dtype that the operands have together"),
    "_shifted": (" of integers or bools", "the dtype that the operands have together"),
}


_ENTRIES: Final = entries(_TABLE)


def of_ufunc(name: str, promotion: str, parameters: tuple[str, ...], with_out: bool = False) -> str:
    """The help of a universal function whose operands have these names and this promotion."""
    does, returns, differs, example = _ENTRIES[name]
    operands, result = _KINDS[promotion]
    several = len(parameters) > 1
    arguments = (
        f"{', '.join(parameters)}: arrays or numbers{operands}. Their shapes broadcast."
        if several
        else f"{parameters[0]}: an array or a number{operands}."
    )
    if with_out:
        arguments += "\nout: must be None: arrays are immutable."
    shape = "the common shape" if several else "the same shape"
    absent = "where` or `dtype" if with_out else "out`, `where` or `dtype"
    return described(
        does,
        arguments,
        returns or f"An array of {shape}: {result}.",
        example,
        differs or f"There is no `{absent}`: arrays are immutable, `jnp.where` chooses.",
    )


def of_object(doc: str) -> str:
    """The help of a universal function that is an object, from that of the plain function."""
    head, _, rest = doc.partition("Returns:\n")
    returns, _, example = rest.partition("Differs from NumPy:\n")
    return (
        f"{head}    out, where: must be None: arrays are immutable, and `jnp.where` chooses.\n"
        f"Returns:\n{returns}Differs from NumPy:\n"
        "    There is no `dtype`. The method `at` returns its result and needs `inplace=False`.\n\n"
        f"{example.partition(chr(10) * 2)[2]}"
    )
