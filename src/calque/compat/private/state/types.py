"""`jax._src.state.types`."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.ref import (
        AbstractRef,
    )
    from calque.transforms.primitives.ref_views import (
        Recast as BitcastTransform,
    )
    from calque.transforms.primitives.ref_views import (
        RefIndexer,
        TransformedRef,
    )
    from calque.transforms.primitives.ref_views import (
        Reshaped as ReshapeTransform,
    )
    from calque.transforms.primitives.ref_views import (
        Transposed as TransposeTransform,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
