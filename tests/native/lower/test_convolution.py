"""Convolutions as products: where each reads, which form it takes, and holes that meet no
weight."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.native.lower import convolution
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import const
from tests.native.lower.shared import Elements, check_stages
from tests.native.programs import compiled, run

NUMBERS = ("NHWC", "HWIO", "NHWC")


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def conv(**options: Any) -> Any:
    given = {"window_strides": (1, 1), "padding": ((0, 0), (0, 0)), "dimension_numbers": NUMBERS}
    return lambda x, w: lax.conv_general_dilated(x, w, **{**given, **options})


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 5, 3), (2, 3, 3, 2), {}),
    ((1, 5, 5, 2), (3, 3, 2, 2), {"padding": ((1, 1), (2, 0))}),
    ((1, 5, 6, 2), (2, 2, 2, 3), {"window_strides": (2, 3)}),
    ((1, 6, 6, 1), (2, 2, 1, 2), {"rhs_dilation": (2, 3)}),
    ((1, 3, 3, 2), (2, 2, 2, 2), {"lhs_dilation": (2, 3), "padding": ((1, 1), (1, 2))}),
    ((1, 4, 4, 4), (2, 2, 2, 6), {"feature_group_count": 2}),
    ((1, 4, 4, 3), (2, 2, 1, 3), {"feature_group_count": 3}),
    ((4, 3, 3, 2), (2, 2, 2, 4), {"batch_group_count": 2}),
    ((1, 5, 5, 2), (2, 2, 2, 2), {"padding": ((-1, 2), (0, -1))}),
    ((2, 2, 4, 5), (3, 2, 2, 3), {"dimension_numbers": ("NCHW", "OIHW", "NCHW")}),
]


@pytest.mark.parametrize("x, w, options", CASES)
def test_small_ones_are_sums_in_a_nest(x: Any, w: Any, options: Any) -> None:
    """Whole numbers: every order of the sum is exact."""
    e = check_stages(conv(**options), whole(*x), whole(*w, seed=1))
    assert sum(n.op == "conv" for n in e.graph.nodes) == 1


@pytest.mark.parametrize("dtype", [np.int32, np.complex64])
def test_other_dtypes(dtype: Any) -> None:
    x, w = whole(1, 3, 4, 2).astype(dtype), whole(2, 2, 2, 2, seed=1).astype(dtype)
    check_stages(conv(lhs_dilation=(1, 2)), x, w)


def geometry_of(f: Any, x: np.ndarray, w: np.ndarray) -> Any:
    nodes = Elements(f, x, w).graph.nodes
    return next(n for n in nodes if n.op in ("conv", "conv_tiled")).params["geometry"]


@pytest.mark.parametrize("x, w, options", CASES)
def test_rows_and_summands_by_their_steps(x: Any, w: Any, options: Any) -> None:
    """Element (row, column) sums padded input at row step + depth step + group step."""
    f, a, b = conv(**options), whole(*x), whole(*w, seed=1)
    geo = geometry_of(f, a, b)
    (want,) = run(compiled(f, a, b), a, b)
    padded = np.zeros(geo.x_shape, np.float32)
    spec, gap = geo.lhs_spec, options.get("lhs_dilation", (1, 1))
    place: list[Any] = [slice(None)] * 4
    source: list[Any] = [slice(None)] * 4
    pads = options.get("padding", ((0, 0), (0, 0)))
    for d, (low, _), g in zip(spec[2:], pads, gap, strict=True):
        place[d] = slice(max(low, 0), None, g)
        source[d] = slice(max(-low, 0), None)
    part = a[tuple(source)]
    view = padded[tuple(place)]
    cut = tuple(slice(0, min(p, q)) for p, q in zip(part.shape, view.shape, strict=True))
    view[cut] = part[cut]
    flat = padded.reshape(-1)
    numbers = options.get("dimension_numbers", NUMBERS)
    kernel = lax.conv_dimension_numbers(x, w, numbers).rhs_spec
    matrix = b.transpose((*kernel[2:], kernel[1], kernel[0])).reshape(geo.depth, -1)

    def offsets(steps: Any) -> list[int]:
        ranges = [range(n) for n, _ in steps]
        return [
            sum(i * s for i, (_, s) in zip(at, steps, strict=True))
            for at in itertools.product(*ranges)
        ]

    rows, depth = offsets(geo.row_steps()), offsets(geo.depth_steps())
    assert len(rows) == geo.rows and len(depth) == geo.depth
    got = np.empty((geo.rows, geo.features_out * geo.groups), np.float32)
    for (r, at), column in itertools.product(enumerate(rows), range(got.shape[1])):
        start = at + column // geo.features_out * geo.group_step()
        got[r, column] = sum(flat[start + k] * matrix[j, column] for j, k in enumerate(depth))
    order = (*geo.places, geo.out_spec[1])
    np.testing.assert_array_equal(
        got.reshape([want.shape[d] for d in order]), want.transpose(order)
    )


def test_a_kernel_of_one_place_is_a_product() -> None:
    x, w = whole(2, 3, 4, 5), whole(1, 1, 5, 6, seed=1)
    ops = {n.op for n in Elements(conv(), x, w).graph.nodes}
    assert "matmul" in ops and "conv" not in ops
    np.testing.assert_array_equal(run(compiled(conv(), x, w), x, w)[0], x @ w[0, 0])
    strided = Elements(conv(window_strides=(2, 1)), x, w)
    assert any(n.op == "conv" for n in strided.graph.nodes)


def test_large_ones_take_tiles() -> None:
    ops = lambda x, w, **o: {n.op for n in Elements(conv(**o), x, w).graph.nodes}  # noqa: E731
    x, w = np.zeros((1, 20, 20, 8), "f4"), np.zeros((3, 3, 8, 16), "f4")
    assert "conv_tiled" in ops(x, w)
    narrow = np.zeros((3, 3, 1, 8), "f4")
    assert "conv" in ops(x, narrow, feature_group_count=8)  # groups that are no matrices
    assert "conv" in ops(x.astype(np.complex64), w.astype(np.complex64))


def test_tiles_of_padded_inputs_ask_for_holes_only_where_they_must() -> None:
    """A second kernel is made in double precision, for groups of the batch and for kernels that are
    reversed, as derivatives have them."""

    def tests(f: Any, x: Any, w: Any) -> set[int]:
        return {len(n.args) for n in Elements(f, x, w).graph.nodes if n.op == "conv_tiled"}

    same = conv(padding=[(1, 1), (1, 1)])
    x, w = np.zeros((2, 20, 20, 8), "f4"), np.zeros((3, 3, 8, 16), "f4")
    assert tests(same, x, w) == {2}
    assert tests(lambda x, w: same(x, jnp.flip(w, (0, 1))), x, w) == {3}
    assert tests(conv(padding=[(1, 1), (1, 1)], batch_group_count=2), x, w) == {3}
    cut, x, w = conv(padding=[(-1, 0), (0, 0)]), x.astype("f8"), w.astype("f8")
    with config.override("calque_enable_x64", True):
        assert tests(same, x, w) == {3} and tests(cut, x, w) == {2}


def test_nothing_to_sum_is_zero() -> None:
    x, w = np.zeros((1, 4, 4, 0), "f4"), np.zeros((2, 2, 0, 3), "f4")
    (y,) = run(compiled(conv(), x, w), x, w)
    assert y.shape == (1, 3, 3, 3) and not y.any()


def test_holes_meet_no_weight() -> None:
    """An infinite weight makes nan of the elements that it meets, and of nothing between them; a
    -0.0 of the input is an element."""
    x = np.array([1, -0.0, 2], "f4").reshape(1, 1, 3, 1)
    w = np.array([np.inf, 1], "f4").reshape(1, 2, 1, 1)
    f = conv(lhs_dilation=(1, 2))
    (got,) = run(compiled(f, x, w), x, w)
    assert np.array_equal(got.reshape(-1), [np.inf, -0.0, np.nan, 2], equal_nan=True)
    hole, element = const(-0.0, "f32"), const(0.0, "f32")
    weight = const(3.0, "f32")
    e = Elements(lambda x: x, x)
    assert e.value(convolution.weight_met(hole, weight), {}) == 0
    assert e.value(convolution.weight_met(element, weight), {}) == 3
    pair = convolution.weight_met(Cx(hole, element), Cx(weight, weight))
    assert isinstance(pair, Cx) and e.value(pair.re, {}) == 0


def test_padding_that_cuts_everything_away() -> None:
    x, w = whole(1, 3, 3, 1), whole(1, 1, 1, 1)
    f = conv(padding=((-2, -2), (0, 0)), window_strides=(2, 2))
    (y,) = run(compiled(f, x, w), x, w)
    assert y.shape[1] == 0
