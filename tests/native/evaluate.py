"""Evaluate functions of scalar expressions on NumPy arrays: a vector loop over loads, compiled like
any kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from calque.native.emit.kernels import Kernel
from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, Expr, load, var
from tests.native.run_kernel import call, words

Array = np.ndarray[Any, Any]
SHORT = {
    "i1": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32",
    "u32": "uint32", "i64": "int64",
    "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip


def numpy_type(dtype: str) -> Any:
    """The NumPy dtype of a dtype of the loop language."""
    name = SHORT.get(dtype, dtype)
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def compiled(
    function: Callable[..., Sequence[Expr]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    width: int = 16,
    exact: bool = False,
) -> tuple[Kernel, Callable[..., list[Array]]]:
    """The kernel of `function`, which maps elements to elements, and a way to call it on arrays of
    one length."""
    n = var("n")
    i = var("i", n)
    ins = [Buffer(f"x{k}", (n,), d) for k, d in enumerate(inputs)]
    outs = [Buffer(f"y{k}", (n,), d) for k, d in enumerate(outputs)]
    results = function(*[load(b, (i,)) for b in ins])
    stores = tuple(Store(b, (i,), r) for b, r in zip(outs, results, strict=True))
    (kernel,) = compile_kernels([(For(i, stores, kind="vector", width=width),)], exact)

    def run(*arrays: Array) -> list[Array]:
        assert [a.dtype.itemsize for a in arrays] == [numpy_type(d).itemsize for d in inputs]
        made = [np.empty(len(arrays[0]), numpy_type(d)) for d in outputs]
        values: dict[Any, Any] = {
            b: np.ascontiguousarray(a) for b, a in zip(ins, arrays, strict=True)
        }
        values |= dict(zip(outs, made, strict=True)) | {"n": len(arrays[0])}
        call(kernel.address, words(kernel, values))
        return made

    return kernel, run


def apply(
    function: Callable[..., Expr],
    *arrays: Array,
    dtypes: Sequence[str],
    out: str | None = None,
    width: int = 16,
) -> Array:
    """`function` of elements of `dtypes`, on arrays; the result has dtype `out`, or that of the
    first operand."""
    return compiled(lambda *xs: [function(*xs)], dtypes, [out or dtypes[0]], width)[1](*arrays)[0]
