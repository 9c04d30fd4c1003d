"""Functions with derivatives of their own."""

from calque.core import guards as _guards
from calque.transforms.engines.zeros import SymbolicZero
from calque.transforms.functions.custom_arguments import zero_from_primal
from calque.transforms.functions.custom_gradient import closure_convert, custom_gradient
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from calque.transforms.functions.linear_calls import custom_transpose, linear_call
from calque.transforms.primitives.custom_jvp import custom_jvp_call_p
from calque.transforms.primitives.custom_vjp import custom_vjp_call_p

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_transpose", "custom_vjp", "custom_vjp_call_p",
    "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip

_guards.guard_public(globals())
