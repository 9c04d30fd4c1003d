"""`jax._src.lax`: the names of `calque.lax`, in whichever of its modules they are asked for."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import lax as control_flow
    from calque import lax as convolution
    from calque import lax as lax
    from calque import lax as other
    from calque import lax as parallel
    from calque import lax as slicing
    from calque import lax as special
    from calque import lax as windowed_reductions

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
