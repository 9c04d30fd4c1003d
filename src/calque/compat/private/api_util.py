"""`jax._src.api_util`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.api_util import (
        debug_info,
        flatten_fun,
        flatten_fun_nokwargs,
        shaped_abstractify,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
