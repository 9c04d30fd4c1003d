"""What the tests of the library share: cases run against NumPy and, where it is installed, against
JAX."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calque
import calque.numpy as jnp

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "float16", "float32", "complex64")


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("u") else -5
        return rng.integers(low, 6, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def check(
    name: str,
    *args: Any,
    tol: float = 2e-6,
    expect: Callable[..., Any] | None = None,
    dtypes: bool = False,
    **kw: Any,
) -> None:
    """jnp.name(*args) eager and under jit has the values and shape of np.name(*args)."""
    ours = getattr(jnp, name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = (expect or getattr(np, name))(*args, **kw)
    arrays = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def call(*dynamic: Any) -> Any:
        full = list(args)
        for i, a in zip(arrays, dynamic):
            full[i] = a
        return ours(*full, **kw)

    given = [args[i] for i in arrays]
    for got in (call(*map(jnp.asarray, given)), calque.jit(call)(*given)):
        compare(got, want, tol, dtypes)


def compare(got: Any, want: Any, tol: float = 2e-6, dtypes: bool = False) -> None:
    if isinstance(got, (tuple, list)):
        assert isinstance(want, (tuple, list)) and len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w, tol, dtypes)
        return
    g, w = np.asarray(got), np.asarray(want)
    assert g.shape == w.shape, (g.shape, w.shape)
    if dtypes:
        assert g.dtype == w.dtype, (g.dtype, w.dtype)
    if any(x.dtype.kind == "V" or x.dtype.name in ("bfloat16", "float16") for x in (g, w)):
        g, w, tol = g.astype(np.float32), w.astype(np.float32), max(tol, 4e-3)
    np.testing.assert_allclose(g, w, rtol=tol, atol=tol)
