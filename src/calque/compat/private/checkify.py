"""`jax._src.checkify`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.errors import CalqueRuntimeError as JaxRuntimeError
    from calque.experimental.checkify import (
        Error,
        ErrorCategory,
        JaxException,
        Out,
        all_checks,
        automatic_checks,
        check,
        check_error,
        checkify,
        div_checks,
        float_checks,
        index_checks,
        nan_checks,
        user_checks,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
