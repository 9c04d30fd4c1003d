"""`jax._src.prng`: random keys."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.ops.random.keys import (
        KeyDType as KeyTy,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
