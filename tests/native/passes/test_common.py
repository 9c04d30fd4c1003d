"""Equations that say the same thing are written once."""

from typing import Any

import numpy as np

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn, Var, check_jaxpr
from calque.core.primitives import REGISTRY, do
from calque.native.passes.common import common_subexpressions
from calque.native.passes.inline import inline_calls
from tests.native.passes.shared import X, named, outputs
from tests.native.programs import traced


def test_common_subexpressions() -> None:
    closed = traced(lambda x: jnp.sin(x) * jnp.sin(x), X)
    assert [e.primitive.name for e in common_subexpressions(closed.jaxpr).eqns] == ["sin", "mul"]
    closed = traced(lambda x: [x * 2.0, x * 3.0, x * 2.0], X)
    assert len(common_subexpressions(closed.jaxpr).eqns) == 2


def test_a_result_that_only_the_second_equation_names():
    """Two factorisations are one, though the first leaves unnamed what the second uses."""

    def f(a):
        factors = cq.lax.linalg.lu(a)[0]
        return factors, cq.lax.linalg.lu(a)[2]

    closed = cq.make_jaxpr(f)(jnp.eye(3))
    first, second = [e for e in closed.jaxpr.eqns if e.primitive.name == "lu"]
    named = [first.outvars[0], *[DropVar(v.aval) for v in first.outvars[1:]]]
    first = Eqn(first.primitive, first.invars, named, first.params, first.source)
    eqns = [first, second]
    jaxpr = closed.jaxpr.replace(eqns=eqns, outvars=[eqns[0].outvars[0], eqns[1].outvars[2]])
    (only,) = common_subexpressions(jaxpr).eqns
    assert [isinstance(v, DropVar) for v in only.outvars] == [False, True, False]
    assert only.outvars[0] is eqns[0].outvars[0] and only.outvars[2] is eqns[1].outvars[2]


def test_what_differs_in_anything_stays() -> None:
    """Parameters, literals by their bits, operands in their order."""
    nan = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    for f, count in (
        (
            lambda x: [do.reduce_sum(x, axes=(0,), out_sharding=None), do.reduce_max(x, axes=(0,))],
            2,
        ),
        (lambda x: [do.add(x, np.float32(0.0)), do.add(x, np.float32(-0.0))], 2),
        (lambda x: [do.add(x, nan[0]), do.add(x, nan[1])], 2),
        (lambda x: [do.sub(x, np.float32(1)), do.sub(np.float32(1), x)], 2),
        (lambda x: [do.add(x, np.float32(1)), do.add(x, np.float32(1))], 1),
        (lambda x: [do.cumsum(x, axis=0, reverse=r) for r in (False, True, False)], 2),
    ):
        assert len(common_subexpressions(traced(f, X).jaxpr).eqns) == count


def test_chains_meet() -> None:
    """What reads equal values is equal as well."""
    closed = traced(lambda x: jnp.cos(jnp.sin(x) + 1) * jnp.cos(jnp.sin(x) + 1), X)
    done = ClosedJaxpr(common_subexpressions(closed.jaxpr), closed.consts)
    check_jaxpr(done.jaxpr)
    assert named(done) == ["sin", "add", "cos", "mul"]
    np.testing.assert_array_equal(outputs(done, X)[0], outputs(closed, X)[0])
    assert common_subexpressions(done.jaxpr) is done.jaxpr


def test_effects_happen_as_often_as_they_are_written() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        for _ in range(2):
            cq.debug.callback(lambda v: seen.append(float(v)), x[0])
        return x

    closed = traced(f, X)
    calls = [n for n in named(common_subexpressions(inline_calls(closed).jaxpr)) if "callback" in n]
    assert len(calls) == 2


def test_parameters_that_cannot_be_hashed_are_no_key() -> None:
    p, x = REGISTRY["sin"], Var(ShapedArray((2,), np.dtype("f4")))
    eqns = [Eqn(p, [x], [Var(x.aval)], {"note": []}, None) for _ in range(2)]
    jaxpr = traced(jnp.sin, X).jaxpr.replace(
        invars=[x], eqns=eqns, outvars=[e.outvars[0] for e in eqns]
    )
    assert common_subexpressions(jaxpr) is jaxpr


def test_barriers_are_not_the_same() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(lax.optimization_barrier(x)) + jnp.sin(lax.optimization_barrier(x))

    closed = traced(f, X)
    assert named(common_subexpressions(closed.jaxpr)).count("sin") == 2
    np.testing.assert_array_equal(cq.jit(f)(X), 2 * jnp.sin(X))
