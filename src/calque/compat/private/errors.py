"""`jax._src.errors`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.errors import (
        ConcretizationTypeError,
        KeyReuseError,
        NonConcreteBooleanIndexError,
        TracerArrayConversionError,
        TracerBoolConversionError,
        TracerIntegerConversionError,
        UnexpectedTracerError,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
