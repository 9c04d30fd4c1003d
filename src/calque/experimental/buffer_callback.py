"""Python functions that a running program calls with memory to write its results to."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calque.core import pytrees
from calque.core.trace import typeof
from calque.transforms.engines.trees import name_of, wrapping
from calque.transforms.functions.callbacks import io_callback, pure_callback

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """What a call is for. Programs here only ever run: `EXECUTE`."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


@dataclasses.dataclass(frozen=True)
class ExecutionContext:
    """Under which circumstances a function is called.

    Args:
        stage: What the call is for.
        stream: The stream of the GPU, 0 on others.

    >>> from calque.experimental.buffer_callback import ExecutionContext
    >>> ExecutionContext().stage.name
    'EXECUTE'"""

    stage: ExecutionStage = ExecutionStage.EXECUTE
    stream: int = 0


class Buffer:
    """Memory of an argument or a result, for NumPy (`np.asarray`) and DLPack.

    Args:
        array: The memory as NumPy sees it.

    >>> from calque.experimental.buffer_callback import Buffer
    >>> Buffer(np.zeros(3)).shape
    (3,)"""

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return self._array.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._array.dtype

    @property
    def writeable(self) -> bool:
        """Whether it may be written to: that of a result."""
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        same = dtype is None or np.dtype(dtype) == self._array.dtype
        if same and not copy:
            return self._array
        if copy is False:
            raise ValueError(f"a buffer of {self.dtype} as {np.dtype(dtype)} needs a copy")
        return np.array(self._array, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._array.__dlpack_device__()
        return int(kind), int(number)


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Makes a function of arrays of a Python function that writes its results to memory.

    Args:
        callback: `callback(context, out, *args)` gets an ExecutionContext, the memory of the
            results as a tree of Buffers, and the arguments with a Buffer in place of each array. It
            writes to `out` and returns nothing.
        result_shape_dtypes: The types of the results: a tree of anything with a shape and a dtype.
        has_side_effect: Whether a call counts though nobody uses its result.
        vmap_method: How it is called for a batch, as `pure_callback` takes it.
        input_output_aliases: For numbers of flat arguments, that of the flat result which has
            their contents at first.
        command_buffer_compatible: Whether a GPU may record it; there is none here.

    Returns:
        A function of arrays and trees of them.

    >>> from calque.experimental.buffer_callback import buffer_callback
    >>> def add_one(context, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> buffer_callback(add_one, jax.ShapeDtypeStruct((), np.int32))(41)
    Array(42, dtype=int32)"""
    aliases = dict(input_output_aliases or {})
    if has_side_effect and vmap_method is not None:
        raise ValueError(
            f"buffer_callback: vmap_method={vmap_method!r} is for functions without side effects;"
            " with has_side_effect=True a batch is called for one by one"
        )
    types, out_tree = pytrees.flatten(result_shape_dtypes)
    run = io_callback if has_side_effect else partial(pure_callback, vmap_method=vmap_method)

    def call(*args: Any) -> Any:
        leaves = pytrees.leaves(args)
        called = _Call(callback, [typeof(x).ndim for x in leaves], types, out_tree, aliases)
        return run(called.run, result_shape_dtypes, *args)

    return wrapping(call, callback)


class _Call(NamedTuple):
    """The Python function for arguments of these ranks, called with arrays."""

    callback: Callable[..., None]
    ranks: list[int]
    types: list[Any]
    out_tree: Any
    aliases: Mapping[int, int]

    def run(self, *args: Any) -> Any:
        leaves, in_tree = pytrees.flatten(args)
        given = [np.asarray(x).view() for x in leaves]
        for x in given:
            x.flags.writeable = False
        lanes = [x.shape[: x.ndim - rank] for x, rank in zip(given, self.ranks)]
        batch = np.broadcast_shapes(*lanes)
        outs = [np.empty((*batch, *t.shape), t.dtype) for t in self.types]
        for i, j in self.aliases.items():
            outs[j][...] = given[i]
        out = pytrees.unflatten(self.out_tree, map(Buffer, outs))
        buffers = pytrees.unflatten(in_tree, map(Buffer, given))
        result = self.callback(ExecutionContext(), out, *buffers)
        if result is not None:
            raise ValueError(
                f"buffer_callback: {name_of(self.callback)} returned {result!r}; it must write to"
                " `out` and return nothing"
            )
        return pytrees.unflatten(self.out_tree, outs)
