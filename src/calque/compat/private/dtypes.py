"""`jax._src.dtypes`: element types."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.dtypes import (
        ExtendedDType,
        TypePromotionError,
        float0,
    )
    from calque.dtypes import (
        bfloat16,
        canonicalize_dtype,
        extended,
        finfo,
        iinfo,
        issubdtype,
        itemsize_bits,
        prng_key,
        result_type,
        scalar_type_of,
    )
    from calque.numpy import (
        dtype as DType,
    )
    from calque.numpy import (
        isdtype,
        promote_types,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
