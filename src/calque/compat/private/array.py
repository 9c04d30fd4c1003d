"""`jax._src.array`: arrays."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        Shard,
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from calque.core.arrays import (
        ArrayImpl,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
