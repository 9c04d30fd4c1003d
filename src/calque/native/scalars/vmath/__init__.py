"""Vector math as expressions: one definition per function for every vector width, the same bits on
every machine.

`TABLE[name]` takes expressions (f32 or f64, all of one dtype) and gives the expression of the
result. Errors stay below 2 units in the last place over the full range unless a function says
otherwise; infinities, nans, signed zeros, denormals and huge arguments are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.scalars.expr import Expr
from calque.native.scalars.vmath import (
    bessel,
    complex_arcs,
    complex_exponential,
    complex_hyperbolic,
    complex_logarithm,
    complex_root,
    drawing,
    drawing_powers,
    error_function,
    exponential,
    gamma,
    inverse_trigonometric,
    logarithm,
    power,
    power_roots,
    remainder,
    trigonometric,
)

Parts = tuple[Expr, Expr]


def _parts(functions: dict[str, Callable[[Expr, Expr], Parts]]) -> dict[str, Callable[..., Expr]]:
    """Functions of a complex number as two functions of its parts, `name_re` and `name_im`. They
    share what is common to both where they stand in one kernel."""

    def part(f: Callable[[Expr, Expr], Parts], k: int) -> Callable[..., Expr]:
        return lambda x, y: f(x, y)[k]

    return {
        f"{name}_{which}": part(f, k)
        for name, f in functions.items()
        for k, which in enumerate(("re", "im"))
    }


_COMPLEX: Final[dict[str, Callable[[Expr, Expr], Parts]]] = dict(
    exp=complex_exponential.exp,
    exp2=complex_exponential.exp2,
    expm1=complex_exponential.expm1,
    logistic=complex_exponential.logistic,
    sinh=complex_hyperbolic.sinh,
    cosh=complex_hyperbolic.cosh,
    tanh=complex_hyperbolic.tanh,
    log1p=complex_logarithm.log1p,
    rsqrt=complex_root.rsqrt,
    atanh=complex_logarithm.atanh,
    asin=complex_arcs.asin,
    acos=complex_arcs.acos,
)
COMPLEX: Final = tuple(_COMPLEX)  # functions that have a real and an imaginary part
OF_COMPLEX: Final = _parts(_COMPLEX)

TABLE: Final[dict[str, Callable[..., Expr]]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "tanh": exponential.tanh,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log1p": logarithm.log1p,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "log_hypot": complex_logarithm.log_hypot,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "pow": power.power,
    **power_roots.FUNCTIONS,
    "cbrt": power.cbrt,
    "rsqrt": power.rsqrt,
    "hypot": power.hypot,
    "rem": remainder.rem,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erf_inv": error_function.erf_inv,
    "normal_erf_inv": drawing.normal_erf_inv,
    "drawn_erf": drawing.erf,
    "drawn_exp": drawing.exp,
    "drawn_log": drawing.log,
    "drawn_log1p": drawing.log1p,
    "drawn_pow": drawing_powers.pow,
    "drawn_tan": drawing_powers.tan,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "bessel_i0e": bessel.i0e,
    "bessel_i1e": bessel.i1e,
    **OF_COMPLEX,
}
