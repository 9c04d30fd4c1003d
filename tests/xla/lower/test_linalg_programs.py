"""What has no routine on TPUs, as the programs that are written for them: run by XLA's CPU."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from calque.core.config import config
from calque.xla.lower import linalg_programs
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
linalg = lax.linalg
random = np.random.default_rng(7)
KINDS = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True):
        yield


def for_tpu(f: Any, *args: Any) -> list[np.ndarray]:
    """Results of the program for a TPU, which XLA's CPU takes where nobody checks."""
    anywhere = [export.DisabledSafetyCheck.platform()]
    made = export.export(jax.jit(f), platforms=["tpu"], disabled_checks=anywhere)(*args)
    return [np.asarray(x) for x in jax.tree.leaves(jax.jit(made.call, backend="xla_cpu")(*args))]


def drawn(dtype: str, *shape: int) -> np.ndarray:
    x = random.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * random.standard_normal(shape)
    return np.asarray(x, dtype)


def check_svd(a: np.ndarray, full: bool) -> None:
    """Values as NumPy has them, orthogonal sides, and a product that is the matrix."""
    u, s, vt = for_tpu(lambda x: linalg.svd(x, full_matrices=full), a)
    m, n = a.shape[-2:]
    k, eps = min(m, n), 40 * np.finfo(a.dtype).eps
    largest = np.abs(a).max() * max(m, n)
    assert (u.shape[-1], vt.shape[-2]) == ((m, n) if full else (k, k))
    assert u.dtype == vt.dtype == a.dtype and s.dtype == a.real.dtype
    exact = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    np.testing.assert_allclose(s, np.linalg.svd(exact, compute_uv=False), atol=eps * largest)
    assert (s >= 0).all() and (np.diff(s) <= 0).all()
    product = u[..., :k] * s[..., None, :].astype(a.dtype) @ vt[..., :k, :]
    np.testing.assert_allclose(product, a, atol=eps * largest)
    for side in (np.conj(np.swapaxes(u, -1, -2)), vt):
        inner = side @ np.conj(np.swapaxes(side, -1, -2))
        unit = np.broadcast_to(np.eye(side.shape[-2]), inner.shape)
        np.testing.assert_allclose(inner, unit, atol=eps)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    "dtype, shape",
    [
        ("float32", (6, 3)), ("float32", (2, 3, 4, 5)), ("float64", (12, 12)),
        ("complex64", (3, 7)), ("complex128", (5, 4)), ("float32", (1, 3)), ("float64", (2, 1)),
    ],
)  # fmt: skip
def test_singular_values(dtype: str, shape: tuple[int, ...], full: bool) -> None:
    check_svd(drawn(dtype, *shape), full)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_matrices_of_lesser_rank(dtype: str) -> None:
    tall = drawn(dtype, 9, 2) @ drawn(dtype, 2, 6)
    graded = drawn(dtype, 9, 6) * np.asarray(10.0 ** -np.arange(0, 48, 8), tall.real.dtype)
    ones, nothing = np.ones_like(tall), np.zeros_like(tall)
    check_svd(np.stack([tall, graded, ones, nothing]), True)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_large_elements(scale: float) -> None:
    check_svd(drawn("float32", 5, 4) * np.float32(scale), False)


def test_values_alone_are_the_same() -> None:
    a = drawn("float32", 8, 5)
    (alone,) = for_tpu(lambda x: linalg.svd(x, compute_uv=False), a)
    whole = for_tpu(lambda x: linalg.svd(x, full_matrices=False), a)[1]
    np.testing.assert_array_equal(alone, whole)


def test_elements_that_are_no_numbers_stay_within_their_matrix() -> None:
    a = np.stack([drawn("float32", 3, 4)] * 3)
    a[0, 1, 1], a[2, 0, 0] = np.nan, np.inf
    for found in for_tpu(linalg.svd, a):
        assert np.isnan(found[[0, 2]]).all() and np.isfinite(found[1]).all()


def test_what_is_made_of_singular_values() -> None:
    a = drawn("float32", 6, 4)
    close = {"rtol": 2e-4, "atol": 2e-5}
    np.testing.assert_allclose(for_tpu(jnp.linalg.pinv, a)[0], np.linalg.pinv(a), **close)
    b = drawn("float32", 6)
    found = for_tpu(lambda a, b: jnp.linalg.lstsq(a, b)[0], a, b)[0]
    np.testing.assert_allclose(found, np.linalg.lstsq(a, b, rcond=None)[0], **close)
    (slope,) = for_tpu(jax.grad(lambda a: jnp.linalg.norm(a, "nuc")), a)
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(slope, u @ vt, **close)


def test_rotations_meet_every_pair_once_in_a_sweep() -> None:
    """Also of odd numbers; and everybody is back in his place behind it."""
    for count in (2, 4, 6, 10):
        names = np.arange(count, dtype=np.float32)[:, None]
        top, bottom = jnp.asarray(names[: count // 2]), jnp.asarray(names[count // 2 :])
        met = set()
        for _ in range(max(count - 1, 1)):
            met |= {frozenset(p) for p in zip(np.ravel(top).tolist(), np.ravel(bottom).tolist())}
            top, bottom = linalg_programs.next_round(top, bottom)
        assert len(met) == count * (count - 1) // 2
        np.testing.assert_array_equal(np.concatenate([top, bottom]), names)


def system(dtype: str, *batch: int, n: int) -> list[np.ndarray]:
    """Diagonals whose elimination must exchange rows; what nobody reads is no number."""
    dl, d, du = (drawn(dtype, *batch, n) for _ in range(3))
    d[..., 0] *= 1e-6
    dl[..., 0] = du[..., -1] = np.nan
    return [dl, d, du, drawn(dtype, *batch, n, 3)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_tridiagonal_systems(dtype: str, n: int) -> None:
    args = system(dtype, 2, n=n)
    found = for_tpu(linalg.tridiagonal_solve, *args)[0]
    wanted = np.asarray(linalg.tridiagonal_solve(*args))
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, atol=300 * np.finfo(dtype).eps * size)


def test_singular_tridiagonal_systems() -> None:
    dl, d, du, b = system("float64", 2, n=4)
    d[0, 1] = dl[0, 1] = dl[0, 2] = 0.0  # a column of zeros
    du[0, 0] = 0.0
    (found,) = for_tpu(linalg.tridiagonal_solve, dl, d, du, b)
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()

    def moved(*args: Any) -> Any:
        return linalg.tridiagonal_solve(*args, perturb_singular=True)

    (found,) = for_tpu(moved, dl, d, du, b)
    np.testing.assert_allclose(found, moved(dl, d, du, b), rtol=1e-6)
    zero = np.zeros((1, 3))
    (found,) = for_tpu(moved, zero, zero, zero, np.ones((1, 3, 1)))
    np.testing.assert_allclose(found, np.full((1, 3, 1), 1 / np.finfo(float).eps))
