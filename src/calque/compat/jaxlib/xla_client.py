"""`jaxlib.xla_client`: as `jaxlib._jax`, by the names that programs know from earlier versions."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.arrays import ArrayImpl
    from calque.core.devices import Client, Device
    from calque.errors import (
        JaxRuntimeError as XlaRuntimeError,
    )
    from calque.sharding import NamedSharding, Sharding, SingleDeviceSharding

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
