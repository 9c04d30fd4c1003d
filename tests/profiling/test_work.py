"""Operations and bytes of steps."""

import pytest

import calque as jax
import calque.numpy as jnp
from calque.native.plan.steps import Call, walk
from calque.profiling.steps import described
from calque.profiling.work import bytes_touched


def executable(f, *args):
    return jax.jit(f).lower(*args).compile()._executable


def kernels(f, *args):
    found = described(executable(f, *args))
    return [facts for (kind, _), facts in found.steps.items() if kind == "call"]


def test_products_have_two_operations_a_term():
    facts = kernels(lambda x, w: x @ w, jnp.ones((60, 70)), jnp.ones((70, 80)))
    (product,) = [f for f in facts if f.name == "matmul"]
    assert product.flops == product.additions == 2 * 60 * 70 * 80


def test_operations_and_what_they_weigh():
    (f,) = kernels(lambda x: jnp.sin(x) + 1, jnp.ones(1000))
    assert f.flops == 2000 and f.additions > 10_000 and f.nbytes == 8000 and not f.double
    (f,) = kernels(lambda x: x.sum(0), jnp.ones((50, 40)))
    assert f.flops == 2000 and f.nbytes == 4 * (2000 + 40)


def test_what_a_turn_of_a_loop_reads_of_an_array():
    def f(x):
        return jax.lax.scan(lambda c, row: (jnp.sort(c) + row, c.sum()), x[0], x)

    e = executable(f, jnp.ones((300, 64)))
    touched = [
        bytes_touched(s.body, e.planner.sizes, e.planner.bytes)
        for s in walk(e.steps)
        if isinstance(s, Call)
    ]
    assert max(touched) < 4 * 300 * 64  # a row, not the array


@pytest.mark.parametrize("shape", [(0,), (1,)])
def test_next_to_nothing(shape):
    assert all(f.flops in (0, 1, None) for f in kernels(lambda x: x * 2, jnp.ones(shape)))
