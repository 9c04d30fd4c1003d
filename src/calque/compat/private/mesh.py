"""`jax._src.mesh`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.sharding import (
        AbstractDevice,
        AbstractMesh,
        AxisType,
        Mesh,
        get_abstract_mesh,
        get_mesh,
        use_abstract_mesh,
    )
    from calque.transforms.devices.mesh import (
        EMPTY as empty_concrete_mesh,
    )
    from calque.transforms.devices.mesh import (
        EMPTY_ABSTRACT as empty_abstract_mesh,
    )
    from calque.transforms.devices.mesh import (
        get_mesh as get_concrete_mesh,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
