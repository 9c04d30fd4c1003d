"""Functions of flat arguments with transformations around them, in JAX's names.

>>> from calque.extend import linear_util as lu
>>> @lu.transformation2
... def doubled(f, x):
...     return 2 * f(x)
>>> doubled(lu.wrap_init(lambda x: x + 1)).call_wrapped(3)
8
"""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.transforms.engines.wrapped import (
        Store,
        StoreException,
        WrappedFun,
        cache,
        merge_linear_aux,
        transformation,
        transformation2,
        transformation_with_aux,
        transformation_with_aux2,
        wrap_init,
    )

__all__ = [
    "Store", "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
