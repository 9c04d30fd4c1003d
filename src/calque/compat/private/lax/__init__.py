"""`jax._src.lax`: the names of `calque.lax`, in whichever of its modules they are asked for."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.compat.private.lax import control_flow, lax, parallel, slicing

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
