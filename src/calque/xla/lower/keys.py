"""Operations that move elements about, on arrays of random keys: a key is an array of words, mostly
a row, so that arrays of keys have its dimensions behind their own, which stay whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import Eqn
from calque.xla.lower.rules import RULES, Builder
from calque.xla.text.tree import Value

Params = dict[str, Any]


def words_of(e: Eqn) -> tuple[int, ...]:
    """The shape of the words of a key of the equation."""
    for v in (*e.invars, *e.outvars):
        if isinstance(v.aval.dtype, ExtendedDType):
            return tuple(v.aval.dtype.storage[0].shape)  # type: ignore[attr-defined]
    raise AssertionError("an equation about keys")


def _more(e: Eqn, rank: int) -> range:
    """The dimensions of words behind so many of keys."""
    return range(rank, rank + len(words_of(e)))


def _broadcast(e: Eqn, p: Params) -> Params:
    shape, dims = p["shape"], (*p["broadcast_dimensions"], *_more(e, len(p["shape"])))
    return {**p, "shape": (*shape, *words_of(e)), "broadcast_dimensions": dims}


def _reshape(e: Eqn, p: Params) -> Params:
    dims = p["dimensions"]
    return {**p, "dimensions": None if dims is None else (*dims, *_more(e, len(dims)))}


def _transpose(e: Eqn, p: Params) -> Params:
    return {"permutation": (*p["permutation"], *_more(e, len(p["permutation"])))}


def _slice(e: Eqn, p: Params) -> Params:
    words, strides = words_of(e), p["strides"]
    return {
        "start_indices": (*p["start_indices"], *[0] * len(words)),
        "limit_indices": (*p["limit_indices"], *words),
        "strides": None if strides is None else (*strides, *[1] * len(words)),
    }


def _dynamic_slice(e: Eqn, p: Params) -> Params:
    return {"slice_sizes": (*p["slice_sizes"], *words_of(e))}


def _gather(e: Eqn, p: Params) -> Params:
    numbers = p["dimension_numbers"]
    dims = (*numbers.offset_dims, *_more(e, e.outvars[0].aval.ndim))
    return {
        **p,
        "dimension_numbers": numbers._replace(offset_dims=dims),
        "slice_sizes": (*p["slice_sizes"], *words_of(e)),
    }


def _scatter(e: Eqn, p: Params) -> Params:
    numbers = p["dimension_numbers"]
    dims = (*numbers.update_window_dims, *_more(e, e.invars[2].aval.ndim))
    return {**p, "dimension_numbers": numbers._replace(update_window_dims=dims)}


def _tile(e: Eqn, p: Params) -> Params:
    return {"reps": (*p["reps"], *[1] * len(words_of(e)))}


def _as_it_is(e: Eqn, p: Params) -> Params:
    return p


# name -> the parameters for the words of keys
PARAMETERS: Final[dict[str, Callable[[Eqn, Params], Params]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _as_it_is,
    "gather": _gather,
    "scatter": _scatter,
    "tile": _tile,
    **dict.fromkeys(
        (
            "assert_consumed_value",
            "concatenate",
            "consume",
            "convert_element_type",
            "copy",
            "empty",
            "name",
            "optimization_barrier",
            "pbroadcast",
            "pvary",
            "rev",
            "select_n",
            "sharding_constraint",
            "split",
            "squeeze",
            "stack",
            "stage",
            "stop_gradient",
            "unstack",
            "random_bits",
            "random_clone",
            "random_fold_in",
            "random_seed",
            "random_split",
            "random_unwrap",
            "random_wrap",
        ),
        _as_it_is,
    ),
}

# name -> (the comparison of words, the reduction to one truth for each key)
COMPARED: Final = {"eq": ("EQ", "reduce_and"), "ne": ("NE", "reduce_or")}


def compared(b: Builder, name: str, words: int, x: Value, y: Value) -> Value:
    """Whether keys, whose words have so many dimensions, are the same, or are not."""
    direction, fold = COMPARED[name]
    shape = x.shape if x.ndim >= y.ndim else y.shape
    x, y = [under(b, v, shape[: len(shape) - v.ndim]) for v in (x, y)]
    each = b.compare(direction, x, y)
    keys = each.ndim - words
    out = each.tensor.with_shape(shape[:keys])
    return RULES[fold](b, out, each, axes=tuple(range(keys, each.ndim)))  # type: ignore[no-any-return]


def under(b: Builder, x: Value, lead: Sequence[int]) -> Value:
    """The same array for each element of something: (*lead, *x.shape)."""
    out = x.tensor.with_shape((*lead, *x.shape))
    return b.broadcast(x, out, range(len(lead), out.ndim)) if lead else x


def at_words(e: Eqn) -> Params:
    """The parameters of an equation about keys for arrays of their words."""
    rewrite = PARAMETERS.get(e.primitive.name)
    if rewrite is None:
        raise NotImplementedError(
            f"{e.primitive.name} of random keys has no form on XLA; take their words by"
            f" random.key_data ({e.source})"
        )
    return rewrite(e, e.params)
