"""`jax._src.mesh`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.sharding import (
        AbstractMesh,
        AxisType,
        Mesh,
        get_abstract_mesh,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
