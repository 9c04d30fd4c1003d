"""`jax._src.mesh_utils`: grids of devices for meshes."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.experimental.mesh_utils import (
        create_device_mesh,
        create_hybrid_device_mesh,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
