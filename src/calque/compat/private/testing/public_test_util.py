"""`jax._src.public_test_util`: comparisons with tolerances that depend on the dtype."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.test_util import EPS, check_grads, check_jvp, check_vjp

__all__ = ["EPS", "check_close", "check_grads", "check_jvp", "check_vjp", "default_tolerance"]

_BY_NAME: Final = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-15,
    "complex128": 1e-15,
    "float4_e2m1fn": 1.0,
    "float8_e8m0fnu": 1.0,
}


def default_tolerance(dtype: Any) -> float:
    """How far two values of a dtype may lie apart: integers not at all."""
    dtype = np.dtype(dtype)
    return _BY_NAME.get(dtype.name, 1e-1 if dtype.name.startswith("float8") else 0.0)


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """An AssertionError unless the leaves of two trees have equal shapes and values that differ by
    no more than the tolerances, times the number of elements.

    `atol` and `rtol` are numbers, or dicts from dtypes to numbers; what they leave open follows
    from the dtype."""

    def compare(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{err_msg} shapes {x.shape} and {y.shape}".strip()
        if x.dtype.names is None and x.dtype.kind != "V":
            wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
            np.testing.assert_allclose(
                x.astype(wide),
                y.astype(wide),
                atol=max(_tolerance(v.dtype, atol) for v in (x, y)) * x.size,
                rtol=max(_tolerance(v.dtype, rtol) for v in (x, y)) * y.size,
                err_msg=err_msg,
            )

    pytrees.tree_map(compare, xs, ys)


def _tolerance(dtype: Any, given: Any) -> float:
    if isinstance(given, dict):
        given = next((v for k, v in given.items() if np.dtype(k) == dtype), None)
    return default_tolerance(dtype) if given is None else float(given)
