"""Runs loop trees on NumPy arrays."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from calque.machine.code import llvm
from calque.machine.driver import interpreter as interp
from calque.native.emit import emitter
from calque.native.emit.kernels import Kernel
from calque.native.emit.making import compile_kernels
from calque.native.emit.modules import processor
from calque.native.loops import asking
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Body
from calque.native.loops.verify import verify
from calque.native.scalars.expr import Buffer, Expr, float_bits

NP = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")


def words(kernel: Any, values: dict[Any, Any]) -> list[int]:
    out = [values[b].ctypes.data for b in kernel.buffers]
    out += [int(values[s]) for s in kernel.sizes]
    for p in kernel.params:
        out.append(float_bits(values[p], p.dtype) if p.dtype in FLOATS else int(values[p]))
    return out


def call(address: int, args: list[int], begin: int = 0, end: int = 1) -> None:
    fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    fn((ctypes.c_int64 * max(len(args), 1))(*args), begin, end)


def run(
    body: Body, values: dict[Any, Any], exact: bool = False, begin: int = 0, end: int = 1
) -> Kernel:
    """Verify, compile and run; ``values`` maps buffers to arrays, sizes' names and params to
    numbers."""
    verify(body)
    (k,) = compile_kernels([body], exact)
    call(k.address, words(k, values), begin, end)
    return k


def run_plain(body: Body, values: dict[Any, Any], **options: Any) -> str:
    """As ``run``, with an emitter of its own options (other processors) and without caches."""
    verify(body)
    order = canonical(body)
    how = emitter.CodeOptions(**{**processor(), **options})
    f = emitter.write_kernel("k_plain", order.buffers, order.sizes, order.params, body, how)
    texts, declared, pending = [f.text], {*f.declared}, {**f.shared}
    while pending:  # functions that rests of loops call
        math = emitter.write_shared(pending.popitem()[1], how)
        texts.append(math.text)
        declared |= math.declared
        pending |= math.shared
    defined = " ".join([t.split("(")[0] for t in texts[1:]])
    declared = {d for d in declared if d.partition("@")[2].partition("(")[0] not in defined}
    text = "\n".join([*sorted(declared), *texts])
    imports = {asking.ASK: interp.calque_poll.address} if asking.DECLARATION in f.declared else {}
    address = llvm.link_module(text, ["k_plain"], imports, cache=False)["k_plain"]
    call(address, words(order, values))
    return text


def random(
    dtype: str, shape: tuple[int, ...], rng: np.random.Generator, special: bool = True
) -> Any:
    """Values of a dtype with its awkward ones among them."""
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in INTS:
        info = np.iinfo(NP[dtype])
        x = rng.integers(info.min, info.max, shape, dtype=NP[dtype], endpoint=True)
        x.reshape(-1)[:5] = np.array([info.min, info.max, 0, 1, 2], NP[dtype])[: x.size]
        return x
    with np.errstate(all="ignore"):
        x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)).astype(NP[dtype])
        if special:
            edge = np.array(
                [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 0.5, 1.5, 2.5, -0.5, 65519.0, 3e38]
            ).astype(NP[dtype])
            x.reshape(-1)[: len(edge)] = edge[: x.size]
    return x


def array(name: str, dtype: str, *shape: Expr | int, **kw: Any) -> Buffer:
    return Buffer(name, shape, dtype, **kw)


def bits(x: Any) -> Any:
    """The bit patterns of an array, nans made equal."""
    x = np.array(x)
    if x.dtype.kind in "fV" or x.dtype == ml_dtypes.bfloat16:
        raw = x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.dtype.itemsize]).copy()
        with np.errstate(invalid="ignore"):  # bfloat16 says so of its nans
            raw[x != x] = 1 << (8 * x.dtype.itemsize - 2)
        return raw
    return x
