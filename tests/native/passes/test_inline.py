"""Calls become their bodies, at any depth, each with names of its own."""

from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque import lax, scipy
from calque.core import reference
from calque.core.arrays import to_array
from calque.core.jaxprs import check_jaxpr
from calque.core.primitives import do
from calque.native.passes.inline import body_of, inline_calls
from tests.native.passes.shared import X, named, names, outputs
from tests.native.programs import traced


def test_calls_are_inlined_at_any_depth() -> None:
    f = cq.jit(lambda x: jnp.sin(x) + 1.0)
    g = cq.jit(lambda x: f(x) * f(x + 1.0))
    closed = traced(lambda x: g(g(x)), X)
    flat = inline_calls(closed)
    check_jaxpr(flat.jaxpr)
    assert "jit" not in [e.primitive.name for e in flat.eqns]
    a, b = reference.run(closed, to_array(X)), reference.run(flat, to_array(X))
    assert np.array_equal(a[0], b[0])


def test_a_call_that_returns_its_argument() -> None:
    assert names(cq.jit(lambda x: (lambda y: y)(x)), X) == []


def test_a_known_branch_is_taken() -> None:
    def f(x):
        return lax.cond(True, lambda x: jnp.sin(x), lambda x: jnp.cos(x), x)

    assert names(f, X) == ["sin"]
    assert names(lambda x: do.dynamic_slice(x, np.int32(9), slice_sizes=(2,)), X) == ["slice"]


def test_a_linear_solve_is_its_solver() -> None:
    """Compiled code runs the solver itself: as one host call, each of its steps would pay for the
    way through Python."""
    a = np.diag(np.arange(1, 6, dtype=np.float32)) + np.float32(0.1)
    b = np.ones(5, np.float32)

    def direct(a, b):
        return jnp.linalg.solve(a, b)

    def gradients(a, b):
        return scipy.sparse.linalg.cg(lambda x: a @ x, b)[0]

    for solve in (direct, gradients):
        assert "custom_linear_solve" not in names(solve, a, b)
        got, back = (
            cq.jit(solve)(a, b),
            cq.jit(cq.grad(lambda a, b: solve(a, b).sum(), (0, 1)))(a, b),
        )
        x, y = np.linalg.solve(a, b), np.linalg.solve(a.T, np.ones_like(b))
        np.testing.assert_allclose(got, x, rtol=1e-5)
        np.testing.assert_allclose(back[0], -np.outer(y, x), rtol=1e-4)
        np.testing.assert_allclose(back[1], y, rtol=1e-5)
        np.testing.assert_allclose(
            cq.jit(cq.vmap(solve, (None, 0)))(a, np.stack([b, 2 * b]))[1], 2 * x, rtol=1e-5
        )


@pytest.mark.parametrize("index", [-7, 0, 1, 2, 99])
def test_known_branches_out_of_range_are_the_nearest(index: int) -> None:
    def f(x: Any) -> Any:
        return lax.switch(np.int32(index), [jnp.sin, jnp.cos, jnp.tanh], x)

    assert names(f, X) == [("sin", "cos", "tanh")[min(max(index, 0), 2)]]


def test_a_body_used_twice_has_names_of_its_own() -> None:
    f = cq.jit(lambda x: jnp.sin(x) * 2)
    flat = inline_calls(traced(lambda x: f(f(x)), X))
    made = [v for e in flat.eqns for v in e.outvars]
    assert len(made) == len(set(made)) == 4
    check_jaxpr(flat.jaxpr)


def test_constants_of_bodies_become_those_of_the_program() -> None:
    """Two calls that captured different arrays keep them apart."""
    tables = [jnp.arange(5.0) + k for k in range(2)]

    def reading(k: int) -> Any:
        return cq.jit(lambda x: x * tables[k])

    closed = traced(lambda x: reading(0)(x) + reading(1)(x), X)
    flat = inline_calls(closed)
    check_jaxpr(flat.jaxpr)
    assert named(flat) == ["mul", "mul", "add"]
    table = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(outputs(flat, X)[0], X * table + X * (table + 1))


def test_programs_without_calls_are_given_back() -> None:
    closed = traced(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c * 2, x), X)
    assert inline_calls(closed) is closed
    (loop,) = closed.eqns
    assert body_of(loop, list(loop.invars))[0] is None


def test_depth_is_no_recursion() -> None:
    f = jnp.sin
    for _ in range(60):
        f = cq.jit(lambda x, f=f: f(x))
    assert names(f, X) == ["sin"]


def test_a_number_handed_to_a_call_is_not_written_in_its_text() -> None:
    """Inside it is a value that happens to be known: rules that look for text leave it."""
    power = cq.jit(lambda a, b: do.pow(a, b))
    flat = inline_calls(traced(lambda x: power(x, np.float32(1.5)), X))
    (e,) = flat.eqns
    assert not getattr(e.invars[1], "written", False)


def twice(x: Any) -> Any:
    return jnp.sin(jnp.sin(x))


def test_what_is_computed_again_is_not_found_to_be_the_same() -> None:
    """The inner sine of the backward pass is the forward one, unless it is to be computed again."""
    x = np.float32(0.5)
    functions = twice, cq.checkpoint(twice), cq.checkpoint(twice, prevent_cse=False)
    slopes = [cq.value_and_grad(f) for f in functions]
    assert [names(f, x).count("sin") for f in slopes] == [2, 3, 2]
    assert names(slopes[1], x).count("optimization_barrier") == 1
    want, *others = [[float(y) for y in cq.jit(f)(x)] for f in slopes]
    assert others == [want, want]


def test_operands_say_one_by_one_whether_they_are_kept_apart() -> None:
    def f(w: Any, x: Any) -> Any:
        return jnp.sin(jnp.sin(w)) * jnp.cos(jnp.sin(x))

    def count(apart: Any) -> int:
        g = cq.checkpoint(f, prevent_cse=apart)

        def run(w: Any, x: Any) -> Any:
            value, slopes = cq.value_and_grad(g, (0, 1))(w, x)
            return value, *slopes

        return names(run, np.float32(1), np.float32(2)).count("sin")

    # forward: sin w, sin sin w, sin x; backward: sin w, sin sin w, sin x, sin sin x
    assert [count(a) for a in (False, (False, True), (True, False), True)] == [4, 5, 6, 7]


def test_forward_derivatives_compute_nothing_again() -> None:
    x = np.float32(0.5)
    assert names(lambda x: cq.jvp(cq.checkpoint(twice), (x,), (x,)), x).count("sin") == 2


def test_numbers_stand_behind_no_barrier() -> None:
    f = cq.checkpoint(lambda x, n: jnp.sin(jnp.sin(x * n)))
    closed = traced(cq.grad(lambda x: f(x, 3.0)), np.float32(1))
    barriers = [e for e in inline_calls(closed).eqns if "barrier" in e.primitive.name]
    assert len(barriers) == 1 and all(type(a).__name__ == "Var" for a in barriers[0].invars)
