"""`jax._src.callback`: calls of Python from programs."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        pure_callback,
    )
    from calque.experimental import (
        io_callback,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
