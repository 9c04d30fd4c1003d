"""What the help of the universal functions that are objects says."""

from __future__ import annotations

from typing import Final

from calque.numpy.descriptions.parts import described, entries

__all__ = ["of_object"]

_TABLE: Final = """
negative: The numbers with the opposite sign. Unsigned integers wrap around; bools are refused.
= An array of the same shape and dtype.
>>> jnp.negative(jnp.array([1.0, -2.0]))
Array([-1.,  2.], dtype=float32)

add: The sums `x + y`. For bools, whether either is true.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.add(jnp.array([1, 2]), 0.5)
Array([1.5, 2.5], dtype=float32, weak_type=True)

subtract: The differences `x - y`. Bools are refused: `logical_xor` is meant.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.subtract(jnp.array([5, 2]), 3)
Array([ 2, -1], dtype=int32)

multiply: The products `x * y`. For bools, whether both are true.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.multiply(jnp.arange(3), jnp.array([[1], [10]]))
Array([[ 0,  1,  2],
       [ 0, 10, 20]], dtype=int32)

maximum: The larger of two numbers; nan if either is. Complex numbers are compared by their real
parts, then by their imaginary parts.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.maximum(jnp.array([1.0, 5.0]), 3.0)
Array([3., 5.], dtype=float32)

minimum: The smaller of two numbers; nan if either is. Complex numbers are compared by their real
parts, then by their imaginary parts.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.minimum(jnp.array([1.0, 5.0]), 3.0)
Array([1., 3.], dtype=float32)

bitwise_and: The bits that are set in both operands, `x & y`.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.bitwise_and(jnp.array([6, 5]), 3)
Array([2, 1], dtype=int32)

bitwise_or: The bits that are set in either operand, `x | y`.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.bitwise_or(jnp.array([6, 5]), 3)
Array([7, 7], dtype=int32)

bitwise_xor: The bits that are set in just one operand, `x ^ y`.
= An array of the common shape, of the dtype that the operands have together.
>>> jnp.bitwise_xor(jnp.array([6, 5]), 3)
Array([5, 6], dtype=int32)

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

logaddexp: `log(exp(x) + exp(y))`, without overflow: the sum of numbers that are kept as logarithms.
= Floats or complex numbers of the common shape.
>>> jnp.logaddexp(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
Array([6.9314718e-01, 1.0006932e+03], dtype=float32)

logaddexp2: `log2(2**x + 2**y)`, without overflow: the sum of numbers that are kept as logarithms.
= Floats or complex numbers of the common shape.
>>> jnp.logaddexp2(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0]))
Array([1.000e+00, 1.001e+03], dtype=float32)
"""
_ENTRIES: Final = entries(_TABLE)
_OPERANDS: Final = {
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), "integers or bools"),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), "truth values"),
}


def of_object(name: str, parameters: tuple[str, ...]) -> str:
    """The help of a universal function whose operands have these names."""
    does, returns, _, example = _ENTRIES[name]
    kind = _OPERANDS.get(name, "arrays or numbers")
    shapes = ". Their shapes broadcast" if len(parameters) > 1 else ""
    return described(
        does,
        f"{', '.join(parameters)}: {kind}{shapes}.\n"
        "out, where: must be None: arrays are immutable, and `jnp.where` chooses.",
        returns,
        example,
        "There is no `dtype`. The method `at` returns its result and needs `inplace=False`.",
    )
