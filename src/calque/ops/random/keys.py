"""Random keys as values: their dtypes, the algorithms behind them, and the primitives that make and
use them.

A key array has an element type such as key<fry>; NumPy holds its elements as records of uint32
words, so that whatever moves elements about (reshape, slice, select_n, ...) needs no rule of its
own for keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from calque.core.adopting import from_storage
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import ExtendedDType, is_integer
from calque.core.primitives import REGISTRY, Primitive, Zero, do
from calque.core.trace import typeof
from calque.machine.state import process
from calque.ops.common import batch_elementwise, move, tangent_aval
from calque.ops.kinds import not_linear
from calque.ops.random import counter_based, philox, threefry

_UINT32 = np.dtype("uint32")

# ---------------------------------------------------------------- algorithms and their dtypes


class PRNGImpl:
    """An algorithm of random keys, given on arrays of key words (NumPy): the words of a key are the
    last dimension.

    seed(seeds)                        keys from integers
    split(keys, shape)                 keys of shape `shape` for each key
    fold_in(keys, data)                a key from a key and a uint32
    random_bits(keys, width, shape)    unsigned integers of `width` bits, of shape `shape` for each
    key
    one_draw_for_lanes                 primitives for which under vmap the key of the first lane
    draws for all of them
    field                              of what memory holds; of those that every process has the
    name, which others may have, too
    """

    def __init__(
        self,
        name: str,
        tag: str,
        key_shape: tuple[int, ...],
        *,
        seed: Callable[[np.ndarray], np.ndarray],
        split: Callable[[np.ndarray, tuple[int, ...]], np.ndarray],
        fold_in: Callable[[np.ndarray, np.ndarray], np.ndarray],
        random_bits: Callable[[np.ndarray, int, tuple[int, ...]], np.ndarray],
        one_draw_for_lanes: Collection[str] = (),
        field: str | None = None,
    ):
        self.name, self.tag, self.key_shape = name, tag, key_shape
        self.seed, self.split, self.fold_in, self.random_bits = seed, split, fold_in, random_bits
        self.one_draw_for_lanes = one_draw_for_lanes
        self.field = field or f"{name} {id(self):x}"
        self.dtype = KeyDType(self)

    def __repr__(self) -> str:
        return self.tag

    def __reduce__(self) -> Any:
        _check_named(self)
        return implementation, (self.name,)


class extended:
    """The scalar type above all dtypes that NumPy does not know.

    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
    True"""


class prng_key(extended):
    """The scalar type of typed random keys.

    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
    True"""


class KeyDType(ExtendedDType):
    """The dtype of the keys of one algorithm. There is one object for each algorithm."""

    type = prng_key

    def __init__(self, impl: PRNGImpl):
        self.impl, self.name = impl, f"key<{impl.tag}>"
        self.storage = np.dtype([(impl.field, np.uint32, impl.key_shape)])
        self.itemsize = self.storage.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        _check_named(self.impl)
        return _dtype_named, (self.impl.name,)


def _check_named(impl: PRNGImpl) -> None:
    if IMPLEMENTATIONS.get(impl.name) is not impl:
        raise TypeError(
            f"the algorithm {impl.name!r} of random keys was defined in this process: it cannot be"
            " pickled. Pickle random.key_data(key) instead."
        )


def _dtype_named(name: str) -> KeyDType:
    return IMPLEMENTATIONS[name].dtype


def _of(name: str, tag: str, g: counter_based.Generator) -> PRNGImpl:
    return PRNGImpl(
        name,
        tag,
        (g.words,),
        seed=g.seed,
        split=g.split,
        fold_in=g.fold_in,
        random_bits=g.random_bits,
        field=name,
    )


IMPLEMENTATIONS: Final = {
    impl.name: impl
    for impl in (
        PRNGImpl(
            "threefry2x32",
            "fry",
            (2,),
            field="threefry2x32",
            seed=threefry.seed_key,
            split=threefry.split_key,
            fold_in=threefry.fold_in,
            random_bits=threefry.random_bits,
        ),
        PRNGImpl(
            "rbg",
            "rbg",
            (4,),
            field="rbg",
            seed=philox.seed_key,
            split=philox.split_halves,
            fold_in=philox.fold_in_halves,
            random_bits=philox.random_bits,
            one_draw_for_lanes=("random_bits",),
        ),
        PRNGImpl(
            "unsafe_rbg",
            "urbg",
            (4,),
            field="unsafe_rbg",
            seed=philox.seed_key,
            split=philox.split_fast,
            fold_in=philox.fold_in_fast,
            random_bits=philox.random_bits,
            one_draw_for_lanes=("random_bits", "random_split"),
        ),
        _of("threefry4x32", "fry4", counter_based.THREEFRY_4X32),
        _of("philox2x32", "phx2", counter_based.PHILOX_2X32),
        _of("philox4x32", "phx4", counter_based.PHILOX_4X32),
    )
}


def implementation(impl: Any) -> PRNGImpl:
    """The algorithm of this name; a PRNGImpl and a key dtype stand for themselves."""
    if isinstance(impl, PRNGImpl):
        return impl
    if isinstance(impl, KeyDType):
        return impl.impl
    if not isinstance(impl, str):
        raise TypeError(
            f"unrecognized type {type(impl)} for specifying a PRNG implementation: its name is"
            f" needed, one of {', '.join(IMPLEMENTATIONS)}"
        )
    found = IMPLEMENTATIONS.get(impl)
    if found is None:
        raise ValueError(
            f"unrecognized PRNG implementation {impl!r}: it must be one of"
            f" {', '.join(IMPLEMENTATIONS)}"
        )
    return found


# ---------------------------------------------------------------- rules


def _words(keys: np.ndarray) -> np.ndarray:
    (field,) = keys.dtype.names or ()
    return np.asarray(keys[field])


def _records(words: np.ndarray, impl: PRNGImpl) -> np.ndarray:
    out = np.empty(words.shape[: words.ndim - len(impl.key_shape)], impl.dtype.storage)
    out[impl.field] = words
    return out


def impl_of(keys: np.ndarray) -> PRNGImpl:
    """The algorithm of key records, by the name of their field."""
    return _BY_FIELD[(keys.dtype.names or ("",))[0]]


def keys_of_records(records: np.ndarray) -> Any:
    """An Array of typed keys, from what memory holds of them."""
    return from_storage(records, ShapedArray(records.shape, impl_of(records).dtype))


_BY_FIELD: Final[dict[str, PRNGImpl]] = process.container(
    "algorithms of random keys", {impl.field: impl for impl in IMPLEMENTATIONS.values()}
)


def define(impl: PRNGImpl) -> None:
    """Let there be keys of an algorithm that a library brings. It is known from now on, as keys may
    be kept."""
    _BY_FIELD[impl.field] = impl


def need_key(name: str, aval: ShapedArray) -> PRNGImpl:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(
            f"{name} needs typed keys, got {aval.str_short()}: make them with random.key(seed) or"
            " random.wrap_key_data(bits)"
        )
    return aval.dtype.impl


def _no_tangents(name: str) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = REGISTRY[name].bind(*primals, **params)
        return out, Zero(tangent_aval(typeof(out)))

    return jvp


def _batch_in_place(name: str) -> Callable[..., Any]:
    return lambda args, dims, **params: (REGISTRY[name].bind(*args, **params), dims[0])


class DrawingPrimitive(Primitive):
    """A primitive that draws from keys in the form that `threefry_partitionable` says where it is
    called: its programs keep that form, whatever the flag is when they are compiled and run."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        params.setdefault("partitionable", bool(config.threefry_partitionable))
        return super().bind(*args, **params)


def drawing_as(partitionable: bool) -> AbstractContextManager[None]:
    """Whatever asks for the flag inside is told this."""
    if config.threefry_partitionable == partitionable:
        return nullcontext()
    return config.override("threefry_partitionable", partitionable)


def _drawing_primitive(name: str, meaning: Callable[..., Any], shape: Callable[..., Any]) -> Any:
    return DrawingPrimitive(
        name,
        meaning=meaning,
        shape=shape,
        jvp=_no_tangents(name),
        transpose=not_linear(name),
        batch=_first_lane_draws(name),
        hidden=("partitionable",),
    )


def _primitive(
    name: str,
    meaning: Callable[..., Any],
    shape: Callable[..., Any],
    batch: Callable[..., Any] | None = None,
) -> Primitive:
    return Primitive(
        name,
        meaning=meaning,
        shape=shape,
        jvp=_no_tangents(name),
        transpose=not_linear(name),
        batch=batch or _batch_in_place(name),
    )


def _seed_shape(seeds: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    if not is_integer(seeds.dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds.str_short()}")
    return ShapedArray(seeds.shape, impl.dtype)


def _wrap_shape(bits: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    n = len(impl.key_shape)
    if bits.dtype != _UINT32 or bits.shape[-n:] != impl.key_shape:
        raise TypeError(
            f"keys of {impl.name} are made of uint32 words, the last dimension being"
            f" {impl.key_shape}; got {bits.str_short()}"
        )
    return ShapedArray(bits.shape[:-n], impl.dtype)


def _wrap_batch(args: Sequence[Any], dims: Sequence[int], *, impl: PRNGImpl) -> tuple[Any, int]:
    (bits,), (d,) = args, dims
    if d >= typeof(bits).ndim - len(impl.key_shape):
        bits, d = move(bits, d, 0), 0
    return do.random_wrap(bits, impl=impl), d


def _unwrap_shape(keys: ShapedArray) -> ShapedArray:
    return ShapedArray(keys.shape + need_key("random_unwrap", keys).key_shape, _UINT32)


def _split_shape(
    keys: ShapedArray, *, shape: tuple[int, ...], partitionable: bool = True
) -> ShapedArray:
    need_key("random_split", keys)
    return ShapedArray(keys.shape + shape, keys.dtype)


def _fold_in_shape(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    need_key("random_fold_in", keys)
    if data.dtype != _UINT32:
        raise TypeError(f"random_fold_in needs uint32 data, got {data.str_short()}")
    if keys.shape and data.shape and keys.shape != data.shape:
        raise TypeError(
            f"random_fold_in got incompatible shapes: keys {keys.shape}, data {data.shape}"
        )
    return ShapedArray(keys.shape or data.shape, keys.dtype)


def _fold_in_meaning(keys: np.ndarray, data: np.ndarray) -> np.ndarray:
    shape = keys.shape or data.shape
    keys, data = np.broadcast_to(keys, shape), np.broadcast_to(data, shape)
    impl = impl_of(keys)
    return _records(impl.fold_in(_words(keys), data), impl)


def _bits_shape(
    keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...], partitionable: bool = True
) -> ShapedArray:
    need_key("random_bits", keys)
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"random_bits: bit_width must be 8, 16, 32 or 64, got {bit_width}")
    return ShapedArray(keys.shape + shape, np.dtype(f"uint{bit_width}"))


def _split_meaning(
    keys: np.ndarray, *, shape: tuple[int, ...], partitionable: bool = True
) -> np.ndarray:
    impl = impl_of(keys)
    with drawing_as(partitionable):
        return _records(impl.split(_words(keys), shape), impl)


def _bits_meaning(
    keys: np.ndarray, *, bit_width: int, shape: tuple[int, ...], partitionable: bool = True
) -> np.ndarray:
    with drawing_as(partitionable):
        return impl_of(keys).random_bits(_words(keys), bit_width, shape)


def _first_lane_draws(name: str) -> Callable[..., Any]:
    """The batching rule of a primitive that draws from keys: those of `rbg` draw as JAX's do,
    where the key of the first lane gives the bits of all lanes."""

    def batch(
        args: Sequence[Any], dims: Sequence[int], *, shape: tuple[int, ...], **params: Any
    ) -> tuple[Any, int]:
        (keys,), (d,) = args, dims
        aval = typeof(keys)
        if name not in aval.dtype.impl.one_draw_for_lanes:
            return REGISTRY[name].bind(keys, shape=shape, **params), d
        ends = tuple(1 if i == d else n for i, n in enumerate(aval.shape))
        first = do.slice(keys, start_indices=(0,) * aval.ndim, limit_indices=ends, strides=None)
        first = do.squeeze(first, dimensions=(d,))
        lanes = (aval.shape[d], *shape)
        return REGISTRY[name].bind(first, shape=lanes, **params), aval.ndim - 1

    return batch


random_seed_p = _primitive(
    "random_seed", lambda seeds, *, impl: _records(impl.seed(seeds), impl), _seed_shape
)
random_wrap_p = _primitive(
    "random_wrap", lambda bits, *, impl: _records(bits, impl), _wrap_shape, _wrap_batch
)
random_unwrap_p = _primitive("random_unwrap", lambda keys: _words(keys).copy(), _unwrap_shape)
random_clone_p = _primitive("random_clone", lambda keys: keys.copy(), lambda keys: keys)
random_split_p = _drawing_primitive("random_split", _split_meaning, _split_shape)
random_fold_in_p = _primitive(
    "random_fold_in", _fold_in_meaning, _fold_in_shape, batch_elementwise("random_fold_in")
)
random_bits_p = _drawing_primitive("random_bits", _bits_meaning, _bits_shape)
