"""`jax._src.numpy`: the names of `calque.numpy`, in whichever of its modules they are asked for."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import numpy as array_creation
    from calque import numpy as einsum
    from calque import numpy as indexing
    from calque import numpy as lax_numpy
    from calque import numpy as reductions
    from calque import numpy as setops
    from calque import numpy as sorting
    from calque import numpy as tensor_contractions
    from calque import numpy as ufunc_api
    from calque import numpy as ufuncs
    from calque import numpy as vectorize
    from calque import numpy as window_functions
    from calque.compat.private.numpy import util
    from calque.numpy import fft, linalg

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
