"""Reductions with functions of the user's."""

import numpy as np
import pytest

from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.trace import trace_to_jaxpr
from calque.ops import reduce as R
from calque.ops.arithmetic import add, max, mul
from calque.ops.bits import bitwise_and
from tests.ops.helpers import check_batch, check_fun_jvp, run, same, traced, values

X, Y = values("float64", (3, 4)), values("float64", (3, 4), seed=1)


def compose(a, b):
    """Affine maps as pairs: associative, not commutative."""
    return add(mul(a[0], b[0]), 0.0), add(mul(a[1], b[0]), b[1])


def program(fun, dtype=np.float64):
    aval = ShapedArray((), np.dtype(dtype))
    return trace_to_jaxpr(lambda *xs: list(fun((xs[0], xs[1]), (xs[2], xs[3]))), [aval] * 4)


def expected(p, q, axis):
    p, q = np.moveaxis(p, axis, 0), np.moveaxis(q, axis, 0)
    state = np.ones_like(p[0]), np.zeros_like(p[0])
    for a, b in zip(p, q):
        state = state[0] * a, state[1] * a + b
    return state


def test_known_functions_have_their_own_reductions():
    x = values("float32", (3, 4))
    for fun, start, name in (
        (add, 0.0, "reduce_sum"),
        (mul, 1.0, "reduce_prod"),
        (max, -np.inf, "reduce_max"),
    ):
        closed = traced(lambda v: R.reduce(v, start, fun, (0,)), x)
        assert [e.primitive.name for e in closed.eqns] == [name]
    closed = traced(lambda v: R.reduce(v, 5.0, add, (0,)), x)
    assert [e.primitive.name for e in closed.eqns] == ["reduce_sum", "add"]
    same(run(lambda v: R.reduce(v, 5.0, add, (0,)), x)[0], x.sum(0) + np.float32(5), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_two_operands(axis):
    def fun(p, q):
        return list(R.reduce((p, q), (1.0, 0.0), compose, (axis,)))

    x, y = X.astype(np.float32), Y.astype(np.float32)
    for got, want in zip(run(fun, x, y), expected(x, y, axis)):
        same(got, want, rtol=1e-5)


def test_rules():
    one, none = np.array(1.0), np.array(0.0)
    for axes in ((0,), (1,), (0, 1)):

        def fun(p, q):
            return do.reduce(p, q, one, none, jaxpr=program(compose), dimensions=axes)

        check_fun_jvp(fun, X, Y, order=2)
    check_fun_jvp(
        lambda p, a: do.reduce(p, p, a, none, jaxpr=program(compose), dimensions=(0,)), X, one
    )


def test_batching():
    one, none = np.array(1.0, np.float32), np.array(0.0, np.float32)
    x, y = X.astype(np.float32), Y.astype(np.float32)
    only = [(0, 0, None, None), (0, None, None, None), (2, 1, 0, None), (None, 0, None, 0)]
    check_batch(
        R.reduce_p,
        x,
        y,
        one,
        none,
        only=only,
        rtol=1e-4,
        atol=1e-5,
        jaxpr=program(compose, np.float32),
        dimensions=(1,),
    )


def test_nothing_gives_the_start():
    x = np.zeros((0, 2), np.float32)
    out = run(lambda v: list(R.reduce((v, v), (1.0, 0.0), compose, (0,))), x)
    assert [o.tolist() for o in out] == [[1, 1], [0, 0]]


@pytest.mark.parametrize("shape", [(2, 0), (0, 3, 0)])
@pytest.mark.parametrize("axes", [(), (0,), (1,)])
def test_nothing_beside_the_axes(shape, axes):
    x = np.zeros(shape, np.float32)
    out = run(lambda v: list(R.reduce((v, v), (1.0, 0.0), compose, axes)), x)
    assert [o.shape for o in out] == [x.sum(axes).shape] * 2


def test_checks():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="same tree structure"):
        traced(lambda v: R.reduce((v, v), 0.0, add, (0,)), x)
    with pytest.raises(NotImplementedError, match="uses a traced value from outside"):
        traced(
            lambda v, w: R.reduce(v, 0.0, lambda a, b: add(add(a, b), w), (0,)), x, np.float32(1)
        )
    with pytest.raises(ValueError, match="out-of-bounds"):
        traced(lambda v: R.reduce(v, 0.0, add, (5,)), x)


def test_an_identity_of_another_dtype_is_one():
    """As in JAX, also where a value that was made of 32 bits meets operands of 64."""
    x = np.float32([1, 3, 2])
    for f, init, want in ((mul, np.float16(1), 6), (add, np.int32(0), 6), (max, -np.inf, 3)):
        got = R.reduce(x, init, f, (0,))
        assert (got.dtype, float(got)) == ("float32", want)
    for i in (np.float32(1), np.complex64(0)):
        with pytest.raises(TypeError, match="reduce: the initial value is of dtype"):
            R.reduce(np.int32([1, 3]), i, bitwise_and, (0,))
    least = np.int32([np.iinfo("int32").min])[0]
    assert int(R.reduce(np.int16([4, 9]), least, max, (0,))) == 9
    for f, init in (
        (mul, np.int32(2)),
        (add, np.float16(1)),
        (lambda a, b: a + b * b, np.int32(0)),
    ):
        with pytest.raises(TypeError, match="reduce: the initial value is of dtype"):
            R.reduce(x, init, f, (0,))
