"""What the tests of this room share."""

from typing import Any

import numpy as np

import calque.numpy as jnp
from calque.experimental import sparse

RNG = np.random.default_rng(0)


def some_zero(shape: tuple[int, ...], dtype: Any = np.float32, part: float = 0.4) -> np.ndarray:
    """An array of which some elements are zero, though not all."""
    x = np.where(RNG.random(shape) < part, RNG.normal(size=shape) * 5, 0)
    x.flat[:1] = 1
    return x.astype(dtype)


def close(got: Any, want: Any, tol: float = 1e-4) -> None:
    got = got.todense() if isinstance(got, sparse.JAXSparse) else got
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=tol, atol=tol)


def doubled(mat: Any) -> Any:
    """The same array stored in twice as many elements, and some padding."""
    halves = [mat.data / 2, mat.data / 2, mat.data[(slice(None),) * mat.n_batch + (slice(0, 1),)]]
    outside = jnp.broadcast_to(
        jnp.array(mat.sparse_shape, mat.indices.dtype), (*mat.indices.shape[:-2], 1, mat.n_sparse)
    )
    indices = jnp.concatenate([mat.indices, mat.indices[..., ::-1, :], outside], axis=-2)
    halves[1] = jnp.flip(halves[1], mat.n_batch)
    return sparse.BCOO((jnp.concatenate(halves, axis=mat.n_batch), indices), shape=mat.shape)
