"""Exact mode: the bits of `jit` are those of eager execution, and the order of a sum is that of its
extent alone."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, nn
from calque.core.config import config
from tests.native.programs import normal

SHAPES = ((1,), (7,), (17, 33), (65, 3), (2, 130), (3, 5, 4), (1, 40))


@pytest.fixture
def exact() -> Iterator[None]:
    with config.override("calque_exact", True):
        yield


def bits(tree: Any) -> list[tuple[Any, ...]]:
    """Types, shapes and bits of all arrays."""
    return [
        (x.shape, str(x.dtype), np.asarray(x).tobytes()) for x in calque.tree_util.tree_leaves(tree)
    ]


def layer_norm(x: Any) -> Any:
    m = x.mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)


CHAINS: dict[str, Callable[..., Any]] = {
    "polynomial": lambda x: ((x * 3.0 + 1.0) * x - 0.5) * x + x * x,
    "functions": lambda x: jnp.exp(-jnp.abs(x)) * jnp.sin(x) + jnp.tanh(x) / (1 + x * x),
    "logs": lambda x: jnp.log1p(jnp.abs(x)) + jnp.sqrt(jnp.abs(x)) ** 1.7 - jnp.expm1(x * 0.1),
    "select": lambda x: jnp.where(x > 0, x * x + 1, -x),
    "halves": lambda x: (
        (x.astype(jnp.float16) * 3 + 1).astype(jnp.float32) + x.astype(jnp.bfloat16)
    ),
    "complex": lambda x: jnp.abs((x + 1j * x) * (x * x - 1j) / (2 + 1j * x)),
    "complex products": lambda x: jnp.prod(x[:3] + 1j * x[::-1][:3], 0) * (2.5 + 1j),
    "integers": lambda x: (x * 10).astype(jnp.int32) // 3 % 5 << 2,
    "softmax": lambda x: nn.softmax(x),
    "layer_norm": layer_norm,
    "columns": lambda x: [nn.softmax(x, axis=0), nn.logsumexp(x, axis=0),
    (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)],
    "running": lambda x: [jnp.cumsum(x, axis=-1), jnp.cumprod(x * 0.1 + 1, axis=0), lax.cummax(x,
    axis=0, reverse=True)],
    "sort": lambda x: [jnp.sort(x, axis=0), jnp.argsort(x, axis=-1)],
    "positions": lambda x: [jnp.argmax(x, axis=0), jnp.argmin(x)],
    "layout": lambda x: [x.T * 2, jnp.concatenate([x, x + 1], 0), x[::-1], jnp.pad(x, 1)],
    "moments": lambda x: [x.mean(), x.std(axis=0), x.var(axis=-1)],
    "gather": lambda x: [x[jnp.array([0, -1, 0])] * 3.0 + 1.0, jnp.take(x, 0, axis=-1)],
    "scatter": lambda x: [x.at[0].add(x[-1] * 0.1), x.at[jnp.zeros(5, int)].add(1.1),
    x.at[-1].mul(3.0)],
    "scan": lambda x: lax.scan(lambda c, v: (c * 0.9 + v * 1.1, c * v + 1), x[0], x),
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.1 - c * c * 0.01 * i, x),
    "while": lambda x: lax.while_loop(lambda c: jnp.max(jnp.abs(c)) > 0.3,
    lambda c: c * 0.7 + 0.01 * c * c, x * 0.5),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda x: x * 3.0 + 1.0, lambda x: x * x - x, x),
    "grad": lambda x: calque.grad(lambda x: jnp.sum(jnp.tanh(x * 1.3) * x))(x),
    "vmap": lambda x: calque.vmap(lambda v: v * v.sum() + 1.0)(x),
    "random": lambda x: calque.random.normal(calque.random.key(3),
    x.shape) * x + calque.random.uniform(calque.random.key(1), x.shape),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_jit_gives_the_bits_of_eager(exact: None, name: str) -> None:
    f = CHAINS[name]
    for shape in SHAPES:
        x = jnp.asarray(normal(*shape))
        assert bits(calque.jit(f)(x)) == bits(f(x)), shape


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_reductions_over_every_choice_of_axes(exact: None, name: str) -> None:
    for shape in ((7,), (130,), (17, 33), (3, 5, 4), (2, 65, 3), (1, 1000), (4097, 2)):
        x = jnp.asarray(normal(*shape) * 0.1 + 1)
        for k in range(1 << len(shape)):
            axes = tuple(i for i in range(len(shape)) if k >> i & 1)

            def f(x):
                return getattr(jnp, name)(x, axis=axes)

            assert bits(calque.jit(f)(x)) == bits(f(x)), (shape, axes)


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "matrices": (lambda a, b: a @ b, ((17, 33), (33, 20))),
    "large": (lambda a, b: a @ b, ((130, 257), (257, 65))),
    "vector": (lambda a, b: a @ b, ((65, 130), (130,))),
    "inner": (lambda a, b: a @ b, ((1000,), (1000,))),
    "turned": (lambda a, b: a.T @ b, ((33, 17), (33, 20))),
    "second turned": (lambda a, b: a @ b.T, ((17, 33), (20, 33))),
    "batch": (lambda a, b: a @ b, ((4, 17, 5), (4, 5, 9))),
    "with what follows": (lambda a, b: jnp.tanh(a @ b * 0.1 + 1.5), ((17, 33), (33, 20))),
    "with what comes before": (lambda a, b: (a * 1.1 + 1) @ (b * b), ((17, 33), (33, 20))),
    "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), ((2, 3, 9, 8), (4, 3, 3, 3))),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(exact: None, name: str) -> None:
    f, shapes = PRODUCTS[name]
    args = [jnp.asarray(normal(*s, seed=i)) for i, s in enumerate(shapes)]
    assert bits(calque.jit(f)(*args)) == bits(f(*args))


# ---------------------------------------------------------------- orders that hold in any mode


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 63, 64, 65, 130, 1000, 16_500])
def test_a_sum_does_not_depend_on_the_layout(k: int) -> None:
    x = normal(k, 9)
    rows = calque.jit(lambda x: jnp.sum(x.T, axis=1))(x)
    columns = calque.jit(lambda x: jnp.sum(x, axis=0))(x)
    copied = calque.jit(lambda x: jnp.sum(x, axis=1))(x.T.copy())
    single = calque.jit(lambda x: jnp.sum(x[:, :1], axis=0))(x)
    batched = calque.jit(calque.vmap(jnp.sum, in_axes=1))(x)
    assert bits(rows) == bits(columns) == bits(copied) == bits(batched)
    assert bits(single) == bits(columns[:1])


def test_a_sum_does_not_depend_on_what_else_is_computed() -> None:
    x = normal(300, 40)
    alone = calque.jit(lambda x: jnp.sum(x, axis=0))(x)
    fused = calque.jit(
        lambda x: (jnp.sum(x, axis=0), x * 2, jnp.max(x, axis=0), jnp.sum(x, axis=1))
    )(x)
    assert bits(alone) == bits(fused[0])
    y = x * np.float32(1.5)
    inline = calque.jit(lambda x: jnp.sum(x * 1.5, axis=0))(x)
    stored = calque.jit(lambda x: (lambda y: (jnp.sum(y, axis=0), y))(x * 1.5))(x)
    assert bits(stored[0]) == bits(calque.jit(lambda y: jnp.sum(y, axis=0))(y))
    np.testing.assert_allclose(inline, stored[0], rtol=1e-5, atol=1e-4)


def test_results_do_not_depend_on_threads() -> None:
    x, big = normal(700, 530), normal(500_000)
    f = calque.jit(
        lambda x, b: [
            *(x @ x.T, x.sum(), x.sum(0), x.sum(1), b.sum(), jnp.cumsum(b), jnp.exp(b).mean()),
            *(nn.softmax(x), nn.softmax(x, axis=0), x.std(axis=0)),
        ]
    )
    before = calque.get_num_threads() if hasattr(calque, "get_num_threads") else None
    seen = []
    try:
        for n in (1, 2, 5):
            calque.set_num_threads(n)
            seen.append(bits(f(x, big)))
    finally:
        calque.set_num_threads(before or 2)
    assert seen[0] == seen[1] == seen[2]


def test_products_in_loops_have_the_order_of_products_outside(exact: None) -> None:
    for n in (1, 3, 16, 33, 64):
        w, h = normal(n, n), normal(n, seed=1)
        outside = calque.jit(lambda w, h: w @ h)(w, h)
        inside = calque.jit(
            lambda w, h: lax.scan(lambda c, _: (w @ c, w @ c), h, None, length=1)[0]
        )(w, h)
        loop = calque.jit(lambda w, h: lax.fori_loop(0, 1, lambda i, c: w @ c, h))(w, h)
        assert bits(outside) == bits(inside) == bits(loop), n


def test_a_dimension_of_one_changes_nothing(exact: None) -> None:
    x, w = normal(130), normal(130, 33)
    assert bits(calque.jit(jnp.sum)(x)) == bits(
        calque.jit(lambda x: jnp.sum(x[None], axis=1)[0])(x)
    )
    assert bits(calque.jit(lambda x: jnp.sum(x[:, None], axis=0)[0])(x)) == bits(
        calque.jit(jnp.sum)(x)
    )
    left, right = calque.jit(lambda x, w: x @ w)(x, w), calque.jit(lambda x, w: w.T @ x)(x, w)
    assert bits(left) == bits(right)
    row, column = (
        calque.jit(lambda x, w: x[None] @ w)(x, w),
        calque.jit(lambda x, w: (w.T @ x[:, None]).T)(x, w),
    )
    assert (
        bits(row)
        == bits(column)
        == bits(calque.jit(lambda x, w: (jnp.stack([x, x]) @ w)[:1])(x, w))
    )


def test_extremes_of_zeros_have_one_sign() -> None:
    x = np.array([0.0, -0.0] * 70, np.float32).reshape(35, 4)
    by_columns = calque.jit(lambda x: [jnp.max(x, axis=0), jnp.min(x, axis=0)])(x)
    by_rows = calque.jit(lambda x: [jnp.max(x.T, axis=1), jnp.min(x.T, axis=1)])(x)
    assert bits(by_columns) == bits(by_rows)


@pytest.mark.parametrize("n", [5, 17, 130])
def test_loops_run_what_python_runs(exact: None, n: int) -> None:
    """Running sums inside loops inside loops, with maps that contract: the bits of the same
    operations one by one."""
    rng = np.random.default_rng(n)
    c, xs = (jnp.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((n,), (6, n)))

    def python_while(cond: Any, body: Any, s: Any) -> Any:
        while bool(cond(s)):
            s = body(s)
        return s

    def python_scan(f: Any, c: Any, xs: Any) -> Any:
        ys = []
        for x in xs:
            c, y = f(c, x)
            ys.append(y)
        return c, jnp.stack(ys)

    def program(scan: Any, loop: Any) -> Any:
        def counted(c: Any, x: Any) -> Any:
            y = jnp.cumsum(jnp.sin(jnp.cumsum(c))) * 0.01
            s = loop(
                lambda s: s[0] < 3,
                lambda s: (s[0] + 1, jnp.cumsum(s[1][::-1]) * (0.5 / n) + x),
                (jnp.int32(0), y),
            )
            return s[1], s[1].sum()

        def until(c: Any, x: Any) -> Any:
            s = loop(
                lambda s: jnp.abs(s).max() > 0.1,
                lambda s: jnp.tanh(jnp.cumsum(s) * (0.5 / n)),
                c + x,
            )
            return s, jnp.cumsum(s)

        return lambda c, xs: [*scan(counted, c, xs), *scan(until, c, xs)]

    want = bits(program(python_scan, python_while)(c, xs))
    compiled = program(lax.scan, lax.while_loop)
    assert bits(compiled(c, xs)) == want
    assert bits(calque.jit(compiled)(c, xs)) == want
