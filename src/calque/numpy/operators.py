"""Operators of concrete arrays as machine code: `a + b` enters no Python frame once it has been seen for such operands.

Each operator is a `machine.callpath.OpFunction`. A miss runs the Python operator, then compiles that very function for
operands of any size (one kernel for each combination of dtypes) and adds an entry for the avals met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dtypes import PYTHON_SCALARS, is_extended
from calque.core.lazy import LazyModule
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine import callpath
from calque.numpy.promotion import common_type
from calque.transforms.jit import callpath_enabled, epoch
from calque.transforms.sharding_propagation import is_placed

backend, eager = LazyModule("calque.native.backend"), LazyModule("calque.native.eager")

Method = Callable[..., Any]
_SPECS = {float: "pyfloat", int: "pyint", bool: "pybool", complex: "pycomplex"}
_PASSED_AS = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")))  # fmt: skip
SMALL_PRODUCT = 64**3


class Unteachable(Exception):
    """Operands that stay with Python."""


def operator(name: str, method: Method) -> Any:
    """The operator `method` as a callable of machine code."""
    teach = teach_product if name in ("__matmul__", "__rmatmul__") else teach_elementwise

    taught: set[Any] = set()

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not callpath_enabled() or is_placed(args):
            return method(*args, **kwargs)
        key = (epoch(), *[a.aval if type(a) is ArrayImpl else type(a) for a in args], text_exponent(name, args))
        if key in taught:  # an entry that went, or an int that does not fit the dtype of the array
            taught.discard(key)
            return method(*args)
        try:
            made = teach(name, method, args)
        except Unteachable:
            return method(*args)
        callpath.add_entry(function, made)
        taught.add(key)
        return function(*args)

    function = callpath.OpFunction(miss)
    return function


def teach_elementwise(name: str, method: Method, args: Sequence[Any]) -> Any:
    """An entry for operands of one shape, and scalars."""
    arrays = [a for a in args if type(a) is ArrayImpl]
    shapes = {a.aval.shape for a in arrays if a.aval.shape}
    if len(shapes) > 1 or any(is_extended(a.aval.dtype) for a in arrays):
        raise Unteachable
    shape = next(iter(shapes), ())
    specs, hints = zip(*[operand(a, i, args) for i, a in enumerate(args)])
    exponent = text_exponent(name, args)
    if exponent is not None:
        specs, hints = (specs[0], ("eq", exponent)), hints[:1]
    elif name == "__pow__" and type(args[1]) is float:
        specs = (specs[0], ("fraction", *specs[1][1:]))
    made = eager.template(
        ("operator", name, hints, exponent, type(exponent), config.trace_key()),
        lambda: traced(method if exponent is None else lambda x: method(x, exponent), hints),
    )
    if made is None:
        raise Unteachable
    out = made.out_avals[0]
    result = out.update(shape=shape if out.shape else ())
    size = ShapedArray(shape, np.dtype(bool)).size
    return entry(specs, made.program([result], (size,)))


def text_exponent(name: str, args: Sequence[Any]) -> int | float | None:
    """A Python exponent that is part of the program: ints are multiplied out, multiples of one half may be roots."""
    if name != "__pow__" or type(args[1]) not in (int, float):
        return None
    exponent: int | float = args[1]
    if type(exponent) is float:
        dtype, _ = common_type(*args)
        with np.errstate(over="ignore"):
            rounded = float(np.asarray(exponent).astype(dtype).real)
        return None if callpath.is_fraction(rounded) else exponent
    return exponent


def traced(method: Method, hints: Sequence[ShapedArray]) -> Any:
    return trace_to_jaxpr(lambda *xs: [method(*xs)], hints)


def operand(a: Any, i: int, args: Sequence[Any]) -> tuple[tuple[Any, ...], ShapedArray]:
    """How the call path recognises the operand, and its stand-in of any size."""
    t = type(a)
    if t is ArrayImpl:
        aval = a.aval
        return ("array", aval, i), ShapedArray(eager.HINTS[:1] if aval.shape else (), aval.dtype, aval.weak_type)
    if t not in PYTHON_SCALARS:
        raise Unteachable
    dtype, weak = common_type(*args)
    own = typeof(a)
    aval = own if weak or own.dtype.kind != dtype.kind else ShapedArray((), dtype)
    if aval.dtype not in _PASSED_AS:
        raise Unteachable
    return (_SPECS[t], aval.dtype, i), aval


def entry(specs: Sequence[Any], program: Any) -> Any:
    return callpath.Entry(list(specs), (), program, ("out", 0), epoch())


def teach_product(name: str, method: Method, args: Sequence[Any]) -> Any:
    """An entry for a product: small ones share a kernel for each combination of ranks, large ones have blocked kernels."""
    a, b = args
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl:
        raise Unteachable
    x, y = a.aval, b.aval
    if x.ndim not in (1, 2) or y.ndim not in (1, 2) or x.dtype != y.dtype or is_extended(x.dtype):
        raise Unteachable
    if x.shape[-1] != y.shape[0]:  # the method says what is wrong
        raise Unteachable
    specs = [("array", x, 0), ("array", y, 1)]
    m, k, n = x.shape[0] if x.ndim == 2 else 1, x.shape[-1], y.shape[1] if y.ndim == 2 else 1
    if name == "__matmul__" and m * k * n <= SMALL_PRODUCT:
        hints = (
            ShapedArray((eager.HINTS[1],) if x.ndim == 1 else eager.HINTS[:2], x.dtype, x.weak_type),
            ShapedArray((eager.HINTS[1],) if y.ndim == 1 else eager.HINTS[1:3], y.dtype, y.weak_type),
        )
        made = eager.template(("product", hints, config.trace_key()), lambda: traced(method, hints))
        if made is not None:
            shape = x.shape[:-1] + y.shape[1:]
            return entry(specs, made.program([made.out_avals[0].update(shape=shape)], (m, k, n)))
    closed = trace_to_jaxpr(lambda *xs: [method(*xs)], [x, y])
    return entry(specs, backend.compile(closed, Options("matmul", config.exact)).program)
