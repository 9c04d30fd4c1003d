"""Long products and convolutions of few rows: threads share the columns, and no bit tells."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.library import convolution, products
from calque.native.library.shared_columns import shared_tile
from calque.native.library.tiles import Extents, tile_for

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda a, b: a @ b,
    "computed": lambda a, b: jnp.tanh(a) @ jnp.where(b > 0, b, 0.0),
    "then": lambda a, b: jnp.exp(-jnp.abs(a @ b)) + 1,
    "turned": lambda a, b: a @ jnp.asarray(b).T.reshape(b.shape),
    "a transposed matrix": lambda a, b: a @ jnp.asarray(b).reshape(b.shape[::-1]).T,
    "stored otherwise": lambda a, b: (a @ b).astype("float16"),
    "rows turned": lambda a, b: jnp.asarray(a).reshape(a.shape[::-1]).T @ b,
}


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compiled(f: Callable[..., Any], *args: np.ndarray) -> Any:
    return calque.jit(lambda *a: f(*a)).lower(*args).compile()


def shares(e: Any) -> bool:
    return "panel[" in e.as_text("loops")


@pytest.mark.parametrize(
    "extents, dtype, answer",
    [
        (Extents(None, 128, 512, 4_608), "f32", True),
        (Extents(None, 100, 512, 600), "f32", True),
        (Extents(None, 100, 512, 600), "f64", True),
        (Extents(None, 100, 512, 500), "f32", False),  # one round
        (Extents(None, 200, 512, 4_608), "f32", False),  # many rows
        (Extents(None, 128, 100, 4_608), "f32", False),  # few columns
        (Extents(2, 128, 512, 4_608), "f32", False),
    ],
)
def test_what_is_shared(extents: Extents, dtype: str, answer: bool) -> None:
    tile = tile_for(extents, dtype)
    assert (shared_tile(extents, tile, dtype) is not None) is answer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(128, 1100, 512), (91, 600, 515), (80, 1024, 304)], ids=str)
def test_the_bits_are_those_of_shared_rows(
    form: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole and ragged tiles and panels, and of a last round that is short."""
    m, k, n = shape
    f, a, b = FORMS[form], normal(m, k), normal(k, n, seed=1)
    e = compiled(f, a, b)
    if form in ("plain", "computed") or (form == "a transposed matrix" and n % 8 == 0):
        assert shares(e)
    monkeypatch.setattr(products, "shared_tile", lambda *_: None)
    other = compiled(lambda a, b: f(a, b), a, b)
    assert not shares(other)
    np.testing.assert_array_equal(np.asarray(e(a, b)), np.asarray(other(a, b)))


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_threads(count: int) -> None:
    a, b = normal(128, 1100), normal(1100, 512, seed=1)
    before = calque.get_num_threads()
    expected = np.asarray(compiled(FORMS["then"], a, b)(a, b))
    calque.set_num_threads(count)
    try:
        found = np.asarray(compiled(lambda a, b: FORMS["then"](a, b), a, b)(a, b))
    finally:
        calque.set_num_threads(before)
    np.testing.assert_array_equal(found, expected)


SPEC = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize(
    ("batch", "side", "features", "out", "stride"),
    [(8, 4, 256, 512, 1), (8, 8, 128, 256, 2), (2, 7, 96, 300, 1), (1, 9, 64, 256, 1)],
)
def test_convolutions(
    batch: int, side: int, features: int, out: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = normal(batch, side, side, features), normal(3, 3, features, out, seed=1)

    def f(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=SPEC)
        return jnp.maximum(y, 0) + 1

    e = compiled(f, x, w)
    assert shares(e)
    monkeypatch.setattr(convolution, "shared_tile", lambda *_: None)
    other = compiled(lambda x, w: f(x, w), x, w)
    assert not shares(other)
    np.testing.assert_array_equal(np.asarray(e(x, w)), np.asarray(other(x, w)))


def test_features_apart_are_read_one_by_one() -> None:
    """Channels first: what is summed does not lie side by side, so rows are not copied."""
    x, w = normal(4, 128, 5, 5), normal(512, 128, 3, 3, seed=1)
    e = compiled(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), x, w)
    found = np.asarray(e(x, w))
    expected = np.asarray(lax.conv(jnp.asarray(x), jnp.asarray(w), (1, 1), "SAME"))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
