"""Passes over jaxprs: what each does, and that none changes a bit."""

import numpy as np

import calque as cq
import calque.numpy as jnp
from calque import lax, scipy
from calque.core import reference
from calque.core.arrays import to_array
from calque.core.config import config
from calque.core.dtypes import float0
from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn, check_jaxpr
from calque.core.primitives import do
from calque.native.passes import pipeline
from calque.native.passes.common import common_subexpressions
from calque.native.passes.dead_code import dead_code, dead_parts
from calque.native.passes.float0 import without_float0
from calque.native.passes.inline import inline_calls
from tests.native.programs import normal, traced


def names(fun, *args):
    """The primitives that are left, in order."""
    return [e.primitive.name for e in pipeline.run(traced(fun, *args)).eqns]


X = normal(5)


def test_dead_code() -> None:
    closed = traced(lambda x: [jnp.sin(x), jnp.cos(x)][0], X)
    assert [e.primitive.name for e in dead_code(closed.jaxpr).eqns] == ["sin"]
    assert dead_code(dead_code(closed.jaxpr)) is not None


def test_dead_parts_of_loops_and_calls() -> None:
    def f(x):
        step = cq.checkpoint(lambda c, i, d: (jnp.sin(c), i + 1, jnp.cos(d)))
        (c, _, _), (kept, _) = lax.scan(
            lambda c, _: ((new := step(*c)), (c[0], new[1])), (x, 0, x), length=3
        )
        back = lax.scan(lambda t, row: (t * row[0], row[1]), 1.0, (kept[:, 0], kept), reverse=True)[
            0
        ]
        return lax.cond(
            c[0] > 0, lambda a, b, u: (a, b), lambda a, b, u: (b, a), back, c[0], kept[1]
        )[0]

    closed = traced(f, X)
    pruned = dead_parts(closed.jaxpr)
    check_jaxpr(pruned)
    first, second = [e for e in pruned.eqns if e.primitive.name == "scan"]
    assert (first.params["num_carry"], len(first.outvars)) == (
        1,
        2,
    )  # neither counter nor cosines, kept once
    (call,) = first.params["jaxpr"].eqns
    assert [e.primitive.name for e in call.params["jaxpr"].eqns] == ["sin"]
    assert (len(second.outvars), len(second.invars)) == (1, 2)
    choice = next(e for e in pruned.eqns if e.primitive.name == "cond")
    assert (len(choice.outvars), len(choice.invars)) == (1, 3)
    a, b = (
        reference.run(closed, to_array(X)),
        reference.run(ClosedJaxpr(pruned, closed.consts), to_array(X)),
    )
    assert np.array_equal(a[0], b[0])
    assert dead_parts(pruned) is pruned


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


def test_common_subexpressions() -> None:
    closed = traced(lambda x: jnp.sin(x) * jnp.sin(x), X)
    assert [e.primitive.name for e in common_subexpressions(closed.jaxpr).eqns] == ["sin", "mul"]
    closed = traced(lambda x: [x * 2.0, x * 3.0, x * 2.0], X)
    assert len(common_subexpressions(closed.jaxpr).eqns) == 2


def test_zeros_of_both_signs_are_different_constants() -> None:
    closed = traced(lambda x: [x + 0.0, x + (-0.0)], X)
    assert len(pipeline.run(closed).eqns) == 1  # x + -0.0 is x, x + 0.0 is not


def test_constants_fold() -> None:
    assert names(lambda x: x * (jnp.float32(2.0) * 3.0 + 1.0), X) == ["mul"]


def test_algebra_keeps_bits() -> None:
    same = (
        lambda x: x * 1.0,
        lambda x: 1.0 * x,
        lambda x: x - 0.0,
        lambda x: x / 1.0,
        lambda x: -(-x),
        lambda x: jnp.maximum(x, -jnp.inf),
        lambda x: lax.stop_gradient(x),
        lambda x: x.reshape(5),
        lambda x: x[:],
        lambda x: jnp.concatenate([x]),
    )
    for f in same:
        assert names(f, X) == []
    assert names(lambda x: x + 0.0, X) == ["add"]
    assert names(lambda x: x * 0.0, X) == ["mul"]
    assert names(lambda x: x / 8.0, X) == ["mul"]
    assert names(lambda x: x / 3.0, X) == ["div"]
    assert names(lambda i: i + 0, np.arange(5, dtype=np.int32)) == []


def test_a_known_branch_is_taken() -> None:
    def f(x):
        return lax.cond(True, lambda x: jnp.sin(x), lambda x: jnp.cos(x), x)

    assert names(f, X) == ["sin"]
    assert names(lambda x: do.dynamic_slice(x, np.int32(9), slice_sizes=(2,)), X) == ["slice"]


def test_long_programs_are_linear() -> None:
    def f(x):
        for _ in range(3000):
            x = x * x + 1.5
        return x

    assert len(pipeline.run(traced(f, X)).eqns) == 6000


def test_powers_by_roots() -> None:
    """A number in the text of the program; a number that is computed, or an array, is an exponent
    like any other."""
    (e,) = pipeline.run(traced(lambda x: do.pow(x, np.float32(1.5)), X)).eqns
    assert len(e.invars) == 1 and e.params == {"exponent": 1.5}
    (e,) = pipeline.run(traced(lambda x: do.pow(x, np.float32(1.7)), X)).eqns
    assert len(e.invars) == 2
    captured, half = jnp.float32(1.5), np.float32(3)
    for f in (
        lambda x: do.pow(x, captured),
        lambda x: do.pow(x, do.div(half, np.float32(2))),
        lambda x: cq.jit(lambda a, b: do.pow(a, b))(x, 1.5),
    ):
        (e,) = pipeline.run(traced(f, X)).eqns
        assert len(e.invars) == 2 and not e.params
        with config.override("calque_exact", True):
            x = jnp.linspace(0.1, 3.0, 5, dtype="float32")
            assert np.asarray(cq.jit(f)(x)).tobytes() == np.asarray(f(x)).tobytes()


def test_results_are_kept_with_the_program() -> None:
    closed = traced(lambda x: x * 1.0 + 2.0, X)
    assert pipeline.run(closed) is pipeline.run(closed)


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


def test_a_transposed_product_is_the_product_of_the_transposed() -> None:
    a, b, c = normal(20, 30), normal(30, 40, seed=1), normal(3, 7, 5)
    assert names(lambda a, b: (a @ b).T, a, b) == ["dot_general"]

    def both(p):
        return [p.T, p]

    assert names(lambda a, b: both(a @ b), a, b) == [
        "dot_general",
        "transpose",
    ]  # read twice: made once

    def flip(c):
        return jnp.einsum("bij,bkj->bki", c, c[:, :4])

    assert "transpose" not in names(flip, c)
    for fun, args in ((lambda a, b: (a @ b).T, (a, b)), (flip, (c,))):
        closed = traced(fun, *args)
        done = pipeline.run(closed)
        check_jaxpr(done.jaxpr)
        got, want = (reference.run(p, *map(to_array, args)) for p in (done, closed))
        np.testing.assert_allclose(np.asarray(got[0]), np.asarray(want[0]), rtol=1e-5, atol=1e-5)


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


def test_comparisons_of_float0() -> None:
    """They look at no memory: there is none."""
    x = np.zeros(3, float0)
    for f, want in ((jnp.equal, True), (jnp.not_equal, False)):
        assert np.asarray(cq.jit(f)(x, x)).tolist() == [want] * 3
        assert np.asarray(f(x, x)).tolist() == [want] * 3
