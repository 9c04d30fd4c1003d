"""`jaxlib._jax`: the types of jitted functions, arrays, devices and shardings, which are calque's
own; what speaks to XLA is not here."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.arrays import ArrayImpl
    from calque.core.devices import Client, Device
    from calque.errors import JaxRuntimeError
    from calque.machine.call.functions import (
        Jitted as PjitFunction,
    )
    from calque.sharding import NamedSharding, Sharding, SingleDeviceSharding

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
