"""Masks of attention: for each place of the queries, the places of the keys that it looks at. A
mask is asked for blocks, by slices; most are a rule over the two places and are never stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr", "Mask",
    "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_chunk_attention_mask",
    "make_local_attention_mask", "make_random_mask",
]  # fmt: skip

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Rule = Callable[[Any, Any], Any]
Window = tuple[int | None, int | None]


# ---------------------------------------------------------------- rules


def _causal(rows: Any, columns: Any, offset: int = 0) -> Any:
    return rows + offset >= columns


def _local(rows: Any, columns: Any, window: Window, offset: int) -> Any:
    left, right = window
    seen = np.ones(np.broadcast_shapes(rows.shape, columns.shape), np.bool_)
    if left is not None:
        seen &= rows + offset - left <= columns
    if right is not None:
        seen &= rows + offset + right >= columns
    return seen


def _chunked(rows: Any, columns: Any, size: int) -> Any:
    return (rows // size == columns // size) & (rows >= columns)


def _whole(shape: tuple[int, int], rule: Rule) -> Bools:
    rows, columns = (np.arange(n, dtype=np.int32) for n in shape)
    return np.asarray(rule(rows[:, None], columns[None, :]), np.bool_)


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> Bools:
    """Makes a mask of the places up to the query's own.

    Args:
        shape: The numbers of queries and of keys.
        offset: How many places the queries stand behind the keys.

    Returns:
        An array of bools.

    Example:
        >>> splash_attention.make_causal_mask((2, 3)).astype(int)
        array([[1, 0, 0],
               [1, 1, 0]])
    """
    return _whole(shape, lambda rows, columns: _causal(rows, columns, offset))


def make_local_attention_mask(
    shape: tuple[int, int], window_size: Window, *, offset: int = 0
) -> Bools:
    """Makes a mask of the places near the query's own.

    Args:
        shape: The numbers of queries and of keys.
        window_size: How many places to the left and to the right are seen; None for all.
        offset: How many places the queries stand behind the keys.

    Returns:
        An array of bools.

    Example:
        >>> splash_attention.make_local_attention_mask((2, 4), (1, 1)).astype(int)
        array([[1, 1, 0, 0],
               [1, 1, 1, 0]])
    """
    return _whole(shape, lambda rows, columns: _local(rows, columns, window_size, offset))


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> Bools:
    """Makes a mask of the places up to the query's own, in its own chunk.

    Args:
        shape: The numbers of queries and of keys.
        chunk_size: How many places are a chunk.

    Returns:
        An array of bools.

    Example:
        >>> splash_attention.splash_attention_mask.make_chunk_attention_mask((3, 3), 2).astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 0, 1]])
    """
    _positive(chunk_size)
    return _whole(shape, lambda rows, columns: _chunked(rows, columns, chunk_size))


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> Bools:
    """Makes a mask of places drawn at random.

    Args:
        shape: The numbers of queries and of keys.
        sparsity: The share of places that are not seen.
        seed: What NumPy's generator begins with.

    Returns:
        An array of bools.

    Example:
        >>> splash_attention.make_random_mask((2, 2), 0.0, 1).all()
        np.True_
    """
    drawn = np.random.RandomState(seed).binomial(n=1, p=1.0 - sparsity, size=shape)
    return np.asarray(drawn, np.bool_)


def _positive(chunk_size: int) -> None:
    if chunk_size <= 0:
        raise ValueError(f"chunk_size must be positive, got {chunk_size}")


# ---------------------------------------------------------------- masks


class Mask:
    """What a mask answers: its shape, and blocks of it by slices. Masks are combined by & and |.

    Example:
        >>> near = splash_attention.LocalMask((3, 3), (1, 1), offset=0)
        >>> (near & splash_attention.CausalMask((3, 3)))[:, :].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 1, 1]])
    """

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError(f"{type(self).__name__} must define shape")

    def __getitem__(self, index: Any) -> Bools:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __bool__(self) -> bool:
        raise NotImplementedError(
            "a mask is not true or false: combine masks by & and |, not by and and or"
        )

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


@dataclasses.dataclass(unsafe_hash=True)
class _Pair(Mask):
    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape:
            raise ValueError(
                "masks that are combined must have one shape, got"
                f" {self.left.shape} and {self.right.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.left.shape


class LogicalOr(_Pair):
    """The places that one of two masks sees."""

    def __getitem__(self, index: Any) -> Bools:
        return self.left[index] | self.right[index]


class LogicalAnd(_Pair):
    """The places that two masks see."""

    def __getitem__(self, index: Any) -> Bools:
        return self.left[index] & self.right[index]


@dataclasses.dataclass
class MultiHeadMask(Mask):
    """A mask for each head.

    Args:
        masks: The masks, of one shape.

    Example:
        >>> splash_attention.MultiHeadMask([splash_attention.FullMask((2, 3))] * 4).shape
        (4, 2, 3)
    """

    masks: Sequence[Mask]

    def __post_init__(self) -> None:
        if not self.masks:
            raise ValueError("masks: there must be one at least")
        for mask in self.masks:
            if not isinstance(mask, Mask) or isinstance(mask, MultiHeadMask):
                raise ValueError(
                    f"masks: each must be the mask of a head, got {type(mask).__name__}"
                )
            if mask.shape != self.masks[0].shape:
                raise ValueError(
                    f"masks: all must have one shape, got {mask.shape} and {self.masks[0].shape}"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.masks), *self.masks[0].shape

    def __getitem__(self, index: Any) -> Bools:
        if not isinstance(index, tuple) or len(index) != 3:
            raise NotImplementedError(f"a mask of heads is indexed by three slices, got {index}")
        head, *places = index
        if isinstance(head, slice):
            return np.stack([mask[tuple(places)] for mask in self.masks[head]])
        return self.masks[head][tuple(places)]

    def __hash__(self) -> int:
        return hash((type(self), *self.masks))


class _ComputableMask(Mask):
    """A mask by a rule over places; `q_sequence` says which places the queries are."""

    def __init__(self, shape: tuple[int, int], mask_function: Rule, shard_count: int = 1) -> None:
        if shape[0] % shard_count**2:
            raise ValueError(
                f"shard_count: its square must divide the number of queries, {shape[0]},"
                f" got {shard_count}"
            )
        self._shape = shape
        self.mask_function = mask_function
        self.q_sequence = np.arange(shape[0], dtype=np.int32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __getitem__(self, index: Any) -> Bools:
        rows, columns = _two_slices(index)
        places = np.arange(self._shape[1], dtype=np.int32)[columns]
        seen = self.mask_function(self.q_sequence[rows][:, None], places[None, :])
        return np.asarray(seen, np.bool_)

    def _key(self) -> tuple[Any, ...]:
        """What tells this mask from others of its class."""
        raise NotImplementedError(f"{type(self).__name__} must define __eq__ and __hash__")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._key()))


class CausalMask(_ComputableMask):
    """The places up to the query's own.

    Args:
        shape: The numbers of queries and of keys.
        offset: How many places the queries stand behind the keys.
        shard_count: Over how many devices the queries are.

    Example:
        >>> splash_attention.CausalMask((2, 2))[:, :].astype(int)
        array([[1, 0],
               [1, 1]])
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        self.offset = offset
        super().__init__(
            shape, lambda rows, columns: _causal(rows, columns, self.offset), shard_count
        )

    def _key(self) -> tuple[Any, ...]:
        return self._shape, self.offset, self.q_sequence.tobytes()


class ChunkedCausalMask(_ComputableMask):
    """The places up to the query's own, in its own chunk.

    Args:
        shape: The numbers of queries and of keys.
        chunk_size: How many places are a chunk.
        shard_count: Over how many devices the queries are.

    Example:
        >>> splash_attention.splash_attention_mask.ChunkedCausalMask((3, 3), 2)[2:, :].astype(int)
        array([[0, 0, 1]])
    """

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        _positive(chunk_size)
        self.chunk_size = chunk_size
        super().__init__(
            shape, lambda rows, columns: _chunked(rows, columns, self.chunk_size), shard_count
        )

    def _key(self) -> tuple[Any, ...]:
        return self._shape, self.chunk_size, self.q_sequence.tobytes()


class LocalMask(_ComputableMask):
    """The places near the query's own.

    Args:
        shape: The numbers of queries and of keys.
        window_size: How many places to the left and to the right are seen; None for all.
        offset: How many places the queries stand behind the keys.
        shard_count: Over how many devices the queries are.

    Example:
        >>> splash_attention.LocalMask((2, 4), (0, 1), offset=0)[:, :].astype(int)
        array([[1, 1, 0, 0],
               [0, 1, 1, 0]])
    """

    def __init__(
        self, shape: tuple[int, int], window_size: Window, offset: int, shard_count: int = 1
    ) -> None:
        self.window_size = window_size
        self.offset = offset
        super().__init__(
            shape,
            lambda rows, columns: _local(rows, columns, self.window_size, self.offset),
            shard_count,
        )

    def _key(self) -> tuple[Any, ...]:
        return self._shape, self.window_size, self.offset, self.q_sequence.tobytes()


@dataclasses.dataclass
class NumpyMask(Mask):
    """A mask that is stored.

    Args:
        array: A matrix of bools.

    Example:
        >>> splash_attention.NumpyMask(np.eye(3, dtype=bool))[1:, :].astype(int)
        array([[0, 1, 0],
               [0, 0, 1]])
    """

    array: Bools

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or self.array.dtype != np.bool_:
            raise ValueError(
                "array: a mask is a matrix of bools, got"
                f" {self.array.dtype} of shape {self.array.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __getitem__(self, index: Any) -> Bools:
        return self.array[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((type(self), self.array.shape, self.array.tobytes()))


@dataclasses.dataclass(frozen=True)
class FullMask(Mask):
    """All places.

    Args:
        _shape: The numbers of queries and of keys.

    Example:
        >>> splash_attention.FullMask((2, 3))[:, :2].shape
        (2, 2)
    """

    _shape: tuple[int, int]

    def __post_init__(self) -> None:
        if not isinstance(self._shape, tuple):
            raise ValueError(f"the shape of a mask is a tuple, got {type(self._shape).__name__}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __getitem__(self, index: Any) -> Bools:
        rows, columns = _two_slices(index)
        sizes = (len(range(*s.indices(n))) for s, n in zip((rows, columns), self._shape))
        return np.ones(tuple(sizes), np.bool_)


def _two_slices(index: Any) -> tuple[slice, slice]:
    if isinstance(index, tuple) and len(index) == 2 and all(isinstance(s, slice) for s in index):
        return index[0], index[1]
    raise NotImplementedError(f"a mask is indexed by two slices, got {index}")
