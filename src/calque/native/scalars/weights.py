"""What a scalar operation costs, in units of one addition."""

from typing import Final

from calque.native.scalars.vmath.power_roots import FUNCTIONS

HEAVY: Final = {
    **dict.fromkeys(("exp", "exp2", "sqrt", "rsqrt", "cbrt", "div", "sdiv", "srem", "udiv",
    "urem"), 10),
    **dict.fromkeys(("sin", "cos", "log", "log1p", "expm1", "tanh", "logistic", "log2"), 20),
    **dict.fromkeys(FUNCTIONS, 10),
    **dict.fromkeys(("tan", "atan2", "pow", "erf", "erf_inv", "lgamma", "digamma", "asin", "acos",
    "atan", "sinh", "cosh"), 40),
    **dict.fromkeys(("asinh", "acosh", "atanh", "erfc", "igamma", "igammac"), 60),
}  # fmt: skip
