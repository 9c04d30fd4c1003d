"""Primitives, programs and their parts, in JAX's names."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.core.errors import InconclusiveDimensionOperation
    from calque.core.jaxprs import (
        ClosedJaxpr,
        DropVar,
        Jaxpr,
        JaxprTypeError,
        Literal,
        Var,
        check_jaxpr,
    )
    from calque.core.jaxprs import Eqn as JaxprEqn
    from calque.core.trace import jaxpr_as_fun
    from calque.extend.core import primitives
    from calque.extend.own import Primitive
    from calque.extend.programs import (
        AbstractToken,
        DebugInfo,
        Effect,
        Effects,
        Token,
        TraceTag,
        array_types,
        call_impl,
        concrete_or_error,
        find_top_trace,
        gensym,
        get_opaque_trace_state,
        jaxprs_in_params,
        mapped_aval,
        new_jaxpr_eqn,
        no_effects,
        nonempty_axis_env_DO_NOT_USE,
        primal_dtype_to_tangent_dtype,
        set_current_trace,
        subjaxprs,
        take_current_trace,
        unmapped_aval,
        unsafe_am_i_under_a_jit_DO_NOT_USE,
        unsafe_am_i_under_a_vmap_DO_NOT_USE,
        unsafe_get_axis_names_DO_NOT_USE,
        valid_jaxtype,
    )
    from calque.transforms.primitives.call import CallPrimitive

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
    "Primitive", "Token", "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr",
    "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state", "jaxpr_as_fun",
    "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects",
    "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "primitives",
    "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__)
