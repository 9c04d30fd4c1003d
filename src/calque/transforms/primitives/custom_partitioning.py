"""Programs with rules of their own for how they are split among devices: the primitive
`custom_partitioning`.

The equation holds a program and the rules. A compiler of programs over several devices may ask the
rules; everybody else runs the program, and what transformations make of it is no longer what the
rules speak of: derivatives and lanes are those of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim
from calque.transforms.primitives.call import ProgramPrimitive, closed_call_p


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, **_: Any) -> Any:
    return closed_call_p.jvp_rule(primals, tangents, jaxpr=call)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, **_: Any
) -> Any:
    return closed_call_p.linearize_rule(primals, tangents, jaxpr=call)


def _transpose(cts: Sequence[Any], *args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return closed_call_p.transpose_rule(cts, *args, jaxpr=call)


def _batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, call: ClosedJaxpr, **_: Any
) -> Any:
    return closed_call_p.batch_rule(axis, args, dims, jaxpr=call)


custom_partitioning_p = ProgramPrimitive(
    "custom_partitioning",
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
)
