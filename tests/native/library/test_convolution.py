"""Convolutions as kernels: values, tiles and plain nests alike, for every layout, stride, dilation
and group."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.machine.threads import get_num_threads, set_num_threads
from calque.ops.dimension_numbers import ConvDimensionNumbers
from tests.native.cases_dense import spec
from tests.native.programs import compiled, normal

CONV = REGISTRY["conv_general_dilated"]
Shape = tuple[int, ...]
CASES: dict[str, tuple[Shape, Shape, str, str, str, dict[str, Any]]] = {
    "tiles": ((2, 16, 17, 8), (3, 3, 8, 32), "NHWC", "HWIO", "NHWC", {"padding": ((1, 1), (1, 1))}),
    "strides": ((2, 16, 17, 8), (3, 3, 8, 20), "NHWC", "HWIO", "NHWC", {"padding": ((1, 1), (0,
    2)), "window_strides": (2, 1)}),
    "groups": ((2, 16, 17, 8), (3, 3, 4, 12), "NHWC", "HWIO", "NHWC", {"padding": ((1, 1), (0,
    2)), "feature_group_count": 2}),
    "batch groups": ((4, 16, 17, 8), (3, 3, 8, 12), "NHWC", "HWIO", "NHWC", {"padding": ((1, 1),
    (0, 2)), "batch_group_count": 2}),
    "dilated input": ((2, 8, 16, 17), (12, 8, 3, 3), "NCHW", "OIHW", "NCHW", {"padding": ((1, 1),
    (-1, 2)), "lhs_dilation": (2, 1)}),
    "dilated kernel": ((2, 8, 16, 17), (12, 8, 3, 3), "NCHW", "OIHW", "NCHW", {"padding": ((2, 2),
    (1, 2)), "rhs_dilation": (2, 2)}),
    "depthwise": ((2, 16, 17, 8), (3, 3, 1, 8), "NHWC", "HWIO", "NHWC", {"padding": ((1, 1), (1,
    1)), "feature_group_count": 8}),
    "one place": ((2, 8, 16, 17), (24, 8, 1, 1), "NCHW", "OIHW", "NCHW", {}),
    "no place": ((3, 5, 4), (2, 5, 9), "NCH", "OIH", "NCH", {}),
    "no dimension": ((3, 4), (5, 4), "NC", "OI", "CN", {}),
    "three dimensions": ((1, 6, 5, 7, 4), (3, 2, 3, 4, 16), "NDHWC", "DHWIO", "NDHWC",
    {"padding": ((1, 1), (0, 1), (1, 0))}),
}  # fmt: skip


def params_of(name: str) -> dict[str, Any]:
    l, _, ls, rs, os, more = CASES[name]
    one = (1,) * (len(l) - 2)
    numbers = ConvDimensionNumbers(spec(ls, "NC"), spec(rs, "OI"), spec(os, "NC"))
    return {
        "window_strides": one, "padding": ((0, 0),) * len(one), "lhs_dilation": one,
        "rhs_dilation": one, "feature_group_count": 1,
        "batch_group_count": 1, "dimension_numbers": numbers, "precision": None,
        "preferred_element_type": None, "out_sharding": None, **more,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_meaning(name: str, dtype: str) -> None:
    l, r = CASES[name][:2]
    x, w = (normal(*l) * 4).astype(dtype), (normal(*r, seed=1) * 4).astype(dtype)
    p = params_of(name)
    made = compiled(lambda x, w: CONV.bind(x, w, **p), x, w)
    assert not made.host_calls
    got, want = np.asarray(made.call([x, w])[0]), CONV.meaning(x, w, **p)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def test_the_sum_has_one_order() -> None:
    """In tiles, as a plain nest (a few rows only), fused with what follows, on any number of
    threads: the same bits."""
    x, w = normal(8, 20, 20, 8), normal(3, 3, 8, 16, seed=1)
    threads = get_num_threads()
    with config.override("calque_exact", True):
        whole = np.asarray(calque.jit(conv)(x, w))
        np.testing.assert_array_equal(np.asarray(conv(x, w)), whole)
        np.testing.assert_array_equal(
            np.asarray(calque.jit(conv)(x[2:3, :4], w))[0, :3], whole[2, :3]
        )
        bias = normal(16, seed=2)
        fused = calque.jit(lambda x, w, b: jnp.maximum(conv(x, w) + b, 0))(x, w, bias)
        np.testing.assert_array_equal(np.asarray(fused), np.maximum(whole + bias, 0))
        try:
            set_num_threads(1)
            np.testing.assert_array_equal(np.asarray(calque.jit(conv)(x, w)), whole)
        finally:
            set_num_threads(threads)


def test_gradients_are_kernels() -> None:
    x, w = normal(4, 12, 12, 4), normal(3, 3, 4, 8, seed=1)

    def f(x, w):
        return jnp.sum(jnp.sin(conv(x, w)))

    made = compiled(calque.grad(f, (0, 1)), x, w)
    assert not made.host_calls
    dx, dw = (np.asarray(a) for a in made.call([x, w]))
    c = np.cos(np.asarray(conv(x, w)))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    back = np.zeros_like(padded)
    for i in range(3):
        for j in range(3):
            part = padded[:, i : i + 12, j : j + 12]
            np.testing.assert_allclose(
                dw[i, j], np.einsum("bhwc,bhwo->co", part, c), rtol=1e-3, atol=1e-3
            )
            back[:, i : i + 12, j : j + 12] += c @ w[i, j].T
    np.testing.assert_allclose(dx, back[:, 1:-1, 1:-1], rtol=1e-3, atol=1e-3)


def test_one_program_for_every_size() -> None:
    """Free sizes are followed through the tables of a convolution: a new batch or height traces
    nothing."""
    traces = []

    def f(x: Any, w: Any) -> Any:
        traces.append(x.shape)
        return calque.grad(lambda x, w: jnp.sum(jnp.sin(conv(x, w))), (0, 1))(x, w)

    jitted, w = calque.jit(f), normal(3, 3, 4, 8, seed=1)
    for b, h in ((2, 12), (3, 12), (3, 14), (5, 17), (4, 20), (7, 11)):
        x = normal(b, h, 12, 4)
        for got, want in zip(jitted(x, w), compiled(lambda x, w: list(f(x, w)), x, w).call([x, w])):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-5)
    assert len(traces) - 6 <= 4


def test_offsets_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tables would be too long, offsets are worked out: the same bits."""
    x, w = normal(3, 12, 11, 8), normal(3, 3, 8, 16, seed=1)
    with_tables = compiled(conv, x, w)
    monkeypatch.setattr("calque.native.library.convolution.LONGEST", 10)
    without = compiled(conv, x, w)
    assert "depths" in with_tables.as_text("loops") and "depths" not in without.as_text("loops")
    np.testing.assert_array_equal(
        np.asarray(without.call([x, w])[0]), np.asarray(with_tables.call([x, w])[0])
    )
