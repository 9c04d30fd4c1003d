"""Operators of concrete arrays as machine code: `a + b` enters no Python frame once it has been
seen for such operands.

Each operator is a `machine.callpath.OpFunction`. A miss runs the Python operator, then compiles
that very function for operands of any size (one kernel for each combination of dtypes) and adds an
entry for the avals met.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dtypes import PYTHON_SCALARS, is_extended
from calque.core.lazy import LazyModule
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.tracebacks import boundary
from calque.machine.caches import Tables
from calque.machine.call import functions as callpath
from calque.numpy.calls.cached import Teacher
from calque.numpy.promotion import common_type
from calque.transforms.devices.sharding_propagation import is_placed
from calque.transforms.engines.specialiser import CallCounts
from calque.transforms.jit.epochs import serving
from calque.transforms.jit.teaching import SCALARS, Description, Lesson, teach

backend, eager = LazyModule("calque.native.backend"), LazyModule("calque.native.eager.execution")

Method = Callable[..., Any]
Shape = tuple[int, ...]
_PASSED_AS = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8",
"uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")))  # fmt: skip
SMALL_PRODUCT = 64**3
HOT_AFTER = 1  # call with the same shape after which it gets an entry of its own


_TAUGHT: Final[Tables[Any, bool]] = Tables("operands of operators", 10_000, programs=True)
_KINDS: Final[Tables[Any, Operands]] = Tables(
    "operands of operators, but for their sizes", 1000, programs=True
)


class Unteachable(Exception):
    """Operands that stay with Python."""


class Operands:
    """What an operator knows of operands of one kind: the first shape, and the kernel that serves
    all shapes, if there is an entry with it."""

    __slots__ = ("first", "kernel")

    def __init__(self, first: Shape) -> None:
        self.first, self.kernel = first, None

    def want_kernel(self, shape: Shape, counts: CallCounts) -> bool:
        """Whether it is time for an entry that serves all sizes: with the second shape, and anew
        when the entry is gone."""
        if self.kernel is not None and not counts.is_hot(self.kernel, shape):
            self.first, self.kernel = shape, None
            return False
        return self.kernel is None and shape != self.first


def operator(name: str, method: Method) -> Any:
    """The operator `method` as a callable of machine code."""
    if name in ("__matmul__", "__rmatmul__"):
        product = Teacher(
            method, lambda f, arguments: product_lesson(name, f, arguments.args), at_once=True
        )
        product.function = callpath.OpFunction(boundary(product.miss))
        return product.function

    taught, kinds = _TAUGHT.new(), _KINDS.new()
    counts = CallCounts(HOT_AFTER)
    general = Teacher(method)  # for operands that broadcast

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        number = serving()
        if kwargs or not number or is_placed(args):
            return method(*args, **kwargs)
        if is_narrow_power(name, *args):
            return method(*args)
        exponent = text_exponent(name, args)
        key = (number, *[a.aval if type(a) is ArrayImpl else type(a) for a in args], exponent)
        # an entry that went, or an int that does not fit the dtype of the array
        if taught.find(key):
            taught.pop(key, None)
            return method(*args)
        kind = (number, *[a.aval.kind if type(a) is ArrayImpl else type(a) for a in args], exponent)
        shape = next((a.aval.shape for a in args if type(a) is ArrayImpl and a.aval.shape), ())
        operands = kinds.find(kind) or kinds.setdefault(kind, Operands(shape))
        changes = config.changes_elsewhere()
        try:
            made = elementwise(name, method, args)
        except Unteachable:
            arrays = all(type(a) is ArrayImpl for a in args)
            return general.miss(args, kwargs) if arrays else method(*args)
        if changes != config.changes_elsewhere():
            return method(*args)
        if operands.want_kernel(shape, counts):
            operands.kernel = made.kernel
            teach(function, made.for_all_shapes(counts), number)
        else:
            teach(function, made.for_shape(shape), number)
            taught[key] = True
        return function(*args)

    function = general.function = callpath.OpFunction(boundary(miss))
    return function


class Elementwise(NamedTuple):
    """An operator on operands of one shape, and scalars: one kernel for all shapes."""

    kernel: Any
    descriptions: Sequence[Description]

    def for_shape(self, shape: Shape) -> Lesson:
        """For operands of this shape."""
        out = self.kernel.out_avals[0]
        result = out.update(shape=shape if out.shape else ())
        size = ShapedArray(shape, np.dtype(bool)).size
        return lesson(self.descriptions, self.kernel.program([result], (size,)))

    def for_all_shapes(self, counts: CallCounts) -> Lesson:
        """For operands of any shape of these ranks."""
        choose = chooser(self.kernel, counts)
        return lesson(self.descriptions, self.kernel.pattern.original, choose)


def elementwise(name: str, method: Method, args: Sequence[Any]) -> Elementwise:
    """The kernel for operands of one shape, and scalars."""
    arrays = [a for a in args if type(a) is ArrayImpl]
    shapes = {a.aval.shape for a in arrays if a.aval.shape}
    if len(shapes) > 1 or any(is_extended(a.aval.dtype) for a in arrays):
        raise Unteachable
    descriptions, operands = zip(*[operand(a, i, args) for i, a in enumerate(args)])
    exponent = text_exponent(name, args)
    if exponent is not None:
        descriptions, operands = (descriptions[0], ("eq", exponent)), operands[:1]
    elif name == "__pow__" and type(args[1]) is float:
        descriptions = (descriptions[0], ("fraction", *descriptions[1][1:]))
    kernel = eager.template(
        ("operator", name, operands, exponent, type(exponent), config.trace_key()),
        functools.partial(
            traced, method if exponent is None else lambda x: method(x, exponent), operands
        ),
    )
    if kernel is None:
        raise Unteachable
    return Elementwise(kernel, descriptions)


def chooser(kernel: Any, counts: CallCounts) -> Callable[..., Any]:
    """A function that gives the program for operands of one shape, unless that is hot: then it gets
    an entry of its own."""
    dtype, weak, program = kernel.out_avals[0].dtype, kernel.out_avals[0].weak_type, kernel.program

    def choose(*avals: Any) -> Any:
        aval = avals[0]
        for a in avals[1:]:
            if a.shape != aval.shape:
                if a.shape and aval.shape:
                    return None
                aval = aval if aval.shape else a
        shape = aval.shape
        if not counts.serves(kernel, shape):
            return None
        return program((ShapedArray(shape, dtype, weak),), (aval.size,))

    return choose


def is_narrow_power(name: str, *args: Any) -> bool:
    """Whether the exponent is one integer that is known, so that it decides no dtype and is not
    negative."""
    if name not in ("__pow__", "__rpow__"):
        return False
    base, exponent = args if name == "__pow__" else args[::-1]
    return (
        type(exponent) is ArrayImpl
        and not exponent.aval.shape
        and exponent.aval.dtype.kind in "iu"
        and (type(base) is int or (type(base) is ArrayImpl and base.aval.dtype.kind in "iub"))
    )


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


def traced(method: Method, operands: Sequence[Any], sizes: Sequence[Any]) -> Any:
    return trace_to_jaxpr(lambda *xs: [method(*xs)], [x.aval(sizes) for x in operands])


def operand(a: Any, i: int, args: Sequence[Any]) -> tuple[Description, Any]:
    """How the call path recognises the operand, and what it is to a kernel for all sizes."""
    t = type(a)
    if t is ArrayImpl:
        aval = a.aval
        axes = (0,) if aval.shape else ()
        return ("array", aval, i), eager.Operand(axes, aval.dtype, aval.weak_type)
    if t not in PYTHON_SCALARS:
        raise Unteachable
    dtype, weak = common_type(*args)
    own = typeof(a)
    aval = own if weak or own.dtype.kind != dtype.kind else ShapedArray((), dtype)
    if aval.dtype not in _PASSED_AS:
        raise Unteachable
    return (SCALARS[t], aval.dtype, i), eager.Operand((), aval.dtype, aval.weak_type)


def lesson(
    descriptions: Sequence[Description], program: Any, choose: Callable[..., Any] | None = None
) -> Lesson:
    return Lesson(descriptions, program, ("out", 0), choose=choose)


def product_lesson(name: str, method: Method, args: Sequence[Any]) -> Lesson:
    """A product: small ones share a kernel for each combination of ranks, large ones have blocked
    kernels."""
    a, b = args
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl:
        raise Unteachable
    x, y = a.aval, b.aval
    if x.ndim not in (1, 2) or y.ndim not in (1, 2) or x.dtype != y.dtype or is_extended(x.dtype):
        raise Unteachable
    if x.shape[-1] != y.shape[0]:  # the method says what is wrong
        raise Unteachable
    descriptions = [("array", x, 0), ("array", y, 1)]
    m, k, n = x.shape[0] if x.ndim == 2 else 1, x.shape[-1], y.shape[1] if y.ndim == 2 else 1
    if name == "__matmul__" and m * k * n <= SMALL_PRODUCT:
        operands = (
            eager.Operand((1,) if x.ndim == 1 else (0, 1), x.dtype, x.weak_type),
            eager.Operand((1,) if y.ndim == 1 else (1, 2), y.dtype, y.weak_type),
        )
        made = eager.template(
            ("product", operands, config.trace_key()), functools.partial(traced, method, operands)
        )
        if made is not None:
            shape = x.shape[:-1] + y.shape[1:]
            return lesson(
                descriptions, made.program([made.out_avals[0].update(shape=shape)], (m, k, n))
            )
    closed = trace_to_jaxpr(lambda *xs: [method(*xs)], [x, y])
    return lesson(descriptions, backend.compile(closed, Options("matmul", config.exact)).program)
