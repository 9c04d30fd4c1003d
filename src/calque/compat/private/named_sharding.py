"""`jax._src.named_sharding`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.sharding import (
        NamedSharding,
    )
    from calque.transforms.devices.specs import (
        DuplicateSpecError,
    )
    from calque.transforms.devices.tiles import (
        SdyArray,
        SdyDim,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
