"""`jax._src.state.indexing`: slices of a fixed size, as parts of an index."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.numpy.indexing.dynamic_slices import Slice, ds
    from calque.numpy.indexing.dynamic_slices import ds as dslice

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
