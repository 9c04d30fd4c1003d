"""Sizes that a program finds while it runs, and the arrays that have them.

    let_size[size=k] n          from here on k is the value of n, an integer scalar: an equation
    without results places[size=k] mask         where a vector of k true values is true

A size is found once in every run of its equation; arrays of that size are allocated then. See
`core.dims`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import dims
from calque.core.arrays import is_concrete, to_numpy
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize, is_integer
from calque.core.errors import DataDependentSizeError
from calque.core.origins import origin
from calque.core.primitives import NotApplicable, Primitive, do
from calque.core.symbols import LARGEST
from calque.core.trace import typeof
from calque.core.trace_state import symbols_of_recording
from calque.ops.common import check_places, zero_like


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


def _of_different_sizes(args: Sequence[Any], dims: Sequence[Any], *, size: Any, **_: Any) -> Any:
    maker = size.symbols.maker(size)
    raise DataDependentSizeError(
        f"vmap: the lanes of a batch would get results of different sizes from {maker}. Give that"
        " function a static size= (and fill_value=), so that every lane has as many elements, or"
        " loop over the lanes with calque.lax.map or Python."
    )


let_size_p = Primitive(
    "let_size",
    meaning=_let_size,
    shape=_let_size_shape,
    jvp=_let_size_jvp,
    transpose=NotApplicable("let_size: a size is no linear function"),
    batch=_of_different_sizes,
    multiple_results=True,
    effect=True,
)


def found_size(n: Any, maker: str, most: Any = None) -> Any:
    """The size that an integer scalar is: an int if it is known now, else a new size of the
    program, at most `most`."""
    if is_concrete(n):
        return int(to_numpy(n))
    if type(most) is int and most == 0:
        return 0
    symbols = symbols_of_recording()
    if symbols is None:
        raise DataDependentSizeError(
            f"{maker}: the size of the result depends on a value that differs between the lanes of"
            f" vmap, or is not known.{origin(n)}\nGive the keyword"
            " size= where there is one; under vmap, mask an array of the longest size, as in"
            " jnp.arange(10) < n"
        )
    if most is None:
        most = min(int(np.iinfo(typeof(n).dtype).max) - 1, LARGEST)
    size = symbols.found(maker, most)
    do.let_size(n, size=size)
    return size


def _places_shape(mask: ShapedArray, *, size: Any, dtype: Any) -> ShapedArray:
    if mask.ndim != 1 or mask.dtype != np.dtype(bool):
        raise TypeError(f"places: the mask is a vector of bool, got {mask.str_short()}")
    return ShapedArray((size,), dtype)


def _places_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    out = do.places(*primals, **params)
    return out, zero_like(out)


places_p = Primitive(
    "places",
    meaning=lambda mask, *, size, dtype: np.flatnonzero(mask).astype(dtype),
    shape=_places_shape,
    jvp=_places_jvp,
    transpose=NotApplicable("places: where a mask is true is no linear function of it"),
    batch=_of_different_sizes,
)


def places(mask: Any, maker: str) -> Any:
    """Where a traced vector of booleans is true, in order; as many as there are."""
    n, dtype = typeof(mask).shape[0], canonicalize(int)
    check_places(maker, n, dtype)
    numbers = do.convert_element_type(mask, new_dtype=dtype)
    size = found_size(do.reduce_sum(numbers, axes=(0,)), maker, n)
    return do.places(mask, size=size, dtype=dtype)
