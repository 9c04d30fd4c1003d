"""`jax._src.sharding_impls`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        make_mesh,
        set_mesh,
    )
    from calque.sharding import (
        NamedSharding,
        PartitionSpec,
        SingleDeviceSharding,
        make_single_device_sharding,
    )
    from calque.transforms.devices.tiles import (
        GSPMDSharding,
        SdyArray,
        SdyDim,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
