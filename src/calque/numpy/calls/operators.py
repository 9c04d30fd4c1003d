"""Operators of concrete arrays as machine code: `a + b` enters no Python frame once it has been
seen for such operands.

Each operator is a `machine.callpath.OpFunction`. A miss runs the Python operator, then compiles
that very function for operands of any size (one kernel for each combination of dtypes) and adds an
entry for the avals met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dtypes import PYTHON_SCALARS, is_extended
from calque.core.lazy import LazyModule
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine.caches import Tables
from calque.machine.call import functions as callpath
from calque.numpy.calls.cached import Teacher
from calque.numpy.promotion import common_type
from calque.transforms.devices.sharding_propagation import is_placed
from calque.transforms.jit.epochs import callpath_enabled, epoch

backend, eager = LazyModule("calque.native.backend"), LazyModule("calque.native.eager.execution")

Method = Callable[..., Any]
_SPECS = {float: "pyfloat", int: "pyint", bool: "pybool", complex: "pycomplex"}
_PASSED_AS = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8",
"uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")))  # fmt: skip
SMALL_PRODUCT = 64**3
MOST_MET = 4096  # shapes that are remembered for operands of one kind


_TAUGHT: Final[Tables[Any, bool]] = Tables("operands of operators", 10_000, programs=True)
_KINDS: Final[Tables[Any, Sizes]] = Tables(
    "operands of operators, but for their sizes", 1000, programs=True
)


class Unteachable(Exception):
    """Operands that stay with Python."""


class Sizes:
    """What an operator knows of operands of one kind: the shapes it met, and whether an entry
    serves them all."""

    __slots__ = ("first", "met")

    def __init__(self, first: tuple[int, ...]) -> None:
        self.first = first
        self.met: set[tuple[int, ...]] | None = (
            None  # shapes that the entry for all sizes has served
        )

    def wants_all(self, shape: tuple[int, ...]) -> bool:
        """Is it time for an entry that serves all sizes? With the second shape; and anew when the
        entry is gone."""
        if self.met is not None and shape not in self.met:
            self.first, self.met = shape, None
            return False
        return self.met is None and shape != self.first


def operator(name: str, method: Method) -> Any:
    """The operator `method` as a callable of machine code."""
    if name in ("__matmul__", "__rmatmul__"):
        product = Teacher(
            method, lambda f, given, args, kwargs: teach_product(name, f, args), at_once=True
        )
        product.function = callpath.OpFunction(product.miss)
        return product.function

    taught, kinds = _TAUGHT.new(), _KINDS.new()
    general = Teacher(method)  # for operands that broadcast

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not callpath_enabled() or is_placed(args):
            return method(*args, **kwargs)
        exponent = text_exponent(name, args)
        key = (epoch(), *[a.aval if type(a) is ArrayImpl else type(a) for a in args], exponent)
        if taught.find(
            key
        ):  # an entry that went, or an int that does not fit the dtype of the array
            taught.pop(key, None)
            return method(*args)
        kind = (key[0], *[a.aval.kind if type(a) is ArrayImpl else type(a) for a in args], exponent)
        shape = next((a.aval.shape for a in args if type(a) is ArrayImpl and a.aval.shape), ())
        sizes = kinds.find(kind) or kinds.setdefault(kind, Sizes(shape))
        try:
            if sizes.wants_all(shape):
                sizes.met = set()
                made = teach_elementwise(name, method, args, sizes.met)
            else:
                made = teach_elementwise(name, method, args)
                taught[key] = True
        except Unteachable:
            return (
                general.miss(args, kwargs)
                if all(type(a) is ArrayImpl for a in args)
                else method(*args)
            )
        callpath.add_entry(function, made)
        return function(*args)

    function = general.function = callpath.OpFunction(miss)
    return function


def teach_elementwise(
    name: str, method: Method, args: Sequence[Any], met: set[Any] | None = None
) -> Any:
    """An entry for operands of one shape, and scalars; with `met` it serves all shapes of these
    ranks and notes them there."""
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
    if met is not None:
        specs = [("kind", *s[1:]) if s[0] == "array" else s for s in specs]
        return entry(specs, made.pattern.original, chooser(made, met))
    out = made.out_avals[0]
    result = out.update(shape=shape if out.shape else ())
    size = ShapedArray(shape, np.dtype(bool)).size
    return entry(specs, made.program([result], (size,)))


def chooser(made: Any, met: set[Any]) -> Callable[..., Any]:
    """A function that gives the program for operands of one shape, once: at the second time they
    get an entry of their own."""
    dtype, weak, program = made.out_avals[0].dtype, made.out_avals[0].weak_type, made.program

    def choose(*avals: Any) -> Any:
        aval = avals[0]
        for a in avals[1:]:
            if a.shape != aval.shape:
                if a.shape and aval.shape:
                    return None
                aval = aval if aval.shape else a
        shape = aval.shape
        if shape in met:
            return None
        if len(met) >= MOST_MET:
            met.clear()
        met.add(shape)
        return program((ShapedArray(shape, dtype, weak),), (aval.size,))

    return choose


def text_exponent(name: str, args: Sequence[Any]) -> int | float | None:
    """A Python exponent that is part of the program: ints are multiplied out, multiples of one half
    may be roots."""
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
        return ("array", aval, i), ShapedArray(
            eager.HINTS[:1] if aval.shape else (), aval.dtype, aval.weak_type
        )
    if t not in PYTHON_SCALARS:
        raise Unteachable
    dtype, weak = common_type(*args)
    own = typeof(a)
    aval = own if weak or own.dtype.kind != dtype.kind else ShapedArray((), dtype)
    if aval.dtype not in _PASSED_AS:
        raise Unteachable
    return (_SPECS[t], aval.dtype, i), aval


def entry(specs: Sequence[Any], program: Any, choose: Callable[..., Any] | None = None) -> Any:
    return callpath.Entry(list(specs), (), program, ("out", 0), epoch(), (), choose)


def teach_product(name: str, method: Method, args: Sequence[Any]) -> Any:
    """An entry for a product: small ones share a kernel for each combination of ranks, large ones
    have blocked kernels."""
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
            ShapedArray(
                (eager.HINTS[1],) if x.ndim == 1 else eager.HINTS[:2], x.dtype, x.weak_type
            ),
            ShapedArray(
                (eager.HINTS[1],) if y.ndim == 1 else eager.HINTS[1:3], y.dtype, y.weak_type
            ),
        )
        made = eager.template(("product", hints, config.trace_key()), lambda: traced(method, hints))
        if made is not None:
            shape = x.shape[:-1] + y.shape[1:]
            return entry(specs, made.program([made.out_avals[0].update(shape=shape)], (m, k, n)))
    closed = trace_to_jaxpr(lambda *xs: [method(*xs)], [x, y])
    return entry(specs, backend.compile(closed, Options("matmul", config.exact)).program)
