"""Running folds with what is fused around them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.machine.caches import Entries
from calque.native.emit import kernels, modules, objects
from tests.native.programs import compiled


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40, 1000])
def test_what_reads_a_running_sum_in_the_same_loop(n):
    x = (np.arange(n) % 3).astype(np.int32)
    want = np.cumsum(x)
    np.testing.assert_array_equal(calque.jit(lambda x: jnp.cumsum(x) - 1)(x), want - 1)
    np.testing.assert_array_equal(
        calque.jit(lambda x: jnp.cumsum(x * 2) * x + x)(x), 2 * want * x + x
    )
    both = calque.jit(lambda x: (jnp.cumsum(x + 1), jnp.cumsum(x + 1) + x))(x)
    np.testing.assert_array_equal(both[0], np.cumsum(x + 1))
    np.testing.assert_array_equal(both[1], np.cumsum(x + 1) + x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_along_axes(name, axis):
    x = np.random.default_rng(0).uniform(0.5, 1.5, (7, 33)).astype(np.float32)
    got = calque.jit(lambda x: getattr(jnp, name)(jnp.sin(x), axis) * 2 + x)(x)
    np.testing.assert_allclose(got, getattr(np, name)(np.sin(x), axis) * 2 + x, rtol=1e-5)


def test_a_gather_by_a_running_count():
    mask = np.array([0, 1, 1, 0, 1])
    data = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    got = calque.jit(lambda m, d: d[jnp.cumsum(m) - 1])(mask, data)
    np.testing.assert_array_equal(got, data[np.cumsum(mask) - 1])


@pytest.mark.parametrize("rows", [1, 2, 7, 15, 16, 17, 40, 100])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_the_order_is_that_of_the_axis(name, rows):
    """From row to row the same numbers as along a row, bit for bit."""
    rng = np.random.default_rng(rows)
    for dtype, columns in ((np.float32, 37), (np.float16, 5), (np.int32, 16), (np.complex64, 9)):
        if dtype == np.complex64 and name in ("cummax", "cummin"):
            continue
        x = (rng.uniform(-1.5, 1.5, (rows, columns)) * (4 if dtype == np.int32 else 1)).astype(
            dtype
        )
        for reverse in (False, True):

            def run(x, axis):
                return getattr(lax, name)(x * 2, axis=axis, reverse=reverse)

            got, want = (
                calque.jit(run, static_argnums=1)(x, 0),
                calque.jit(run, static_argnums=1)(x.T.copy(), 1),
            )
            np.testing.assert_array_equal(
                np.asarray(got).view(np.uint8), np.asarray(want).T.copy().view(np.uint8)
            )


def test_rows_are_read_as_they_lie():
    """Columns side by side in a vector; no gathers."""
    x = np.ones((40, 5, 33), np.float32)
    for axis in (0, 1):
        text = (
            calque.jit(lambda x, axis=axis: jnp.cumsum(jnp.exp(x) * jnp.sin(x), axis))
            .lower(x)
            .compile()
            .as_text("loops")
        )
        assert "steps from row to row" in text
    assert "steps" not in calque.jit(lambda x: jnp.cumsum(x, 2)).lower(x).compile().as_text("loops")
    want = np.cumsum(np.exp(x) * np.sin(x), 1)
    np.testing.assert_allclose(
        calque.jit(lambda x: jnp.cumsum(jnp.exp(x) * jnp.sin(x), 1))(x), want, rtol=1e-5
    )


@pytest.mark.parametrize("rows", [1, 3, 7, 16, 40])
def test_without_masks_what_is_left_of_a_vector_goes_one_by_one(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on processors that have no masked vectors: a name that is a vector in whole vectors is a
    scalar in the rest."""
    monkeypatch.setattr(modules, "processor", lambda: {"avx512": False, "half": True})
    monkeypatch.setattr(kernels, "_codes", Entries(1000))
    monkeypatch.setattr(
        objects, "version", lambda: "without masks"
    )  # not among the code of this machine on disk
    x = np.arange(rows * 37, dtype=np.float32).reshape(rows, 37) % 11
    for f, want in (
        (lambda x: jnp.cumsum(x, 0), np.cumsum(x, 0)),
        (lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2 + 1, x), x * 32 + 31),
    ):
        np.testing.assert_array_equal(compiled(f, x).call([x])[0], want)


SOURCES: dict[str, Callable[[Any], Any]] = {
    "roll": lambda x: jnp.roll(x, 1),
    "concatenate": lambda x: jnp.concatenate([x[3:], x[:3]]),
    "pad": lambda x: jnp.pad(x, (1, 0))[:-1],
    "stack": lambda x: jnp.stack([x, -x], 1).reshape(-1)[: x.shape[0]],
}


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax"])
@pytest.mark.parametrize("source", list(SOURCES))
def test_folds_of_what_is_read_under_a_guard(source: str, name: str) -> None:
    """The index is computed once and read where the guard of a roll or a pad holds."""
    for n in (17, 32):
        x = np.linspace(0.5, 1.5, n, dtype="f")

        def f(x: Any) -> Any:
            there = (jnp.arange(x.shape[0]) * 7 + 1) % x.shape[0]
            return getattr(lax, name)(SOURCES[source](x)[there])

        got = np.asarray(calque.jit(f)(x))
        np.testing.assert_array_equal(got, np.asarray(f(jnp.asarray(x))))


@pytest.mark.parametrize("shape", [(8, 1), (8, 2), (8, 17), (1, 8), (20, 33)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_a_running_fold_of_a_running_fold(name: str, axis: int, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).uniform(0.6, 1.4, shape).astype("f")
    fold = getattr(lax, name)

    def f(x: Any) -> Any:
        return fold(fold(fold(x, axis) * 0.5, axis) + 0.25, axis)

    np.testing.assert_allclose(calque.jit(f)(x), f(jnp.asarray(x)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(6, 16), (8, 17), (9, 18), (3, 40)])
@pytest.mark.parametrize("name", ["cumsum", "cummax", "cummin"])
def test_a_running_fold_beside_the_sums_that_it_reads(name: str, shape: tuple[int, ...]) -> None:
    """The sum of a product is known when its turn's loop inside has run, the fold before it."""
    x = np.random.default_rng(2).standard_normal(shape).astype("f")

    def f(x: Any) -> Any:
        v = x @ x.T @ x * 0.5
        return v, getattr(lax, name)(v, 1)

    for got, want in zip(calque.jit(f)(x), f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
