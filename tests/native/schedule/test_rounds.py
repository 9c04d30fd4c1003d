"""Long products lose few digits, and their order is decided by the extent alone: the same bits in
jit and eager, alone and beside others, with any number of threads, for fixed and free sizes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.machine.threads import get_num_threads, set_num_threads

EXACT_TO = {"float32": 4e-6, "bfloat16": 5e-3, "float16": 6e-4, "complex64": 4e-6}


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


def positive(*shape: int, dtype: str = "float32", high: float = 1.0) -> np.ndarray:
    x = np.random.default_rng(shape[0]).uniform(0, high, shape)
    return np.asarray(jnp.asarray(x.astype(np.float32)).astype(dtype))


def far(got: Any, want: np.ndarray) -> float:
    wide = np.asarray(got).astype(want.dtype)
    return float(np.max(np.abs(wide - want) / np.abs(want)))


@pytest.mark.parametrize("k", [511, 512, 513, 1024, 100_000, 1_000_000, 10_000_000])
def test_columns_with_themselves(k: int) -> None:
    """All summands are positive, so that what is lost adds up."""
    w = positive(k, 3)
    want = w.astype(np.float64).T @ w.astype(np.float64)
    bound = EXACT_TO["float32"] if k <= 1_000_000 else 1e-5
    assert far(jax.jit(lambda w: w.T @ w)(w), want) < bound
    assert far(jnp.asarray(w).T @ jnp.asarray(w), want) < bound


def test_covariance_of_many_samples() -> None:
    x = 3 + positive(2, 1_000_000)
    want = np.cov(x.astype(np.float64))
    assert np.max(np.abs(np.asarray(jax.jit(jnp.cov)(x)) - want)) < 1e-5 * np.max(want)


FORMS: dict[str, Any] = {
    "one_row": lambda x, y: x[:1] @ y,
    "one_column": lambda x, y: x @ y[:, :1],
    "rows": lambda x, y: x @ y,
    "turned": lambda x, y: jnp.einsum("mk,kn->nm", x, y),
    "vectors": lambda x, y: jnp.dot(x[0], y[:, 0]),
    "vdot": lambda x, y: jnp.vdot(x[0], y[:, 0]),
    "batched": lambda x, y: jnp.einsum("bmk,kn->bmn", jnp.stack([x, x]), y),
    "several_axes": lambda x, y: jnp.einsum(
        "mab,abn->mn", x.reshape(len(x), 100, -1), y.reshape(100, -1, y.shape[1])
    ),
    "followed": lambda x, y: (jnp.abs(x @ y) + 1).astype(jnp.float32) - 1,
}


@pytest.mark.parametrize("dtype", EXACT_TO)
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form: str, dtype: str) -> None:
    k = 400_000
    high = 0.02 if dtype == "float16" else 1.0  # sums must stay finite
    x, y = positive(5, k, dtype=dtype, high=high), positive(k, 4, dtype=dtype, high=high)
    wide = np.complex128 if dtype == "complex64" else np.float64
    f = FORMS[form]
    want = np.asarray(x.astype(wide) @ y.astype(wide))
    want = {
        "one_row": want[:1],
        "one_column": want[:, :1],
        "turned": want.T,
        "vectors": want[0, 0],
        "vdot": want[0, 0],
        "batched": np.stack([want, want]),
        "followed": want.real,
    }.get(form, want)
    got, eager = jax.jit(f)(x, y), f(jnp.asarray(x), jnp.asarray(y))
    assert far(got, want) < EXACT_TO[dtype]
    assert far(eager, want) < EXACT_TO[dtype]


def test_gradients_of_weights() -> None:
    """A convolution whose kernel is as long as what it slides over."""
    x, dy = positive(4, 1, 200, 700), positive(5, 1, 200, 700)[:4]
    w = np.zeros((1, 1, 3, 3), np.float32)

    def loss(w: Any) -> Any:
        return (lax.conv(x, w, (1, 1), "SAME") * dy).sum()

    got = np.asarray(jax.jit(jax.grad(loss))(w))
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = [
        [np.sum(wide[:, :, i : i + 200, j : j + 700] * dy.astype(np.float64)) for j in range(3)]
        for i in range(3)
    ]
    assert far(got[0, 0], np.array(want)) < 4e-6


def test_ragged_products() -> None:
    k = 200_000
    x, y = positive(6, k), positive(2 * k, 3).reshape(2, k, 3)
    sizes = np.array([2, 4], np.int32)
    want = np.concatenate(
        [
            x[:2].astype(np.float64) @ y[0].astype(np.float64),
            x[2:].astype(np.float64) @ y[1].astype(np.float64),
        ]
    )
    assert far(jax.jit(lax.ragged_dot)(x, y, sizes), want) < 4e-6


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "int32"])
@pytest.mark.parametrize("k", [255, 513, 1300, 5000])
def test_the_same_bits_everywhere(k: int, dtype: str) -> None:
    """One element, computed alone, in a vector, in tiles, in lanes, followed by others, eagerly and
    by threads."""
    with config.override("calque_enable_x64", True), config.override("calque_exact", True):
        rng = np.random.default_rng(k)
        x, y = (
            np.asarray(jnp.asarray(rng.standard_normal(s) * 9).astype(dtype))
            for s in ((40, k), (k, 40))
        )

        def product(x: Any, y: Any) -> Any:
            return lax.dot_general(x, y, (((1,), (0,)), ((), ())))

        whole = np.asarray(jax.jit(product)(x, y))
        found = {
            "eager": product(jnp.asarray(x), jnp.asarray(y)),
            "narrow": jnp.concatenate(
                [jax.jit(product)(x, y[:, i : i + 8]) for i in range(0, 40, 8)], 1
            ),
            "one row": jnp.concatenate([jax.jit(product)(x[i : i + 1], y) for i in range(40)]),
            "one column": jnp.concatenate(
                [jax.jit(product)(x, y[:, i : i + 1]) for i in range(40)], 1
            ),
            "followed": -jax.jit(lambda x, y: -product(x, y))(x, y),
            "in another shape": jnp.reshape(
                jax.jit(lambda x, y: product(x, y).reshape(4, 10, 40))(x, y), (40, 40)
            ),
            "lanes": jax.jit(jax.vmap(lambda r: product(r[None], y)[0]))(x),
            "in a loop": jax.jit(lambda x, y: lax.map(lambda r: product(r[None], y)[0], x))(x, y),
        }
        for count in (1, 2):
            set_num_threads(count)
            found[f"{count} threads"] = jax.jit(product)(x, y)
        free = jax.jit(product)
        for m in (3, 7, 11):
            free(x[:m], y[:, :m])
        found["free rows"] = free(x, y)
        for n in (100, 200, k):
            found["free depth"] = free(x[:, :n], y[:n])
        for where, got in found.items():
            assert np.asarray(got).tobytes() == whole.tobytes(), where


def test_a_short_sum_is_one_round() -> None:
    k = 512
    x, y = (
        np.random.default_rng(k).standard_normal(s).astype(np.float32) for s in ((9, k), (k, 9))
    )
    want = np.zeros((9, 9), np.float32)
    for i in range(k):
        want += x[:, i : i + 1] * y[i]
    with config.override("calque_exact", True):
        np.testing.assert_array_equal(jax.jit(lambda x, y: x @ y)(x, y), want)


def test_a_long_sum_is_the_sum_of_its_rounds() -> None:
    k = 1300
    x, y = (
        np.random.default_rng(k).standard_normal(s).astype(np.float32) for s in ((9, k), (k, 9))
    )
    want = np.zeros((9, 9), np.float32)
    for first in range(0, k, 512):
        part = np.zeros((9, 9), np.float32)
        for i in range(first, min(first + 512, k)):
            part += x[:, i : i + 1] * y[i]
        want += part
    with config.override("calque_exact", True):
        np.testing.assert_array_equal(jax.jit(lambda x, y: x @ y)(x, y), want)
