"""Values of the type of which there is one take no memory."""

from typing import Any

import numpy as np

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.core.dtypes import float0
from calque.core.jaxprs import check_jaxpr
from calque.native.passes.float0 import without_float0
from tests.native.passes.shared import X
from tests.native.programs import traced


def test_float0_takes_no_memory() -> None:
    """Cotangents of integers go in and out of compiled programs, loops and branches."""
    z = np.zeros((2,), float0)
    closed = traced(lambda x, t: [jnp.reshape(t, (2, 1)), x], X, z)
    simple = without_float0(closed)
    check_jaxpr(simple.jaxpr)
    assert [v.aval.shape for v in (*simple.jaxpr.invars, *simple.jaxpr.outvars)] == [
        (5,),
        (2, 0),
        (2, 1, 0),
        (5,),
    ]
    for f, shape in (
        (lambda: cq.jit(lambda t: t)(z), (2,)),
        (lambda: cq.jit(cq.vmap(lambda x: z))(X), (5, 2)),
        (lambda: lax.cond(True, lambda: z, lambda: z), (2,)),
        (lambda: lax.scan(lambda c, x: (c, z), 1.0, None, length=3)[1], (3, 2)),
        (lambda: cq.jit(cq.grad(lambda n: n * 2.0, allow_int=True))(3), ()),
    ):
        out = np.asarray(f())
        assert (out.dtype, out.shape) == (float0, shape)
    assert float(cq.jit(lambda t, x: x * 2)(z, 1.5)) == 3.0


def test_comparisons_of_float0() -> None:
    """They look at no memory: there is none."""
    x = np.zeros(3, float0)
    for f, want in ((jnp.equal, True), (jnp.not_equal, False)):
        assert np.asarray(cq.jit(f)(x, x)).tolist() == [want] * 3
        assert np.asarray(f(x, x)).tolist() == [want] * 3


def test_programs_without_them_are_given_back() -> None:
    closed = traced(lambda x: x * 2, X)
    assert without_float0(closed) is closed


def test_constants_and_operands_of_others() -> None:
    """A captured value and one that a loop carries beside numbers."""
    z = np.zeros(3, float0)

    def f(x: Any) -> Any:
        (c, t), _ = lax.scan(lambda s, _: ((s[0] * 2, s[1]), None), (x, z), None, length=4)
        return c, t

    closed = traced(f, X)
    simple = without_float0(closed)
    assert all(v.aval.dtype != float0 for e in simple.eqns for v in (*e.invars, *e.outvars))
    c, t = cq.jit(f)(X)
    np.testing.assert_array_equal(c, X * 16)
    assert (np.asarray(t).dtype, np.asarray(t).shape) == (float0, (3,))
