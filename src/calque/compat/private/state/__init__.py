"""`jax._src.state`: mutable references."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.compat.private.state import indexing, types
    from calque.ref import (
        AbstractRef,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
