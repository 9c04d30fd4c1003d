"""Selection in windows as kernels: bit for bit what the meaning gives, for windows side by side,
with gaps, and overlapping."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.ops.windows import window_shape
from tests.native.programs import check, compiled, normal

Shape = tuple[int, ...]
CASES: dict[str, tuple[Shape, Shape, Shape, tuple[tuple[int, int], ...]]] = {
    "side by side": ((2, 8, 6, 3), (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4),
    "ragged": ((2, 9, 7, 3), (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4),
    "gaps": ((2, 9, 7, 3), (1, 2, 2, 1), (1, 3, 2, 1), ((0, 0), (1, 1), (0, 1), (0, 0))),
    "overlap": ((2, 9, 7, 3), (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))),
    "cut": ((1, 3, 9, 7), (1, 1, 3, 2), (1, 1, 1, 1), ((0, 0), (0, 0), (-1, 2), (1, 1))),
    "one window": ((5, 6), (5, 6), (1, 1), ((0, 0), (0, 0))),
    "many terms": ((2, 9, 8), (1, 5, 5), (1, 2, 3), ((0, 0), (1, 1), (2, 0))),
    "nothing but padding": ((4, 5), (2, 2), (1, 1), ((5, 0), (0, 0))),
}


def operands(name: str, dtype: str, select: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    shape, window, strides, padding = CASES[name]
    p: dict[str, Any] = {"window_dimensions": window, "window_strides": strides, "padding": padding}
    one = (1,) * len(shape)
    counts = window_shape("", shape, {**p, "base_dilation": one, "window_dilation": one})
    x, source = (
        np.round(normal(*s, seed=k) * 3).astype(dtype) for k, s in enumerate((shape, counts))
    )
    if dtype != "int32":
        x.flat[0], x.flat[3], source.flat[0] = -np.inf, np.nan, -0.0
    return source, x, {**p, "select_prim": REGISTRY[select]}


@pytest.mark.parametrize("dtype, select", [("float32", "ge"), ("float16", "le"), ("int32", "ge")])
@pytest.mark.parametrize("name", CASES)
def test_scattered_to_what_windows_select(name: str, dtype: str, select: str) -> None:
    source, x, p = operands(name, dtype, select)
    scatter = REGISTRY["select_and_scatter_add"]
    made = compiled(lambda s, x: scatter.bind(s, x, **p), source, x)
    assert not made.host_calls
    assert (
        np.asarray(made.call([source, x])[0]).tobytes() == scatter.meaning(source, x, **p).tobytes()
    )


@pytest.mark.parametrize("dilate", [None, "base_dilation", "window_dilation"])
@pytest.mark.parametrize("name", CASES)
def test_gathered_from_what_windows_select(name: str, dilate: str | None) -> None:
    _, x, p = operands(name, "float32", "ge")
    one = (1,) * x.ndim
    p = {**p, "base_dilation": one, "window_dilation": one}
    if dilate is not None:
        p[dilate] = (1,) * (x.ndim - 1) + (2,)
    values, gather = normal(*x.shape, seed=5), REGISTRY["select_and_gather_add"]
    made = compiled(lambda v, x: gather.bind(v, x, **p), values, x)
    assert not made.host_calls
    assert (
        np.asarray(made.call([values, x])[0]).tobytes() == gather.meaning(values, x, **p).tobytes()
    )


def test_the_gradient_of_a_pool_runs_without_python() -> None:
    def pool(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    check(calque.grad(lambda x: jnp.sum(pool(jnp.maximum(x, 0)) ** 2)), normal(2, 8, 8, 4))


def test_bytes_that_are_gathered_are_few_at_a_time() -> None:
    """Indices that differ from lane to lane are eight bytes each: 512 of them would take seconds to
    compile."""
    x = normal(17, 33) > 0
    p = {
        "window_dimensions": (3, 3),
        "window_strides": (1, 1),
        "base_dilation": (2, 2),
        "window_dilation": (1, 1),
    }
    made = check(lambda x: REGISTRY["reduce_window_max"].bind(x, padding=((1, 1), (1, 1)), **p), x)
    assert "@vector(512)" not in made.as_text("loops")


@pytest.mark.parametrize("name", ["add", "max", "min"])
@pytest.mark.parametrize("traced", [False, True])
def test_exact_mode_gives_the_bits_of_eager_windows(name: str, traced: bool) -> None:
    """Also where the identity is an array that is made while the program is traced."""
    x = np.random.default_rng(3).normal(size=(2, 3, 5)).astype(np.float32)
    number = np.float32({"add": 0, "max": -np.inf, "min": np.inf}[name])

    def f(x: Any) -> Any:
        start = jnp.asarray(number, dtype=np.float32) if traced else number
        return lax.reduce_window(x, start, getattr(lax, name), (2, 3, 2), padding="SAME")

    assert not calque.explain(f, x).host_calls
    with config.override("calque_exact", True):
        assert np.asarray(calque.jit(f)(x)).tobytes() == np.asarray(f(x)).tobytes()
