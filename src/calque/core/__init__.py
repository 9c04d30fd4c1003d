"""What a program is: dtypes, avals, primitives, jaxprs, traces, arrays and pytrees."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`; to be had from here
    from calque.core.avals import AbstractValue as AbstractValue
    from calque.core.avals import ShapedArray as ShapedArray
    from calque.core.foreign_values import types as pytype_aval_mappings
    from calque.core.jaxprs import Atom as Atom
    from calque.core.jaxprs import ParamDict as ParamDict
    from calque.core.jaxprs import Value as Value
    from calque.core.outside import ensure_compile_time_eval as ensure_compile_time_eval
    from calque.core.outside import eval_context as eval_context
    from calque.core.outside import eval_jaxpr as eval_jaxpr
    from calque.core.outside import max_dim as max_dim
    from calque.core.outside import min_dim as min_dim
    from calque.core.trace_state import Trace as Trace
    from calque.core.trace_state import Tracer as Tracer

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
