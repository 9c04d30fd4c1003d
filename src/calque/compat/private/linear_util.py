"""`jax._src.linear_util`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.extend.linear_util import (
        WrappedFun,
        cache,
        merge_linear_aux,
        transformation,
        transformation2,
        transformation_with_aux,
        transformation_with_aux2,
        wrap_init,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
