"""Comparisons of library functions with JAX's, where it is installed."""

import platform
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calque


def jax() -> Any:
    """The peer, or the test is skipped."""
    return pytest.importorskip("jax")


def compare(got: Any, want: Any, tol: float = 3e-6, weak: bool = False) -> None:
    """Values, shapes and dtypes of calque's and JAX's results, which may be trees."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w, tol, weak)
        return
    g, w = np.asarray(got), np.asarray(want)
    assert (g.shape, g.dtype) == (
        w.shape,
        w.dtype,
    ), f"{g.dtype}{g.shape}, JAX gives {w.dtype}{w.shape}"
    if weak:
        assert got.aval.weak_type == want.weak_type
    wide = np.complex128 if w.dtype.kind == "c" else np.float64
    tol = max(tol, 1e-2) if w.dtype.itemsize <= 2 and w.dtype.kind not in "iub" else tol
    np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=tol, atol=tol, equal_nan=True)


def same(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *args: Any,
    tol: float = 3e-6,
    jit: bool = True,
) -> None:
    """`ours(*args)`, eager and under jit, gives what `theirs(*args)` gives; args are NumPy arrays
    and scalars."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = theirs(*args)
    compare(ours(*args), want, tol)
    if jit:
        compare(calque.jit(ours)(*args), want, tol)


def glibc() -> tuple[int, ...]:
    """The version of the C library, nothing where it is another one."""
    name, version = platform.libc_ver()
    return tuple(map(int, version.split("."))) if name == "glibc" else ()


def processor_flags() -> set[str]:
    """What /proc/cpuinfo says that the processor can do, where there is one."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    return set(text.partition("flags")[2].partition("\n")[0].split())
