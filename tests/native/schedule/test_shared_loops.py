"""What shares loops and what does not, what reaches memory and what does not."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque import nn
from calque.native.loops.tree import For
from calque.native.plan.steps import Call, walk
from tests.native.programs import check, compiled, normal


def kernels(e) -> int:
    return sum(isinstance(s, Call) for s in walk(e.steps))


def loops(e) -> int:
    """Outermost loops of all kernels: how often something is gone through."""
    return sum(isinstance(x, For) for s in walk(e.steps) if isinstance(s, Call) for x in s.body)


def test_pointwise_chains_are_one_kernel() -> None:
    assert kernels(check(lambda x: [jnp.tanh(jnp.exp(x) + 1.0), jnp.exp(x)], normal(100))) == 1


def test_rows_share_their_loop() -> None:
    def softmax(x):
        return jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x - x.max(1, keepdims=True)).sum(
            1, keepdims=True
        )

    e = check(softmax, normal(40, 50))
    assert kernels(e) == 1
    assert e.planner.mutable.isdisjoint(e.kernels[0].buffers)  # its rows live on the stack


def test_equal_sizes_alone_do_not_fuse() -> None:
    e = check(lambda x, y: [jnp.sin(x), jnp.cos(y)], normal(50), normal(50, seed=1))
    assert kernels(e) == 2
    e = check(lambda x: [x.sum(0), x.sum(1)], normal(60, 60), tol=1e-4)
    assert kernels(e) == 2


def test_a_value_read_elsewhere_is_stored() -> None:
    def f(x):
        return (lambda y: jnp.roll(y, 1) + y)(jnp.exp(x) * jnp.sin(x))

    e = check(f, normal(30))  # longer ones have the end that comes first cut off
    assert loops(e) == 2


def test_what_repeats_is_not_computed_again() -> None:
    e = check(lambda v, x: x * jnp.tanh(jnp.exp(v))[None, :], normal(50), normal(40, 50))
    assert loops(e) == 2  # tanh(exp(v)) once, not once a row
    e = check(lambda v, x: x * jnp.tanh(jnp.exp(v))[:, None], normal(40), normal(40, 50))
    assert loops(e) == 1  # once a row anyway


def test_long_chains_are_cut_into_equal_kernels() -> None:
    def f(x):
        for k in range(200):
            x = jnp.sin(x) * (3.5 + k)
        return x

    e = compiled(f, normal(64))
    assert len({k.code for k in e.kernels}) < kernels(e)


def test_very_long_programs() -> None:
    def f(x):
        y = x
        for _ in range(2000):
            x, y = y * 0.5 + x, x
        return x

    check(f, np.full((8,), 1e-30, np.float32), tol=1e-2)


def test_scalars_between_loops() -> None:
    check(
        lambda x: (x - x.mean()) / jnp.sqrt(((x - x.mean()) ** 2).sum() + 1.0),
        normal(300),
        tol=1e-4,
    )
    check(lambda x: x.sum() * x.max() - x[0], normal(300), tol=1e-3)


STATISTICS = {
    "var": lambda x: x.var(),
    "logsumexp": lambda x: nn.logsumexp(x),
    "standardize": lambda x: (x - x.mean()) / x.std(),
    "softmax": lambda x: nn.softmax(x, axis=0),
    "logsumexp of columns": lambda x: nn.logsumexp(x, axis=0),
    "layer norm of columns": lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5),
    "softmax of all": lambda x: nn.softmax(x, axis=(0, 1)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_small_arrays_are_one_kernel(name: str) -> None:
    assert kernels(check(STATISTICS[name], normal(64, 10), tol=1e-4)) == 1


COLUMNS = ("softmax", "logsumexp of columns", "layer norm of columns")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("shape", [(300, 1100), (8, 20_000), (2000, 1025)])
def test_statistics_of_long_columns_are_one_kernel_that_threads_share(
    name: str, shape: tuple[int, int]
) -> None:
    e = check(STATISTICS[name], normal(*shape), tol=2e-4)
    assert kernels(e) == 1 and e.kernels[0].parallel
    assert not e.planner.mutable & set(
        e.kernels[0].buffers
    )  # what is between input and result stays in registers or the result


def test_columns_of_matrices_in_a_batch() -> None:
    e = check(lambda x: nn.softmax(x, axis=1), normal(3, 40, 70))
    assert kernels(e) == 1 and loops(e) == 1
    e = check(lambda x: nn.softmax(x, axis=0), normal(20, 3, 70))
    assert kernels(e) == 1 and loops(e) == 1


def test_many_rows_of_few_columns_keep_their_order() -> None:
    """Threads share the rows: a block of columns would be all there is."""
    e = check(lambda x: nn.softmax(x, axis=0), normal(6000, 24))
    assert kernels(e) > 1 and any(k.parallel for k in e.kernels)


def test_very_long_columns_are_folded_once() -> None:
    """Chunks, their fold, and what reads it, for the maximum and for the sum; the fold is not made
    again for every row."""
    assert loops(check(lambda x: nn.softmax(x, axis=0), normal(40_000, 3))) == 6


def test_short_runs_are_one_kernel_only_when_one_reads_the_other() -> None:
    def y(x):
        return jnp.roll(jnp.exp(x) * jnp.sin(x), 1) + jnp.exp(x) * jnp.sin(x)

    assert kernels(check(y, normal(100))) == 1
    assert kernels(check(lambda x, y: [x.sum(), y.sum()], normal(100), normal(101), tol=1e-4)) == 2
    assert kernels(check(y, normal(1 << 17))) == 2  # long enough for threads


def test_loops_read_what_their_own_turns_wrote() -> None:
    e = check(lambda x: (x * 2.0).at[jnp.zeros(5, int)].add(1.0), normal(1))
    assert kernels(e) == 1
