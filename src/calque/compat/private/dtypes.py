"""`jax._src.dtypes`: element types."""

from typing import TYPE_CHECKING, Any

import numpy as _np

from calque.core import lazy as _lazy
from calque.core.dtypes import complex_of as _complex_of

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


def to_complex_dtype(dtype: Any) -> Any:
    """The complex dtype that holds values of this dtype."""
    return _complex_of(_np.dtype(dtype))
