"""`jax._src.flatten_util`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.flatten_util import (
        ravel_pytree,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
