"""Layout primitives as strided copies: for each, where an element of the result comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core.avals import ShapedArray
from calque.core.dtypes import storage
from calque.machine.caches import memo
from calque.machine.driver.builder import ProgramBuilder, Slot, Varying
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.objects import strided
from calque.machine.objects.strided import Axis, merged


class View(NamedTuple):
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


def _transpose(x: ShapedArray, s: list[int], permutation: Sequence[int], **_: Any) -> View:
    return View(0, tuple([s[p] for p in permutation]))


def _slice(
    x: ShapedArray,
    s: list[int],
    start_indices: Sequence[int],
    strides: Sequence[int] | None,
    **_: Any,
) -> View:
    steps = strides or (1,) * x.ndim
    return View(
        sum(a * b for a, b in zip(start_indices, s)), tuple([a * b for a, b in zip(s, steps)])
    )


def _rev(x: ShapedArray, s: list[int], dimensions: Sequence[int], **_: Any) -> View:
    offset = sum((x.shape[d] - 1) * s[d] for d in dimensions)
    return View(offset, tuple([-v if i in dimensions else v for i, v in enumerate(s)]))


def _broadcast(
    x: ShapedArray,
    s: list[int],
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    **_: Any,
) -> View:
    out = [0] * len(shape)
    for i, d in enumerate(broadcast_dimensions):
        out[d] = s[i] if x.shape[i] == shape[d] else 0
    return View(0, tuple(out))


VIEWS: Final[dict[str, Callable[..., View]]] = {
    "transpose": _transpose,
    "slice": _slice,
    "rev": _rev,
    "broadcast_in_dim": _broadcast,
}


def emit_copy(
    b: ProgramBuilder,
    to: Slot,
    source: Slot,
    axes: Sequence[Axis],
    size: int,
    at: int = 0,
    offset: int = 0,
) -> None:
    """A call of the strided copy."""
    words = [n for axis in axes for n in axis]
    b.call(
        strided.calque_strided_copy.address,
        [to, source, size, at, offset, len(axes), *words],
        name="copy",
    )


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


def emit(
    b: ProgramBuilder,
    name: str,
    params: dict[str, Any],
    ins: Sequence[Slot],
    avals: Sequence[ShapedArray],
    to: Slot,
    out: ShapedArray,
) -> bool:
    """The steps of a layout primitive, if it is one."""
    size = storage(out.dtype).itemsize
    if out.size == 0:
        return name in VIEWS or name == "concatenate"
    if name in VIEWS:
        x = avals[0]
        view = VIEWS[name](x, dense(x.shape, size), **params)
        emit_copy(
            b,
            to,
            ins[0],
            merged(list(zip(out.shape, dense(out.shape, size), view.strides))),
            size,
            0,
            view.offset,
        )
        return True
    if name != "concatenate":
        return False
    at, strides = 0, dense(out.shape, size)
    for slot, x in zip(ins, avals):
        if x.size:
            emit_copy(
                b, to, slot, merged(list(zip(x.shape, strides, dense(x.shape, size)))), size, at
            )
        at += x.shape[params["dimension"]] * strides[params["dimension"]]
    return True
