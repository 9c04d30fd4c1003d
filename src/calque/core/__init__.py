"""What a program is: dtypes, avals, primitives, jaxprs, traces, arrays and pytrees."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.avals import AbstractValue, ShapedArray
    from calque.core.foreign_values import types as pytype_aval_mappings
    from calque.core.jaxprs import Atom, ParamDict, Value
    from calque.core.outside import (
        ensure_compile_time_eval,
        eval_context,
        eval_jaxpr,
        max_dim,
        min_dim,
    )
    from calque.core.trace_state import Trace, Tracer

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
