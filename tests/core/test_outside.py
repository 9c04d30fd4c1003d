"""The module `calque.core` as users see it: programs run, sizes compared."""

import pytest

import calque
import calque.numpy as jnp
from calque.core import outside


def test_programs_run_on_values_and_tracers():
    closed = calque.make_jaxpr(lambda x, y: (x * y, x + 1))(1.0, 2.0)

    def run(x, y):
        return outside.eval_jaxpr(closed.jaxpr, closed.consts, x, y)

    assert [float(v) for v in run(3.0, 4.0)] == [12, 4]
    assert [float(v) for v in calque.jit(run)(3.0, 4.0)] == [12, 4]
    assert float(calque.grad(lambda x: run(x, 4.0)[0])(3.0)) == 4
    with pytest.raises(NotImplementedError, match="equations always keep their places"):
        outside.eval_jaxpr(closed.jaxpr, closed.consts, 1.0, 2.0, propagate_source_info=False)


def test_evaluating_while_tracing():
    seen = []

    @calque.jit
    def f(x):
        with outside.eval_context():
            seen.append(float(jnp.sin(0.5) + 1))  # a number at once
        return x * seen[-1]

    assert f(2.0) == 2 * seen[0] and len(seen) == 1
    assert outside.ensure_compile_time_eval is outside.eval_context

    @outside.eval_context()
    def whole():
        return float(jnp.ones(2).sum())

    assert calque.jit(lambda x: x + whole())(1.0) == 3


def test_sizes():
    assert (outside.max_dim(2, 3), outside.min_dim(2, 3)) == (3, 2)


def test_of_sizes_with_names_the_larger_is_a_size_where_it_is_open_which_that_is():
    a, b = calque.export.symbolic_shape("a, b")
    assert str(outside.max_dim(b - 5, 0)) == "max(b - 5, 0)"
    assert str(outside.min_dim(a, b) + 1) == "min(a, b) + 1"
    assert outside.max_dim(b, 0) is b and outside.min_dim(b + 1, b) == b
    assert outside.max_dim(a + 2, a) == a + 2
