"""Convolutions as kernels: values, tiles and plain nests alike, for every layout, stride, dilation
and group."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.machine.threads import get_num_threads, set_num_threads
from calque.native.lower import convolution
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


def met_only(x: Any, w: Any, p: dict[str, Any]) -> Any:
    """The definition in NumPy: every element of the input is scattered, times the weights it
    meets; (batch, feature, *space) and (out, in, *space), no groups."""
    wide = "complex128" if x.dtype.kind == "c" else "float64"
    sizes = [
        ((n - 1) * d + low + high - (k - 1) * r) // s + 1
        for n, d, (low, high), k, r, s in zip(
            x.shape[2:], p["lhs_dilation"], p["padding"], w.shape[2:], p["rhs_dilation"],
            p["window_strides"],
        )
    ]  # fmt: skip
    out = np.zeros((x.shape[0], w.shape[0], *sizes), wide)
    for at in np.ndindex(*x.shape[2:]):
        for k in np.ndindex(*w.shape[2:]):
            far = [
                i * d + low - j * r
                for i, d, (low, _), j, r in zip(
                    at, p["lhs_dilation"], p["padding"], k, p["rhs_dilation"]
                )
            ]
            to = [f // s for f, s in zip(far, p["window_strides"])]
            here = all(f % s == 0 for f, s in zip(far, p["window_strides"]))
            if here and all(0 <= t < n for t, n in zip(to, sizes)):
                for n, o, i in np.ndindex(x.shape[0], *w.shape[:2]):
                    out[(n, o, *to)] += x[(n, i, *at)] * w[(o, i, *k)]
    return out


DILATED: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "plain nest": ((1, 2, 3, 4), (3, 2, 2, 3), {"lhs_dilation": (2, 3), "padding": ((1, 2),
    (0, 1))}),
    "tiles": ((2, 8, 6, 7), (20, 8, 3, 3), {"lhs_dilation": (2, 2), "padding": ((1, 2), (2, -1))}),
    "one dimension dilated": ((2, 8, 9, 7), (12, 8, 3, 3), {"lhs_dilation": (1, 2), "padding":
    ((1, 1), (1, 1)), "window_strides": (2, 1)}),
    "both dilated": ((2, 8, 6, 7), (16, 8, 2, 3), {"lhs_dilation": (3, 2), "rhs_dilation": (2, 3),
    "padding": ((1, 2), (2, 3))}),
    "a long sum": ((1, 600, 3, 4), (8, 600, 2, 2), {"lhs_dilation": (2, 2), "padding": ((1, 1),
    (1, 1))}),
    "a single element": ((4, 8, 1, 1), (16, 8, 3, 3), {"lhs_dilation": (2, 2), "padding": ((2, 2),
    (2, 2))}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", DILATED)
def test_holes_meet_no_weight(name: str, bad: float, dtype: str) -> None:
    """A weight that is not finite reaches what real elements (zeros of either sign, too) lead to,
    not the holes and the padding of a dilated input."""
    l, r, more = DILATED[name]
    p = {**params_of("dilated input"), "rhs_dilation": (1, 1), **more}
    p["dimension_numbers"] = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    with config.override("calque_enable_x64", True):
        x, w = normal(*l).astype(dtype), normal(*r, seed=1).astype(dtype)
        x[0, 0, 0, 0], x[-1, -1, -1, -1] = 0.0, -0.0
        w[0, 1, 0, 0] = w[2, 0, -1, -1] = bad
        made = compiled(lambda x, w: CONV.bind(x, w, **p), x, w)
        got, meaning = np.asarray(made.call([x, w])[0]), CONV.meaning(x, w, **p)
    with np.errstate(invalid="ignore"):
        want = met_only(x.astype("c16" if dtype[0] == "c" else "f8"), w, p)
    assert got.dtype == dtype and 0 < np.isfinite(want).mean() < 1
    if dtype[0] == "c":  # what is infinite and what is nan of a product is the machine's
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
        np.testing.assert_array_equal(np.isfinite(meaning), np.isfinite(want))
        got, meaning, want = (a[np.isfinite(want)] for a in (got, meaning, want))
    close = 2e-2 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(got, want, rtol=close, atol=close)
    np.testing.assert_allclose(meaning, want, rtol=close, atol=close)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("features", [1, 20])
def test_padding_meets_no_weight(features: int, dtype: str, bad: float) -> None:
    """Nor does an input that is padded and no more, but for tiles of single precision, which
    multiply its zeros as XLA's do; those of derivatives do not."""
    p = {**params_of("dilated input"), "rhs_dilation": (1, 1), "lhs_dilation": (1, 1)}
    p |= {"padding": ((1, 1), (2, 0))}
    p["dimension_numbers"] = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    with config.override("calque_enable_x64", True):
        x, w = (v.astype(dtype) for v in (normal(2, 8, 9, 20), normal(features, 8, 3, 3, seed=1)))
        x[0, 0, 0, 0], w[0, 1, 0, 0] = -0.0, bad
        got = np.asarray(compiled(lambda x, w: CONV.bind(x, w, **p), x, w).call([x, w])[0])
        slope = calque.jit(calque.grad(lambda x, w: CONV.bind(x, w, **p).sum()))
        back, reached = slope(x, w), slope(x, (~np.isfinite(w)).astype(dtype)) != 0
    with np.errstate(invalid="ignore"):
        want = met_only(x.astype("f8"), w, p)
    np.testing.assert_allclose(CONV.meaning(x, w, **p), want, rtol=1e-4, atol=1e-4)
    if dtype == "float64" or features == 1:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(~np.isfinite(np.asarray(back)), reached)


def test_holes_of_free_sizes_and_in_loops() -> None:
    """Free sizes know their holes, and so do the rounds of a loop, each by its own weights."""
    numbers = ("NCHW", "OIHW", "NCHW")
    p = {**params_of("dilated input"), "lhs_dilation": (2, 2), "padding": ((1, 1), (1, 1))}
    traces = []

    def up(x: Any, w: Any) -> Any:
        traces.append(x.shape)
        one, pads, two = (1, 1), p["padding"], (2, 2)
        return lax.conv_general_dilated(x, w, one, pads, two, dimension_numbers=numbers)

    jitted, weights = calque.jit(up), normal(3, 12, 8, 3, 3, seed=1)
    weights[1, 4, 2, 0, 1] = np.inf
    for b, h in ((2, 6), (3, 6), (3, 7), (4, 9), (5, 8), (2, 11)):
        x = normal(b, 8, h, 6)
        for w in weights:
            want = met_only(x.astype("f8"), w, p)
            np.testing.assert_allclose(np.asarray(jitted(x, w)), want, rtol=1e-4, atol=1e-4)
    assert len(traces) < 6
    mapped = calque.jit(lambda x, ws: lax.map(lambda w: up(x, w), ws))
    wants = np.stack([met_only(x.astype("f8"), w, p) for w in weights])
    np.testing.assert_allclose(np.asarray(mapped(x, weights)), wants, rtol=1e-4, atol=1e-4)


def test_finite_weights_never_ask_for_holes() -> None:
    """The same bits, whether one weight elsewhere makes the kernel ask or not."""
    x, w = normal(2, 6, 7, 8), normal(3, 3, 8, 20, seed=1)
    x[0, :, :, 0] = -0.0

    def up(x: Any, w: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers)

    jitted, odd = calque.jit(up), w.copy()
    odd[..., 3] = np.nan
    finite, asked = np.asarray(jitted(x, w)), np.asarray(jitted(x, odd))
    rest = np.arange(20) != 3
    assert finite[..., rest].tobytes() == asked[..., rest].tobytes()
    assert np.isnan(asked[..., 3]).all()


@pytest.mark.peer
@pytest.mark.parametrize("channels", [1, 16])
def test_not_finite_weights_of_strided_convolutions_beside_jax(channels: int) -> None:
    jax = pytest.importorskip("jax")
    x, w = normal(2, 9, 8, channels), normal(3, 3, channels, channels, seed=1)
    w[0, 0, 0, 0], w[2, 1, -1, 0] = np.inf, np.nan

    def of(np_of: Any, lax_of: Any) -> Any:
        def f(x: Any) -> Any:
            y = lax_of.conv_general_dilated(x, w, (2, 3), "SAME", dimension_numbers=numbers)
            return np_of.sum(y)

        return f

    def up(x: Any) -> Any:
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers)

    numbers = ("NHWC", "HWIO", "NHWC")
    for got, want in (
        (
            calque.jit(up)(x),
            jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers),
        ),
        (calque.jit(calque.grad(of(jnp, lax)))(x), jax.grad(of(jax.numpy, jax.lax))(x)),
    ):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)
        assert 0 < np.isfinite(np.asarray(want)).mean() < 1


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


def test_what_is_far_is_read_by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of tiles read a right side beyond the caches round by round, so that it is fetched
    once for all of them: the same bits, also with what follows and for free sizes."""
    w, bias = normal(3, 3, 80, 24, seed=1), normal(24, seed=2)

    def f(x: Any, w: Any, b: Any) -> Any:
        y = jnp.maximum(conv(x, w) + b, 0)
        return [y, calque.grad(lambda w: (conv(x, w) * y).sum())(w)]

    x = normal(8, 9, 8, 80)  # sums of 720 and of 576 products
    near = compiled(f, x, w, bias)
    monkeypatch.setattr("calque.native.library.convolution.FAR", 1)
    far = compiled(f, x, w, bias)
    assert "for r <" not in near.as_text("loops")
    assert far.as_text("loops").count("for r <") == 2
    for got, want in zip(far.call([x, w, bias]), near.call([x, w, bias])):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    jitted = calque.jit(f)
    for batch in (8, 9, 16, 3):
        x = normal(batch, 9, 8, 80)
        for got, want in zip(jitted(x, w, bias), near_of(f, monkeypatch, x, w, bias)):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def near_of(f: Any, monkeypatch: pytest.MonkeyPatch, *args: Any) -> Any:
    with monkeypatch.context() as m:
        m.setattr("calque.native.library.convolution.FAR", 1 << 40)
        return compiled(f, *args).call(list(args))


def conv_of(features: str, kernel: str, x: Any, w: Any) -> Any:
    numbers = (features, kernel, features)
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)


@pytest.mark.parametrize(
    "form, x, w, plain",
    [
        (jnp.convolve, (3000,), (9,), True),
        (partial(conv_of, "NCHW", "OIHW"), (2, 8, 40, 40), (1, 8, 3, 3), True),
        (partial(conv_of, "NHWC", "HWIO"), (2, 40, 40, 1), (3, 3, 1, 1), True),
        (partial(conv_of, "NHWC", "HWIO"), (2, 40, 40, 8), (3, 3, 8, 1), False),
        (partial(conv_of, "NCHW", "OIHW"), (2, 8, 40, 40), (4, 8, 3, 3), False),
        (partial(conv_of, "NCHW", "OIHW"), (30, 8, 10, 10), (1, 8, 3, 3), False),
    ],
    ids=["signal", "picture", "one feature", "features apart", "four features", "short lines"],
)
def test_one_feature_is_summed_along_lines(
    form: Any, x: Any, w: Any, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where lines of places lie as they are read; the bits are those of tiles."""
    x, w = normal(*x), normal(*w)
    f = compiled(form, x, w)
    assert ("conv_tiled" not in f.as_text("graph")) == plain
    monkeypatch.setattr(convolution, "ALONG", 1 << 40)
    tiles = compiled(lambda x, w: form(x, w), x, w)
    assert "conv_tiled" in tiles.as_text("graph")
    (a,), (b,) = f.call([x, w]), tiles.call([x, w])
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
