"""`jax._src.sharding_impls`."""

from typing import TYPE_CHECKING, Any

from calque.core import lazy as _lazy
from calque.core.devices import Device as _Device
from calque.transforms.devices import sharding as _sharding

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        make_mesh,
        set_mesh,
    )
    from calque.sharding import (
        NamedSharding,
        PartitionSpec,
        SingleDeviceSharding,
    )
    from calque.transforms.devices.tiles import (
        GSPMDSharding,
        SdyArray,
        SdyDim,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
_jaxlib = _lazy.LazyModule("calque.xla.jaxlib")


def make_single_device_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The sharding of an array on one device. The machine code of jaxlib, which calque's engine for
    XLA runs, asks by this name for those of its own devices."""
    if isinstance(device, _Device):
        return _sharding.make_single_device_sharding(device, memory_kind)
    return _jaxlib.one_device(device)
