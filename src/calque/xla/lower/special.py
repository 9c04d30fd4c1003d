"""Special functions of which XLA has no operation: their programs take their place.

On CPUs SciPy, called back, is quicker for many elements than most of the programs, and exact to the
last digits: these are for accelerators, and for exported programs, which find no Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.jaxprs import Eqn
from calque.xla.lower import special_programs
from calque.xla.lower.callbacks import host_call
from calque.xla.lower.programs import lower_function
from calque.xla.lower.rules import EQUATION_RULES, Builder
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor

PROGRAMS: Final = {
    "bessel_i0e": special_programs.bessel_i0e,
    "igamma": special_programs.igamma,
    "igamma_grad_a": special_programs.igamma_grad_a,
    "igammac": special_programs.igammac,
    "random_gamma_grad": special_programs.random_gamma_grad,
    "regularized_incomplete_beta": special_programs.regularized_incomplete_beta,
}
ON_HOST_OF_CPU: Final = frozenset(PROGRAMS) - {"bessel_i0e"}


def _by(name: str, program: Callable[..., Any]) -> Any:
    def lower(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
        on_cpu = b.state.platform == "cpu" and not b.state.exporting
        if on_cpu and name in ON_HOST_OF_CPU:
            return host_call(b, e, outs, args)
        return lower_function(b, e, program, args)

    return lower


EQUATION_RULES.update({name: _by(name, program) for name, program in PROGRAMS.items()})
