"""Windows on XLA, against loops over them."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import calque as jax
from calque import lax
from tests.xla.lower.shared import on_both
from tests.xla.mlir import needs_jaxlib

rng = np.random.default_rng(0)
x = rng.permutation(30).reshape(5, 6).astype(np.float32)
WINDOW, STRIDES, PADS = (2, 3), (1, 2), ((1, 0), (0, 2))


def windows(x: np.ndarray, fill: float, pads: Any = PADS) -> Any:
    """The windows, and where each of their elements is in the padded array."""
    padded = np.pad(x, pads, constant_values=fill)
    counts = [(n - w) // s + 1 for n, w, s in zip(padded.shape, WINDOW, STRIDES)]
    for place in product(*map(range, counts)):
        low = [p * s for p, s in zip(place, STRIDES)]
        part = tuple(slice(a, a + w) for a, w in zip(low, WINDOW))
        yield place, padded[part], part


@needs_jaxlib
@pytest.mark.parametrize(
    ("f", "start", "fold"),
    [(lax.add, 0.0, np.sum), (lax.max, -np.inf, np.max), (lax.min, np.inf, np.min)],
)
def test_folds_over_windows(f: Any, start: float, fold: Any) -> None:
    (found,) = on_both(
        lambda x: lax.reduce_window(x, np.float32(start), f, WINDOW, STRIDES, PADS), x
    )
    for place, part, _ in windows(x, start):
        assert found[place] == fold(part)


@needs_jaxlib
def test_a_program_of_its_own_over_several_arrays() -> None:
    def both(a: Any, b: Any) -> Any:
        return lax.mul(a[0], b[0]), lax.max(a[1], lax.neg(b[1]))

    def folded(x: Any) -> Any:
        starts = (np.float32(1), np.float32(-100))
        return lax.reduce_window((x / 30 + 1, x), starts, both, WINDOW, STRIDES, "VALID")

    products, _ = on_both(folded, x, rtol=1e-5)
    none = ((0, 0), (0, 0))
    for place, part, _ in windows(x / 30 + 1, 1, none):
        np.testing.assert_allclose(products[place], part.prod(), rtol=1e-5)


@needs_jaxlib
def test_windows_with_holes() -> None:
    def folded(x: Any) -> Any:
        return lax.reduce_window(x, np.float32(0), lax.add, (2, 2), (1, 1), "VALID", (2, 1), (1, 3))

    (found,) = on_both(folded, x)
    spread = np.zeros((9, 6), np.float32)
    spread[::2] = x
    np.testing.assert_array_equal(
        found, (spread[:-1, :-3] + spread[1:, :-3] + spread[:-1, 3:] + spread[1:, 3:])
    )


@needs_jaxlib
@pytest.mark.parametrize("name", ["max", "min"])
def test_gradients_of_extremes_go_where_these_are(name: str) -> None:
    start = np.float32(-np.inf if name == "max" else np.inf)

    def weighed(x: Any) -> Any:
        found = lax.reduce_window(x, start, getattr(lax, name), WINDOW, STRIDES, PADS)
        return (found * np.arange(found.size, dtype=np.float32).reshape(found.shape)).sum()

    (found,) = on_both(jax.grad(weighed), x)
    want = np.zeros((6, 8), np.float32)
    for weight, (_, part, where) in enumerate(windows(x, start)):
        at = part.argmax() if name == "max" else part.argmin()
        place = np.unravel_index(at, part.shape)
        want[where[0].start + place[0], where[1].start + place[1]] += weight
    np.testing.assert_array_equal(found, want[1:, :-2])


@needs_jaxlib
def test_tangents_are_brought_by_what_is_selected() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, np.float32(-np.inf), lax.max, WINDOW, STRIDES, PADS)

    tangent = rng.integers(-9, 10, x.shape).astype(np.float32)
    _, found = on_both(lambda x, t: jax.jvp(pooled, (x,), (t,)), x, tangent)
    padded = np.pad(tangent, PADS)
    for place, part, where in windows(x, -np.inf):
        assert found[place] == padded[where].ravel()[part.argmax()]


@needs_jaxlib
def test_select_and_scatter_with_programs_of_its_own() -> None:
    source = np.float32([[1, 2], [3, 4]])

    def scattered(x: Any, s: Any) -> Any:
        return lax.select_and_scatter(
            x, lax.lt, (2, 3), (2, 3), ((0, 0), (0, 0)), s, np.float32(10), lax.mul
        )

    if not hasattr(lax, "select_and_scatter"):
        pytest.skip("lax has no select_and_scatter")
    (found,) = on_both(scattered, x[:4], source)
    want = np.full((4, 6), 10, np.float32)
    for i, j in product(range(2), range(2)):
        part = x[2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
        r, c = np.unravel_index(part.argmin(), part.shape)
        want[2 * i + r, 3 * j + c] *= source[i, j]
    np.testing.assert_array_equal(found, want)


@needs_jaxlib
def test_any_program_folds_several_arrays() -> None:
    def larger(a: Any, b: Any) -> Any:
        keep = lax.ge(a[0], b[0])
        return lax.select(keep, a[0], b[0]), lax.select(keep, a[1], b[1])

    def folded(x: Any) -> Any:
        places = lax.broadcasted_iota(np.int32, x.shape, 1)
        return lax.reduce((x, places), (np.float32(-1), np.int32(0)), larger, (1,))

    values, places = on_both(folded, x)
    np.testing.assert_array_equal(values, x.max(1))
    np.testing.assert_array_equal(places, x.argmax(1))
