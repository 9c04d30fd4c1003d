"""Random sparse arrays for tests, in JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.types import DTypeLike
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import BCSR, bcsr_fromdense
from calque.experimental.sparse.conversions import bcoo_fromdense

__all__ = ["rand_bcoo", "rand_bcsr"]


def _values(rng: np.random.RandomState) -> Callable[..., Any]:
    """What draws the elements where no other way is given: small numbers of both signs."""

    def draw(shape: Sequence[int], dtype: Any) -> Any:
        kind = np.dtype(dtype).kind
        values = 3 * rng.randn(*shape) + (3j * rng.randn(*shape) if kind == "c" else 0)
        return np.asarray(np.abs(values) if kind == "u" else values).astype(dtype)

    return draw


def _dense(
    rng: np.random.RandomState, rand_method: Any, nse: float, shape: Sequence[int], dtype: Any
) -> Any:
    values = np.asarray((rand_method or _values)(rng)(tuple(shape), dtype))
    count = int(nse * values.size) if 0 < nse < 1 else int(nse)
    kept = np.zeros(values.size, bool)
    kept[rng.permutation(values.size)[:count]] = True
    return jnp.asarray(np.where(kept.reshape(values.shape), values, np.zeros((), values.dtype)))


def rand_bcoo(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] | None = None,
    nse: float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[[Sequence[int], DTypeLike], BCOO]:
    """Makes a function that draws BCOO arrays.

    Args:
        rng: A generator of NumPy.
        rand_method: `rand_method(rng)(shape, dtype)` draws the elements; None draws numbers of
            both signs.
        nse: How many elements are not zero, or what fraction of them.
        n_batch: The number of batch dimensions.
        n_dense: The number of dense dimensions.

    Returns:
        A function of a shape and a dtype.

    >>> import numpy as np
    >>> sparse.test_util.rand_bcoo(np.random.RandomState(0))((2, 4), "float32")
    BCOO(float32[2, 4], nse=4)"""
    return lambda shape, dtype: bcoo_fromdense(
        _dense(rng, rand_method, nse, shape, dtype), n_batch=n_batch, n_dense=n_dense
    )


def rand_bcsr(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] | None = None,
    nse: float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[[Sequence[int], DTypeLike], BCSR]:
    """Makes a function that draws BCSR arrays.

    Args:
        rng: A generator of NumPy.
        rand_method: `rand_method(rng)(shape, dtype)` draws the elements; None draws numbers of
            both signs.
        nse: How many elements are not zero, or what fraction of them.
        n_batch: The number of batch dimensions.
        n_dense: The number of dense dimensions.

    Returns:
        A function of a shape and a dtype.

    >>> import numpy as np
    >>> sparse.test_util.rand_bcsr(np.random.RandomState(0))((2, 4), "float32")
    BCSR(float32[2, 4], nse=4)"""
    return lambda shape, dtype: bcsr_fromdense(
        _dense(rng, rand_method, nse, shape, dtype), n_batch=n_batch, n_dense=n_dense
    )
