"""`jax._src.custom_derivatives`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.custom_derivatives import (
        CustomVJPPrimal,
        SymbolicZero,
        closure_convert,
        custom_jvp,
        custom_vjp,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
