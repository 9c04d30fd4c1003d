"""`jax._src.sharding`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.sharding import (
        Sharding,
    )
    from calque.transforms.devices.sharding import (
        IndivisibleError,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
