"""A symbolic size as a number of the running program, and a number of the running program as a size."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core import dims
from calque.core.arrays import is_concrete, to_numpy
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize, is_integer
from calque.core.errors import ConcretizationTypeError, NonConcreteBooleanIndexError
from calque.core.primitives import NotApplicable, Primitive, do
from calque.core.trace import origin, typeof
from calque.core.trace_state import symbols_of_recording
from calque.ops.layout import NO_OPERANDS, constant_jvp

size_value_p = Primitive(
    "size_value",
    meaning=lambda *, dim: np.asarray(int(dim), canonicalize(int)),
    shape=lambda *, dim: ShapedArray((), canonicalize(int), True),
    jvp=constant_jvp("size_value"),
    transpose=NO_OPERANDS,
    batch=NO_OPERANDS,
)


def value_of(d: dims.Dim) -> Any:
    return do.size_value(dim=d)


dims.set_value_of(value_of)


def as_number(n: Any, dtype: Any) -> Any:
    """A size as an operand of this dtype: a NumPy scalar, or a traced number where the size is free."""
    if type(n) is dims.Dim:
        return do.convert_element_type(value_of(n), new_dtype=np.dtype(dtype), weak_type=False, sharding=None)
    return np.asarray(n).astype(dtype)


# ---------------------------------------------------------------- sizes that the program finds


def _let_size(n: Any, *, size: Any) -> list[Any]:
    if type(size) is dims.Dim:
        size.symbols.settle(size, int(n))
    return []


def _let_size_shape(n: ShapedArray, *, size: Any) -> list[ShapedArray]:
    if n.shape or not is_integer(n.dtype):
        raise TypeError(f"let_size: a size is an integer scalar, got {n.str_short()}")
    return []


def _let_size_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, size: Any) -> tuple[Any, Any]:
    return do.let_size(*primals, size=size), []


def _let_size_batch(args: Sequence[Any], dims: Sequence[Any], *, size: Any) -> Any:
    maker = size.symbols.maker(size)
    raise NonConcreteBooleanIndexError(
        f"vmap: the lanes of a batch would get results of different sizes from {maker}. Give that function a static size= (and"
        " fill_value=), so that every lane has as many elements, or loop over the lanes with calque.lax.map or Python."
    )


let_size_p = Primitive(
    "let_size",
    meaning=_let_size,
    shape=_let_size_shape,
    jvp=_let_size_jvp,
    transpose=NotApplicable("let_size: a size is no linear function"),
    batch=_let_size_batch,
    multiple_results=True,
    effect=True,
)


LARGEST: Final = 1 << 47


def found_size(n: Any, maker: str, most: Any = None) -> Any:
    """The size that an integer scalar is: an int if it is known now, else a new size of the program, at most `most`."""
    if is_concrete(n):
        return int(to_numpy(n))
    symbols = symbols_of_recording()
    if symbols is None:
        raise ConcretizationTypeError(
            f"{maker}: the size of the result depends on a value that differs between the lanes of vmap, or is not known."
            f"{origin(n)}\nGive the keyword size= where there is one."
        )
    if most is None:
        most = min(int(np.iinfo(typeof(n).dtype).max), LARGEST)
    size = symbols.found(maker, most)
    do.let_size(n, size=size)
    return size
