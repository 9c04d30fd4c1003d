"""`jax._src.op_shardings`: shardings in XLA's terms."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.transforms.devices.tiles import (
        are_equal as are_hlo_shardings_equal,
    )
    from calque.transforms.devices.tiles import (
        is_replicated as is_hlo_sharding_replicated,
    )
    from calque.transforms.devices.tiles import (
        ways_sharded as get_num_ways_dim_sharded,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
