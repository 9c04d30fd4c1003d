"""`jax._src.sharding_impls`."""

from typing import TYPE_CHECKING, Any

from calque.core import lazy as _lazy
from calque.core.devices import Device
from calque.transforms.devices import sharding as _sharding
from calque.xla import jaxlib as _jaxlib

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


def make_single_device_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The sharding of an array on one device. jaxlib's machine code asks for it with devices of its
    own, and gets its own kind."""
    if isinstance(device, Device):
        return _sharding.make_single_device_sharding(device, memory_kind)
    return _jaxlib.one_device(device)
