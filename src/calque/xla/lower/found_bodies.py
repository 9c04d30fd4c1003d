"""Loops and branches whose bodies find sizes, on XLA, which has fixed sizes only: calque's own
engine runs such an equation, called back on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.adopting import from_storage
from calque.core.arrays import to_numpy
from calque.core.backends import Options, compile_program
from calque.core.devices import DEFAULT_DEVICE
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, Var, found_symbols, subjaxprs


def finds_inside(e: Eqn) -> bool:
    """Whether a body of this equation finds sizes, in each round anew."""
    return any(found_symbols(body) is not None for body in subjaxprs(e.params))


def natively(e: Eqn) -> Callable[..., list[np.ndarray]]:
    """The equation as a function of NumPy arrays, compiled by calque's own engine."""
    operands, results = ([Var(a.aval) for a in atoms] for atoms in (e.invars, e.outvars))
    equation = Eqn(e.primitive, operands, results, e.params, e.source)
    program = Jaxpr([], operands, results, [equation])
    options = Options(e.primitive.name)
    compiled = compile_program(ClosedJaxpr(program), options, DEFAULT_DEVICE.engine)

    def run(*args: np.ndarray, **params: Any) -> list[np.ndarray]:
        given = [from_storage(x, v.aval) for x, v in zip(args, operands, strict=True)]
        return [to_numpy(x) for x in compiled.call(given)]

    return run
