"""Layout primitives as strided copies: for each, where an element of the result comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core.avals import ShapedArray
from calque.core.dtypes import storage
from calque.machine.caches import memo
from calque.machine.driver.builder import ProgramBuilder, Varying
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.objects import strided
from calque.machine.objects.strided import Axis, merged
from calque.native.plan.steps import Routine
from calque.native.scalars.expr import Buffer


class StridedView(NamedTuple):
    """The elements of an array through a window: byte offset and strides for the shape of the
    result."""

    offset: int
    strides: tuple[int, ...]


def dense(shape: Sequence[int], itemsize: int) -> list[int]:
    """The strides of a row-major array."""
    out, step = [0] * len(shape), itemsize
    for k in range(len(shape) - 1, -1, -1):
        out[k] = step
        step *= max(shape[k], 1)
    return out


def _transpose(x: ShapedArray, s: list[int], permutation: Sequence[int], **_: Any) -> StridedView:
    return StridedView(0, tuple([s[p] for p in permutation]))


def _slice(
    x: ShapedArray,
    s: list[int],
    start_indices: Sequence[int],
    strides: Sequence[int] | None,
    **_: Any,
) -> StridedView:
    steps = strides or (1,) * x.ndim
    return StridedView(
        sum(a * b for a, b in zip(start_indices, s)), tuple([a * b for a, b in zip(s, steps)])
    )


def _rev(x: ShapedArray, s: list[int], dimensions: Sequence[int], **_: Any) -> StridedView:
    offset = sum((x.shape[d] - 1) * s[d] for d in dimensions)
    return StridedView(offset, tuple([-v if i in dimensions else v for i, v in enumerate(s)]))


def _broadcast(
    x: ShapedArray,
    s: list[int],
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    **_: Any,
) -> StridedView:
    out = [0] * len(shape)
    for i, d in enumerate(broadcast_dimensions):
        out[d] = s[i] if x.shape[i] == shape[d] else 0
    return StridedView(0, tuple(out))


VIEWS: Final[dict[str, Callable[..., StridedView]]] = {
    "transpose": _transpose,
    "slice": _slice,
    "rev": _rev,
    "broadcast_in_dim": _broadcast,
}


def copy(
    to: Buffer, source: Buffer, axes: Sequence[Axis], size: int, at: Any = 0, offset: Any = 0
) -> Routine:
    """A call of the strided copy."""
    words = [to, source, size, at, offset, len(axes), *[n for axis in axes for n in axis]]
    address = strided.calque_strided_copy.address
    return Routine("copy", address, words, (source,), (to,), grain=0, asks=False)


@memo("programs of strided copies", 64, programs=True)
def copy_pattern(rank: int) -> Pattern:
    """The program of one strided copy, with every word open."""
    b = ProgramBuilder(1, [(None, 0)])
    words: list[Any] = [Varying(0, i) for i in range(3 + 3 * rank)]
    words.insert(3, rank)
    b.call(strided.calque_strided_copy.address, [b.output(0), b.input(0), *words], name="copy")
    return Pattern(b.build(), [i for i, _ in b.varying()])


def view_program(
    name: str, params: dict[str, Any], x: ShapedArray, out: ShapedArray
) -> SizedProgram:
    """The program of a layout primitive alone, whose result has elements."""
    size = storage(out.dtype).itemsize
    view = VIEWS[name](x, dense(x.shape, size), **params)
    axes = merged(list(zip(out.shape, dense(out.shape, size), view.strides)))
    words = [size, 0, view.offset, *[n for axis in axes for n in axis]]
    return copy_pattern(len(axes)).program([(out, out.size * size)], words)


def copies(
    name: str,
    params: dict[str, Any],
    ins: Sequence[Buffer],
    avals: Sequence[ShapedArray],
    to: Buffer,
    out: ShapedArray,
) -> list[Routine] | None:
    """The steps of a layout primitive; None if it is none."""
    size = storage(out.dtype).itemsize
    if name not in VIEWS and name != "concatenate":
        return None
    if out.size == 0:
        return []
    if name in VIEWS:
        view = VIEWS[name](avals[0], dense(avals[0].shape, size), **params)
        axes = merged(list(zip(out.shape, dense(out.shape, size), view.strides)))
        return [copy(to, ins[0], axes, size, 0, view.offset)]
    steps, at, strides = [], 0, dense(out.shape, size)
    for source, x in zip(ins, avals):
        if x.size:
            axes = merged(list(zip(x.shape, strides, dense(x.shape, size))))
            steps.append(copy(to, source, axes, size, at))
        at += x.shape[params["dimension"]] * strides[params["dimension"]]
    return steps
