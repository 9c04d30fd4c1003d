"""Convolutions of dilated inputs as several of the input itself."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.native.lower import convolution, phases
from calque.native.lower.phases import Phase
from tests.compositions.checks import on_reference
from tests.native.lower.shared import Elements
from tests.native.programs import compiled, run


@pytest.fixture(autouse=True)
def little_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "TILED", 0)


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def conv(nd: int, **options: Any) -> Any:
    """A convolution of [batch, places.., features]."""
    numbers = lax.ConvDimensionNumbers(
        (0, nd + 1, *range(1, nd + 1)), (nd + 1, nd, *range(nd)), (0, nd + 1, *range(1, nd + 1))
    )
    given = {"window_strides": (1,) * nd, "padding": ((0, 0),) * nd, "dimension_numbers": numbers}
    return lambda x, w: lax.conv_general_dilated(x, w, **{**given, **options})


SIZES = [*itertools.product((1, 4, 7), (1, 3, 4), (2, 3), (1, 2, 3), (1, 2), (-1, 0, 2))]


@pytest.mark.parametrize("n, kernel, gap, stride, dilation, low", SIZES)
def test_each_place_of_the_result_sums_what_it_meets(
    n: int, kernel: int, gap: int, stride: int, dilation: int, low: int
) -> None:
    size = 5
    found = phases.phases(n, kernel, size, gap, (stride, dilation, low))
    for o in range(size):
        f = found[o % len(found)]
        q = o // len(found)
        assert q < f.size
        met = [
            (k, (o * stride + k * dilation - low) // gap)
            for k in range(kernel)
            if (o * stride + k * dilation - low) % gap == 0
        ]
        reads = [
            (f.first + t * f.step, q * f.stride + t * f.dilation - f.padding[0])
            for t in range(f.count)
        ]
        assert reads == met
    for f in found:
        if f.count:  # the padding is what the last place of the result needs
            last = (f.size - 1) * f.stride + (f.count - 1) * f.dilation - f.padding[0]
            assert last == n - 1 + f.padding[1]


CASES: dict[str, tuple[int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "upsampling": (2, (2, 5, 4, 3), (4, 4, 3, 2), {"padding": ((2, 2), (2, 2))}),
    "the gradient of a stride": (2, (1, 4, 4, 3), (3, 3, 3, 2), {"padding": ((1, 2), (2, 1))}),
    "a kernel of one place": (2, (2, 3, 3, 4), (1, 1, 4, 2), {"padding": ((0, 1), (0, 1))}),
    "one direction": (2, (2, 5, 4, 3), (3, 3, 3, 2), {"lhs_dilation": (1, 2)}),
    "line": (1, (2, 6, 3), (5, 3, 2), {"lhs_dilation": (3,), "padding": ((3, -1),)}),
    "space": (3, (1, 3, 2, 3, 2), (3, 3, 3, 2, 2), {"padding": ((1, 1),) * 3}),
    "strides": (2, (1, 5, 5, 2), (4, 3, 2, 2), {"window_strides": (3, 2), "rhs_dilation": (2, 1)}),
    "groups": (2, (1, 4, 4, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
    "groups of the batch": (2, (4, 3, 3, 2), (3, 2, 2, 4), {"batch_group_count": 2}),
    "cut": (2, (2, 5, 5, 2), (2, 2, 2, 2), {"padding": ((-3, 2), (1, -4))}),
}


@pytest.mark.parametrize("tiles", [0, 1 << 40])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_dilated_input(
    name: str, tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers: every order of the sum is exact."""
    monkeypatch.setattr(convolution, "TILED", tiles)
    nd, x_shape, w_shape, options = CASES[name]
    f = conv(nd, **{"lhs_dilation": (2,) * nd, **options})
    x, w = whole(*x_shape), whole(*w_shape, seed=1)
    with on_reference():
        want = np.asarray(f(x, w))
    np.testing.assert_array_equal(run(compiled(f, x, w), x, w)[0], want)


def pieces(f: Any, x: np.ndarray, w: np.ndarray) -> tuple[int, int]:
    """How many convolutions there are, and how many of them are products of two matrices."""
    ops = [n.op for n in Elements(f, x, w).graph.nodes]
    return sum(op in ("conv", "conv_tiled") for op in ops), ops.count("matmul")


def test_the_kernel_is_asked_once_for_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "TILED", 0)
    x, w = whole(2, 5, 5, 3), whole(4, 4, 3, 2)
    f = conv(2, lhs_dilation=(2, 2), padding=((2, 2), (2, 2)))
    nodes = Elements(f, x, w).graph.nodes
    tiled = [n for n in nodes if n.op == "conv_tiled"]
    assert len(tiled) == 4 and len({n.args[2] for n in tiled}) == 1
    assert sum(n.op == "is_finite" for n in nodes) == 1


def test_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = whole(2, 5, 5, 3), whole(4, 4, 3, 2)
    assert pieces(conv(2, lhs_dilation=(2, 2), padding=((2, 2), (2, 2))), x, w) == (4, 0)
    assert pieces(conv(2, lhs_dilation=(1, 2)), x, w) == (2, 0)
    assert pieces(conv(2, lhs_dilation=(2, 2), window_strides=(2, 2)), x, w) == (1, 0)
    assert pieces(conv(2), x, w) == (1, 0)
    one = whole(1, 1, 3, 2)
    assert pieces(conv(2, lhs_dilation=(2, 2)), x, one) == (0, 1)  # the rest is zero
    monkeypatch.setattr(phases, "MOST", 3)
    assert pieces(conv(2, lhs_dilation=(2, 2)), x, w) == (1, 0)
    monkeypatch.setattr(phases, "TILED", 1 << 40)
    assert pieces(conv(2, lhs_dilation=(1, 2)), x, w) == (1, 0)
    assert phases.phases(4, 1, 7, 2, (1, 1, 0)) == [
        Phase(0, 2, 1, 1, 1, (0, 0), 4),
        Phase(1, 2, 0, 1, 1, (-1, 0), 4),
    ]


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("tiles", [0, 1 << 40])
def test_gaps_and_padding_meet_no_weight(
    weight: float, tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "TILED", tiles)
    x, w = whole(1, 3, 4, 2), whole(3, 4, 2, 2, seed=1)
    w[1, 2, 0, 1] = weight
    x[0, 0, 0, 0] = -0.0
    f = conv(2, lhs_dilation=(2, 3), padding=((2, 1), (2, 2)))
    with on_reference():
        want = np.asarray(f(x, w))
    np.testing.assert_array_equal(run(compiled(f, x, w), x, w)[0], want)
    assert np.isfinite(want).any() and not np.isfinite(want).all()


def test_bits_are_those_of_exact_mode_and_of_eager_calls() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype("f") for s in ((2, 6, 5, 24), (4, 3, 24, 40)))
    f = conv(2, lhs_dilation=(2, 2), padding=((2, 2), (1, 2)))
    for exact in (False, True):
        with config.override("calque_exact", exact):
            want = np.asarray(f(x, w)).tobytes()
            jitted = calque.jit(lambda x, w: f(x, w))
            for _ in range(2):
                assert np.asarray(jitted(x, w)).tobytes() == want
        assert run(compiled(f, x, w, exact=exact), x, w)[0].tobytes() == want


def test_the_gradient_of_a_strided_convolution() -> None:
    x, w = whole(2, 7, 8, 3), whole(3, 3, 3, 4, seed=1)
    f = conv(2, window_strides=(2, 2), padding=((1, 1), (1, 1)))
    loss = lambda x, w: (jnp.asarray(f(x, w)) ** 2).sum()  # noqa: E731
    with on_reference():
        want = calque.grad(loss, (0, 1))(x, w)
    for got, each in zip(calque.jit(calque.grad(loss, (0, 1)))(x, w), want, strict=True):
        np.testing.assert_array_equal(got, each)
