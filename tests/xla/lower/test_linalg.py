"""Factors of matrices on XLA: batches, matrices that have none, what falls back to the host."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from tests.xla.mlir import assert_canonical, needs_jaxlib

rng = np.random.default_rng(0)
batch = rng.standard_normal((3, 4, 4)).astype(np.float32)


def text(f: Any, *args: Any) -> str:
    return jax.jit(f).lower(*args).as_text()


def test_routines_stand_for_factors() -> None:
    symmetric = batch @ np.swapaxes(batch, 1, 2) + 4 * np.eye(4, dtype=np.float32)
    assert "@lapack_spotrf_ffi" in text(lax.linalg.cholesky, symmetric)
    assert "@lapack_sgesdd_ffi" in text(jnp.linalg.svd, batch)
    assert "@lapack_sgetrf_ffi" in text(lax.linalg.lu, batch)


@needs_jaxlib
@pytest.mark.parametrize("name", ["cholesky", "eigh", "lu", "qr", "svd"])
def test_mlir_prints_the_same(name: str) -> None:
    assert_canonical(text(getattr(lax.linalg, name), batch))


@needs_jaxlib
def test_both_engines_agree_on_batches() -> None:
    def solved(x: Any) -> Any:
        symmetric = x @ jnp.swapaxes(x, -1, -2) + 4 * jnp.eye(4)
        w, _ = jnp.linalg.eigh(symmetric)
        return jnp.linalg.solve(symmetric, x), jnp.linalg.inv(symmetric), w, jnp.linalg.det(x)

    here, there = jax.jit(solved)(batch), jax.jit(solved, backend="xla_cpu")(batch)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


@needs_jaxlib
def test_a_matrix_without_factor_gives_nan_and_the_others_theirs() -> None:
    two = np.stack([np.eye(2, dtype=np.float32), -np.eye(2, dtype=np.float32)])
    found = np.asarray(jax.jit(lax.linalg.cholesky, backend="xla_cpu")(two))
    np.testing.assert_array_equal(found[0], np.eye(2))
    assert np.isnan(found[1][np.tril_indices(2)]).all()
