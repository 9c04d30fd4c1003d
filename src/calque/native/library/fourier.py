"""`fft` as a call of the machine's kernel of Fourier transforms: its tables, and what goes into its
words.

The same words serve a compiled program, whose operands are buffers and whose leading sizes may be
free, and eager execution.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import Dim, hint_of
from calque.core.lazy import LazyModule
from calque.machine.caches import memo
from calque.native import routines
from calque.native.library.sorting import extent
from calque.native.lower.graph import Node
from calque.native.lower.rules import View
from calque.native.plan.blocks import CodeBlock, Planner, host_step
from calque.native.plan.steps import Made, Routine, Step
from calque.native.scalars.expr import Buffer
from calque.ops.dimension_numbers import FftType

_NS: Final = 5  # a guess of the time for an element
_LONGEST: Final = 1 << 24  # the table of a longer axis takes too much memory
_KEPT: Final = 64  # tables
_SMALL: Final = 1 << 14

# What real lines need, by the fields of `Functions`.
_REAL_LINES: Final[dict[FftType, dict[str, str]]] = {
    FftType.RFFT: {
        "halves": "fft_real_halves",
        "whole": "fft_real_whole",
        "turn_halves": "fft_{}join_halves",
    },
    FftType.IRFFT: {
        "halves": "fft_halves_to_real",
        "whole": "fft_whole_to_real",
        "turn_halves": "fft_{}part_halves",
    },
}

passes = LazyModule("calque.machine.routines.fft.passes")
transforms = LazyModule("calque.machine.routines.fft.transforms")
vectors = LazyModule("calque.machine.routines.fft.vectors")
work = LazyModule("calque.machine.routines.fft.work")


# ---------------------------------------------------------------- tables


def roots(n: int, powers: np.ndarray) -> np.ndarray:
    """`exp(-2j * pi * powers / n)` as real parts and imaginary parts, right to the last bit or
    nearly: angles up to an eighth of a turn are worked out, the others are their mirror images."""
    eighths, rest = np.divmod(8 * (powers % n), n)
    angle = np.where(eighths & 1, n - rest, rest) * (math.pi / 4 / n)
    c, s = np.cos(angle), np.sin(angle)
    crossed = (eighths + 1) & 2  # in 1, 2, 5 and 6
    x, y = np.where(crossed, s, c), np.where(crossed, c, s)
    return np.stack([np.where((eighths + 2) & 4, -x, x), np.where(eighths & 4, y, -y)])


def radices(n: int, single: bool) -> list[int] | None:
    """The radices of the passes of a transform, None when a prime factor is too large. Powers of
    two come first: the vectors of all passes but the first run over what the passes before have
    made. In double precision the first is quicker with 4 than with 8; in single precision vectors
    are of eight numbers.
    """
    twos = (n & -n).bit_length() - 1
    rest = n >> twos
    fours = (0, 2, 1)[twos % 3] if twos > 1 else 0
    fours += 3 * (not single and twos > 6 and twos % 3 == 0)
    eights = [8] * ((twos - 2 * fours) // 3)
    out = [*eights, *[4] * fours] if single else [*[4] * fours, *eights]
    out += [2] * (twos == 1)
    for r in (5, 3, *range(7, passes.MOST_RADIX + 1, 2)):
        while rest % r == 0:
            out.append(r)
            rest //= r
    return out if rest == 1 else None


def longer_than(n: int) -> int:
    """The length of the transforms that convolve with a chirp of length `n`: only powers of two,
    with a factor 3 or 5."""
    return min(f << max((-(-(2 * n - 1) // f) - 1).bit_length(), 0) for f in (1, 3, 5))


class Words:
    """A table while it grows: words, and behind them arrays of numbers, `single` ones or not, known
    by their places in bytes."""

    def __init__(self, words: Sequence[int], single: bool) -> None:
        self.words = list(words)
        self.kind: Any = np.float32 if single else np.float64
        self.arrays: list[np.ndarray] = []
        self.patches: list[int] = []
        self.size = 0

    def place(self, index: int, array: np.ndarray, wide: bool = False) -> None:
        """Let a word be the place of an array, of double precision all the same or not."""
        self.words[index] = 8 * self.size
        self.patches.append(index)
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.dtype != np.int64:
            flat = flat.astype(np.float64 if wide else self.kind)
            if extra := -flat.size % (8 // flat.itemsize):
                flat = np.concatenate([flat, np.zeros(extra, flat.dtype)])
            flat = flat.view(np.int64)
        self.arrays.append(flat)
        self.size += flat.size

    def made(self) -> np.ndarray:
        for index in self.patches:
            self.words[index] += 8 * len(self.words)
        return np.concatenate([np.array(self.words, np.int64), *self.arrays])


def complex_table(n: int, real: bool, single: bool) -> tuple[np.ndarray, int]:
    """The table of complex transforms of length `n`, halves of `real` ones or not, in `single`
    precision or not, and how many elements of memory a line takes."""
    steps = radices(n, single)
    longer = longer_than(n) if steps is None else 0
    out = Words(
        [n, 0 if steps is None else len(steps), longer, 0, 0, 0, *[0] * 2 * len(steps or ())],
        single,
    )
    if steps is None:
        out.place(3, complex_table(longer, False, single)[0])
        out.place(4, np.concatenate([a.reshape(-1) for a in chirp(n, longer)]))
    left = n
    for k, r in enumerate(steps or ()):
        m = left // r
        factors = roots(left, np.outer(np.arange(1, r), np.arange(m)))
        out.words[6 + 2 * k] = r
        out.place(
            7 + 2 * k, np.concatenate([factors.reshape(-1), roots(r, np.arange(r)).reshape(-1)])
        )
        left = m
    if real:
        out.place(5, roots(2 * n, np.arange(n)), wide=True)
    return out.made(), max(n, longer) + 1


def chirp(n: int, longer: int) -> tuple[np.ndarray, np.ndarray]:
    """The chirp of length `n`, and the transform of its inverse on both sides of 0, divided by the
    length."""
    k = np.arange(n)
    down = roots(2 * n, k * k)
    around = np.zeros(longer, complex)
    around[:n] = down[0] - 1j * down[1]
    around[longer - n + 1 :] = around[1:n][::-1]
    up = np.fft.fft(around) / longer
    return down, np.stack([up.real, up.imag])


def table(fft_type: FftType, single: bool, *lengths: int) -> np.ndarray:
    """What the kernel has to know of transforms of these lengths. Large tables live as long as the
    programs that use them."""
    made = kept_table if max(lengths) <= _SMALL else make_table
    return made(fft_type, single, *lengths)


def make_table(fft_type: FftType, single: bool, *lengths: int) -> np.ndarray:
    """A new table."""
    inverse = fft_type in (FftType.IFFT, FftType.IRFFT)
    real = {FftType.RFFT: 1, FftType.IRFFT: 2}.get(fft_type, 0)
    scale = 1 / math.prod(lengths) if inverse else 1.0
    out = Words(
        [len(lengths), int(inverse), real, int(np.float64(scale).view(np.int64))],
        single,
    )
    out.words += [0] * 5 * len(lengths)
    counts = [*lengths[:-1], lengths[-1] // 2 + 1 if real else lengths[-1]]  # of complex numbers
    for k, n in enumerate(lengths):
        halves = real > 0 and k == len(lengths) - 1 and n % 2 == 0
        along = kept_lengths if n <= _SMALL else complex_table
        made, room = along(n // 2 if halves else n, halves, single)
        at = 4 + 5 * k
        around = math.prod(counts[:k]), math.prod(counts[k + 1 :])
        out.words[at : at + 5] = n, 0, room, *around
        out.place(at + 1, made)
    return out.made()


kept_table = memo("tables of Fourier transforms", _KEPT)(make_table)
kept_lengths = memo("tables of lengths of Fourier transforms", _KEPT)(complex_table)


def is_native(params: dict[str, Any]) -> bool:
    """Whether the kernel transforms along axes of these lengths. It has to be certain that none is
    0, also of free ones."""
    return all(least(n) > 0 and hint_of(n) <= _LONGEST for n in params["fft_lengths"])


def least(n: Any) -> int:
    """A lower bound of a size."""
    return n.symbols.bounds(n.poly)[0] if type(n) is Dim else n


def table_for(params: dict[str, Any], x: ShapedArray) -> Callable[..., np.ndarray]:
    """A function of the lengths that gives the table for the parameters of an equation."""
    return functools.partial(table, params["fft_type"], is_single(x))


def is_single(x: ShapedArray) -> bool:
    """Whether a transform of this is computed in single precision."""
    return x.dtype in (np.dtype(np.complex64), np.dtype(np.float32))


def kernel(
    x: ShapedArray, params: dict[str, Any]
) -> tuple[routines.Begun, list[routines.Begun | int]]:
    """The machine's kernel for transforms of this, and the words of the functions that it is to
    call: 0 in place of those that no length needs."""
    fft_type, end = params["fft_type"], "_single" if is_single(x) else ""
    lengths = params["fft_lengths"]
    outer: Sequence[Any] = x.shape[: x.ndim - len(lengths)]
    known = 0 if any(type(n) is Dim for n in outer) else math.prod(outer)
    wanted = needed(fft_type, is_single(x), lengths, known)
    names = [f"{wanted[f]}{end}" if f in wanted else "" for f in work.Functions.fields]
    made = routines.begun("fft", [f"calque_fft{end}", *filter(None, names)])
    found = dict(zip(filter(None, names), made[1:], strict=True))
    return made[0], [found.get(name, 0) for name in names]


def needed(fft_type: FftType, single: bool, lengths: Sequence[Any], outer: int) -> dict[str, str]:
    """The functions that transforms of these lengths need, so many of them (0: nobody knows), by
    the fields of `Functions`; of free lengths all. Those for whole lines where nothing needs the
    others."""
    lines = _REAL_LINES.get(fft_type, {})
    own = {"convolve": "fft_convolve", **lines}
    if any(type(n) is Dim for n in lengths):
        fields = set(work.Functions.fields) - {"halves", "whole", "turn_halves"} | set(lines)
        return {f: own.get(f, f"fft_{f}").format("") for f in fields}
    found = {f: f"fft_whole_{f}" for f in ("load", "store")}
    for k, n in enumerate(lengths):
        last = bool(lines) and k == len(lengths) - 1
        if last:
            field = "whole" if n % 2 else "halves"
            found[field] = own[field]
        length = n // 2 if last and n % 2 == 0 else n
        steps = radices(length, single)
        counts = [*lengths[k + 1 : -1], lengths[-1] // 2 + 1 if lines else lengths[-1]]
        behind = 1 if k == len(lengths) - 1 else math.prod(counts)
        before = math.prod(lengths[:k])
        if outer or before < transforms.FEWEST_LANES:  # else there are enough in any case
            before *= outer
        lanes = transforms.side_by_side(n, 0 if steps is None else length, before, behind)
        fewest = vectors.vector(4 if single else 8).lanes
        row = n // 2 + 1 if last and n % 2 else length  # at least, of one line
        if (lanes if behind > 1 else row if lanes == 1 else 0) < fewest:
            found |= {f: f"fft_{f}" for f in ("load", "store")}
        if last and n % 2 == 0:
            kind = "whole_" if lanes == 1 and length // 2 >= fewest else ""
            found["turn_halves"] = own["turn_halves"].format(kind)
        if steps is None:
            found["convolve"] = own["convolve"]
            length = longer_than(length)
            steps = radices(length, single) or []
        add_passes(found, steps, length, lanes, single)
    return found


def add_passes(
    found: dict[str, str], steps: Sequence[int], length: int, lanes: int, single: bool
) -> None:
    """The passes of a length, of which at least so many stand side by side (0: nobody knows): those
    over whole vectors where nothing needs the others."""
    whole = passes.fills_vectors(steps, length, lanes, 4 if single else 8)
    for r, fills in zip(steps, whole, strict=True):
        field = f"pass_{r}" if r in passes.OWN_SUMS else "pass_any"
        if not fills or not lanes or field == "pass_any":
            found[field] = f"fft_{field}"
        else:
            found.setdefault(field, f"fft_whole_{field}")


# ---------------------------------------------------------------- in a compiled program


def emit_fft(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """before: fft[fft_type=FFT, fft_lengths=(256,)] x        after: a call of the kernel; axes of
    lengths that the program finds are transformed by the host"""
    x = n.args[0].aval
    lengths = tuple(n.params["fft_lengths"])
    if not is_native(n.params) or not p.sizes.found.keys().isdisjoint(extent(p, lengths).names):
        return host_step(p, n, block)
    home = block.targets.get(n)
    if home is None or home.prefix:
        home = View(p.temporary(n))
    p.view[n] = home
    operand = p.in_memory(n.args[0], block)
    outer = extent(p, x.shape[: x.ndim - len(lengths)])
    address, functions = kernel(x, n.params)
    given = [operand, home.buf, outer, Made(table_for(n.params, x), lengths), *functions]
    return [
        Routine(
            n.op,
            address,
            given,
            [operand],
            [home.buf],
            hint_of(x.size) * _NS,
            beside=True,
        )
    ]


# ---------------------------------------------------------------- eager


def routine(
    name: str,
    params: dict[str, Any],
    avals: Sequence[Any],
    ins: Sequence[Buffer],
    outs: Sequence[Buffer],
) -> Routine | None:
    """A call of the kernel for one equation; None when the axes are not for it."""
    lengths, x = params["fft_lengths"], avals[0]
    if not is_native(params) or any(type(n) is Dim for n in lengths):
        return None
    outer = math.prod(x.shape[: x.ndim - len(lengths)])
    address, functions = kernel(x, params)
    words = [ins[0], outs[0], outer, table_for(params, x)(*lengths), *functions]
    return Routine(name, address, words, ins, outs)
