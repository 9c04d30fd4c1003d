"""Programs for the tests of the native backend: traced, compiled, and run beside the reference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.arrays import to_array, to_numpy
from calque.core.backends import Options
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import trace_to_jaxpr, typeof
from calque.native import backend
from calque.native.executable import NativeExecutable


def traced(fun: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    """The program of a function of arrays; its result may be one value or a list."""

    def flat(*xs: Any) -> Sequence[Any]:
        out = fun(*xs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return trace_to_jaxpr(flat, [typeof(a) for a in args])


def compiled(fun: Callable[..., Any], *args: Any, exact: bool = False) -> NativeExecutable:
    return backend.compile(traced(fun, *args), Options(exact=exact))


def run(executable: NativeExecutable, *args: Any) -> list[np.ndarray]:
    return [to_numpy(o) for o in executable.call([to_array(a) for a in args])]


def check(
    fun: Callable[..., Any], *args: Any, tol: float = 2e-5, native: bool = True
) -> NativeExecutable:
    """The native backend gives what the reference gives; `native` says that Python takes no part in
    it."""
    closed = traced(fun, *args)
    e = backend.compile(closed)
    assert not (native and e.host_calls), f"runs in Python: {e.host_calls}"
    got, want = run(e, *args), reference.run(closed, *[to_array(a) for a in args])
    for g, w in zip(got, want, strict=True):
        same(g, w, tol)
    return e


def same(got: np.ndarray, want: np.ndarray, tol: float = 0.0) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype, (
        got.shape,
        want.shape,
        got.dtype,
        want.dtype,
    )
    if (
        want.dtype.kind in "biuV"
        and want.dtype.names is None
        and want.dtype.itemsize <= 8
        and want.dtype.kind != "V"
    ):
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    if tol == 0:
        np.testing.assert_array_equal(got.astype(wide), want.astype(wide))
    else:
        limit = max(tol, 4 * float(np.finfo(np.float16).eps) if want.dtype.itemsize <= 2 else tol)
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=limit, atol=limit)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -20, 20, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)
