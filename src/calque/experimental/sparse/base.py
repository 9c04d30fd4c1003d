"""What all sparse formats have in common."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace_state import Tracer
from calque.ops.common import zero_like
from calque.transforms.functions.vmap import vmap


class SparseEfficiencyError(ValueError):
    """An operation would store or compute much more than a sparse array should need."""


class SparseEfficiencyWarning(UserWarning):
    """An operation stores or computes much more than a sparse array should need."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """The same, on a GPU."""


class SparseInfo(NamedTuple):
    """The shape of a sparse array and what is known of its indices."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def undefined(of: Any, name: str) -> NotImplementedError:
    """What a class of sparse arrays must define, and does not."""
    return NotImplementedError(f"the class {type(of).__name__} of sparse arrays defines no {name}")


class JAXSparse:
    """The base class of sparse arrays: containers whose leaves are arrays, the values first.

    >>> isinstance(sparse.eye(2), sparse.JAXSparse)
    True"""

    data: Any
    shape: tuple[int, ...]
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 200

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of stored elements, of each batch."""
        raise undefined(self, "nse")

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def _layout(self) -> str:
        return ""

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}, nse={self.nse}{self._layout()})"
        except (AttributeError, TypeError, IndexError):
            return f"{name}(<invalid>)"  # a container in the middle of being taken apart
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def tree_flatten(self) -> tuple[Any, Any]:
        """Gives the arrays of this one, and the rest.

        Returns:
            A pair."""
        raise undefined(self, "tree_flatten")

    def transpose(self, axes: Any = None) -> Any:
        """Gives the array with its dimensions in another order.

        Args:
            axes: For each new dimension the old one; None reverses all.

        Returns:
            A sparse array."""
        raise undefined(self, "transpose")

    def todense(self) -> Any:
        """Gives the array as a dense one.

        Returns:
            An array."""
        raise undefined(self, "todense")

    def block_until_ready(self) -> Any:
        """Waits until the values are there.

        Returns:
            The array itself."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            f"{type(self).__name__} does not become a NumPy array by itself: use .todense()"
        )


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array."""
    return isinstance(x, JAXSparse)


def per_batch(f: Callable[..., Any], n_batch: int, *args: Any) -> Any:
    """`f` for each batch: over `n_batch` leading dimensions of all arguments, where those of size 1
    are repeated."""
    if n_batch == 0:
        return f(*args)
    lead = jnp.broadcast_shapes(*(x.shape[:n_batch] for x in args))
    whole = [jnp.broadcast_to(x, lead + x.shape[n_batch:]) for x in args]
    for _ in range(n_batch):
        f = vmap(f)
    return f(*whole)


def columns(indices: Any) -> tuple[Any, ...]:
    """One array of indices for each sparse dimension."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def chosen(indices: Any, kept: Sequence[int]) -> Any:
    """Indices of some of the sparse dimensions."""
    if not kept:
        return jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    return jnp.stack([indices[..., k] for k in kept], axis=-1)


def scatter_added(shape: tuple[int, ...], at: Any, values: Any) -> Any:
    """Zeros of `shape` with values added; what lies outside is left out."""
    if values.dtype == bool:
        return (
            jnp.zeros(shape, np.uint8).at[at].max(values.astype(np.uint8), mode="drop").astype(bool)
        )
    return jnp.zeros(shape, values.dtype).at[at].add(values, mode="drop")


# ---------------------------------------------------------------- todense of a traced value


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    out, (t,) = dense_p.bind(*primals), tangents
    return out, (zero_like(out) if type(t) is Zero else dense_p.bind(t))


# a value that is dense for all but `sparsify`, which may give a sparse array in its place
dense_p: Primitive = Primitive(
    "todense",
    meaning=lambda x: x,
    shape=lambda x: x,
    jvp=_jvp,
    transpose=lambda ct, x: [Zero(x.aval) if type(ct) is Zero else dense_p.bind(ct)],
    batch=lambda args, dims: (dense_p.bind(*args), dims[0]),
)
dense_p.program = lambda x: do.copy(x)
