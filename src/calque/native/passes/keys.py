"""Typed random keys as the words that they are made of, where an operation looks at those or takes
places: comparing keys, and writing into arrays of keys."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import is_extended
from calque.core.jaxprs import Atom, Eqn, Literal, Var
from calque.native.passes.sweep import Rule, Sweep

_WORD: Final = np.dtype(np.uint32)
_BOOL: Final = np.dtype(bool)


def _words(s: Sweep, keys: Atom, like: Eqn) -> Var:
    shape = keys.aval.shape + keys.aval.dtype.impl.key_shape
    return s.emit("random_unwrap", [keys], ShapedArray(shape, _WORD), like)


def compare_words(s: Sweep, e: Eqn) -> Eqn | None:
    """before: a:bool[3] = eq x y, of keys
    after:  b:bool[3,2] = eq (random_unwrap x) (random_unwrap y);  a = reduce_and[axes=(1,)] b"""
    if not is_extended(e.invars[0].aval.dtype):
        return None
    shape = e.outvars[0].aval.shape + e.invars[0].aval.dtype.impl.key_shape
    axes = tuple(range(e.outvars[0].aval.ndim, len(shape)))  # of words: mostly one
    words = []
    for x in e.invars:
        w = _words(s, x, e)
        if w.aval.shape != shape:  # one key beside many
            spread = {"shape": shape, "broadcast_dimensions": axes, "sharding": None}
            w = s.emit("broadcast_in_dim", [w], ShapedArray(shape, _WORD), e, **spread)
        words.append(w)
    each = s.emit(e.primitive.name, words, ShapedArray(shape, _BOOL), e)
    fold = "reduce_and" if e.primitive.name == "eq" else "reduce_or"
    return s.new(fold, [each], e.outvars[0], e, axes=axes, out_sharding=None)


def update_words(s: Sweep, e: Eqn) -> Eqn | None:
    """before: a = dynamic_update_slice x y i, of keys
    after:  a = random_wrap (dynamic_update_slice (random_unwrap x) (random_unwrap y) i 0)"""
    keys = e.invars[0].aval
    if not is_extended(keys.dtype):
        return None
    start = e.invars[2].aval.dtype if len(e.invars) > 2 else np.dtype(np.int32)
    first = Literal(np.zeros((), start), ShapedArray((), start))
    firsts = [first] * len(keys.dtype.impl.key_shape)
    return _written(s, e, [*e.invars[2:], *firsts], 1, e.params)


def scatter_words(s: Sweep, e: Eqn) -> Eqn | None:
    """before: a = scatter x i y, of keys
    after:  a = random_wrap (scatter (random_unwrap x) i (random_unwrap y)), with windows that hold
            the words of a key as well"""
    dtype = e.invars[0].aval.dtype
    if not is_extended(dtype):
        return None
    numbers, rank = e.params["dimension_numbers"], e.invars[2].aval.ndim
    dims = (*numbers.update_window_dims, *range(rank, rank + len(dtype.impl.key_shape)))
    numbers = numbers._replace(update_window_dims=dims)
    return _written(s, e, [e.invars[1]], 2, {**e.params, "dimension_numbers": numbers})


def _written(s: Sweep, e: Eqn, others: list[Atom], updates: int, params: dict[str, Any]) -> Eqn:
    operand = _words(s, e.invars[0], e)
    update = _words(s, e.invars[updates], e)
    rest = [update, *others] if updates == 1 else [*others, update]
    words = s.emit(e.primitive.name, [operand, *rest], operand.aval, e, **params)
    return s.new("random_wrap", [words], e.outvars[0], e, impl=e.invars[0].aval.dtype.impl)


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "eq": (compare_words,),
    "ne": (compare_words,),
    "dynamic_update_slice": (update_words,),
    "scatter": (scatter_words,),
}
