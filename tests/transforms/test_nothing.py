"""Gradients at arrays without elements: sizes fixed and free, lanes of nothing and nothing in
lanes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax


def more(x: Any, n: int) -> Any:
    return jnp.concatenate([x, jnp.ones(n)])


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: (jnp.sort(x) ** 2).sum(),
    "argsort": lambda x: x[jnp.argsort(x)].sum(),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x), 0).sum(),
    "take": lambda x: jnp.take(x, jnp.zeros(x.shape, int)).sum(),
    "take, clipped": lambda x: jnp.take(x, jnp.zeros(x.shape, int), mode="clip").sum(),
    "indices": lambda x: (x[jnp.arange(x.shape[0])[::-1]] * x).sum(),
    "lexsort": lambda x: x[jnp.lexsort((x, x))].sum(),
    "pairs": lambda x: lax.sort((x, x * 2), num_keys=1)[1].sum(),
    "columns": lambda x: jnp.sort(jnp.stack([x, -x]), 0).sum(),
    "rows": lambda x: jnp.sort(jnp.stack([x, -x]), 1).sum(),
    "top_k": lambda x: lax.top_k(more(x, 2), 2)[0].sum(),
    "partition": lambda x: jnp.partition(more(x, 2), 1).sum(),
    "quantile": lambda x: jnp.quantile(more(x, 2), 0.3),
    "roll": lambda x: (jnp.roll(x, 1) * x).sum(),
    "cumsum": lambda x: jnp.cumsum(x).sum(),
    "cumprod": lambda x: jnp.cumprod(x).sum(),
    "cummax": lambda x: lax.cummax(x).sum(),
    "prod": jnp.prod,
    "set": lambda x: x.at[jnp.arange(x.shape[0])].set(2.0).sum(),
    "add": lambda x: x.at[jnp.arange(x.shape[0])].add(x).sum(),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (0,), x.shape).sum(),
    "matmul": lambda x: x @ x,
    "convolve": lambda x: jnp.convolve(more(x, 3), jnp.ones(2)).sum(),
    "convolve, both": lambda x: jnp.convolve(more(x, 3), more(x, 1)).sum(),
    "scan": lambda x: lax.scan(lambda c, a: (c + a * a, c), 0.0, x)[0],
    "map": lambda x: lax.map(jnp.sin, x).sum(),
    "fft": lambda x: jnp.abs(jnp.fft.fft(more(x, 2))).sum(),
    "segment_sum": lambda x: calque.ops.segment_sum(x, jnp.zeros(x.shape, int), 3).sum(),
    "interp": lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0)).sum(),
    "repeat": lambda x: (jnp.repeat(x, 2) ** 2).sum(),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x).sum(),
    "pooling": lambda x: lax.reduce_window(
        more(x, 2), -jnp.inf, lax.max, (2,), (1,), "VALID"
    ).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    f = FUNCTIONS[name]
    assert calque.grad(f)(jnp.zeros((0,))).shape == (0,)
    for free in (False, True):
        g = calque.jit(calque.grad(f))
        if free:
            for n in (4, 3, 5):
                assert g(jnp.arange(1.0, n + 1)).shape == (n,)
        assert np.asarray(g(jnp.zeros((0,)))).shape == (0,)
    lanes = calque.jit(calque.vmap(calque.grad(f)))
    assert lanes(jnp.zeros((2, 0))).shape == (2, 0)
    assert lanes(jnp.zeros((0, 3))).shape == (0, 3)


def test_differences_along_the_other_axis() -> None:
    assert jnp.gradient(jnp.zeros((0, 3)), axis=1).shape == (0, 3)
