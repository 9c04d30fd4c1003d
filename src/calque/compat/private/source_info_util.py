"""`jax._src.source_info_util`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.extend.source_info_util import (
        register_exclusion,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
