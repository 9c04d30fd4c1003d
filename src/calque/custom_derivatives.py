"""Functions with derivatives of their own."""

from calque.transforms.primitives.custom_jvp import (
    SymbolicZero,
    custom_jvp,
    custom_jvp_call_p,
    zero_from_primal,
)
from calque.transforms.primitives.custom_more import (
    closure_convert,
    custom_gradient,
    custom_transpose,
    linear_call,
)
from calque.transforms.primitives.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_call_p,
    custom_vjp_primal_tree_values,
)

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_transpose", "custom_vjp", "custom_vjp_call_p",
    "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip
