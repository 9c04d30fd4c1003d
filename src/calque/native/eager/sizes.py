"""Whole functions run eagerly on arrays of any size: the steps of `eager.program`, with words that
follow from the sizes of a call."""

from __future__ import annotations

import contextlib
from typing import Any

from calque.core.backends import Options
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.symbols import Symbols
from calque.native.eager import execution as eager
from calque.native.eager.program import BeyondSteps, planned
from calque.native.symbolic import Resizable, SymbolicAssembler, SymbolicExecutable
from calque.transforms.engines.specialiser import TooEarly


def resizable(closed: ClosedJaxpr, symbols: Symbols, hosts: bool = True) -> Resizable:
    """A program for every size that its symbols allow; without `hosts` it must not call Python with
    what depends on sizes. Raises Inexpressible."""
    out_avals = closed.out_avals
    steps = planned(closed, free=True)
    assembler = SymbolicAssembler(steps.sizes, {}, steps.bytes, {})
    program = steps.program(assembler)
    if assembler.hosts and not hosts:
        raise BeyondSteps
    return Resizable(assembler, program, out_avals, symbols)


def executable(closed: ClosedJaxpr, symbols: Symbols, patient: bool) -> Any:
    """A program for every size: of steps, or where one primitive needs kernels of its own,
    compiled, unless we are `patient`."""
    name = closed.jaxpr.eqns[0].primitive.name if len(closed.jaxpr.eqns) == 1 else ""
    if name not in eager.COMPILED | eager.POSITIONS:
        return resizable(closed, symbols)
    with contextlib.suppress(BeyondSteps):
        return resizable(closed, symbols, hosts=False)
    if patient:
        raise TooEarly
    return SymbolicExecutable(closed, Options(name, config.exact), symbols)
