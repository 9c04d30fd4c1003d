"""`jax._src.core`: programs and their parts, traces."""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.arrays import is_concrete
    from calque.core.avals import (
        AbstractValue,
        ShapedArray,
    )
    from calque.core.foreign_values import (
        types as pytype_aval_mappings,
    )
    from calque.core.primitives import (
        Zero,
    )
    from calque.core.trace import (
        JaxprTrace as DynamicJaxprTrace,
    )
    from calque.core.trace import (
        eval_jaxpr,
    )
    from calque.core.trace import (
        placed_typeof as typeof,
    )
    from calque.core.trace_state import (
        Trace,
        Tracer,
    )
    from calque.errors import (
        ConcretizationTypeError,
        UnexpectedTracerError,
    )
    from calque.extend.core import *  # noqa: F403 (what is public is here as well)
    from calque.extend.programs import (
        trace_state_clean,
    )
    from calque.ref import new_ref
    from calque.transforms.devices.types import (
        ManualAxisType,
        ShardingTypeError,
    )
    from calque.transforms.devices.types import (
        of_explicit_axes as modify_spec_for_auto_manual,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number that is known now, and no size of any value."""
    try:
        operator.index(d)
    except Exception:
        return False
    return True


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether all sizes of a shape are numbers that are known now."""
    return all(map(is_constant_dim, s))
