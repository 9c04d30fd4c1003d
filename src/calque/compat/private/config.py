"""`jax._src.config`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        check_tracer_leaks,
        config,
        debug_nans,
        enable_x64,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
