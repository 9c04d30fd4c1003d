"""`jax._src.partition_spec`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.sharding import (
        PartitionSpec,
    )
    from calque.sharding import (
        PartitionSpec as P,
    )
    from calque.transforms.devices.specs import (
        UNCONSTRAINED as _UNCONSTRAINED_PARTITION,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
