"""A square of as many vectors as each has elements, turned round in registers.

LLVM takes some 18 ms to find the 64 instructions for a square of sixteen by sixteen. Where the
processor is known to have them, they are written down in its own language, eight at a time:
elements change places inside of parts of 16 bytes, then these parts do.

before: a0 a1 a2 a3, b0 b1 b2 b3, c0 c1 c2 c3, d0 d1 d2 d3
after:  a0 b0 c0 d0, a1 b1 c1 d1, a2 b2 c2 d2, a3 b3 c3 d3"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.machine.code.target import read_assembly
from calque.native.emit.instructions import shuffle
from calque.native.emit.writer import Writer

_PART: Final = 16  # bytes in which elements change places
_SIZES: Final = {"float": 4, "i32": 4, "double": 8, "i64": 8}
Step = tuple[str, int, int, int]  # instruction, where its result goes, and its operands

# Inside of parts: the elements of four rows, or of two, which are 4..7 behind results 0..3.
_FOUR: Final = (
    ("vunpcklps", 4, 8, 9), ("vunpckhps", 5, 8, 9), ("vunpcklps", 6, 10, 11),
    ("vunpckhps", 7, 10, 11), ("vunpcklpd", 0, 4, 6), ("vunpckhpd", 1, 4, 6),
    ("vunpcklpd", 2, 5, 7), ("vunpckhpd", 3, 5, 7),
)  # fmt: skip
_TWO: Final = (("vunpcklpd", 0, 2, 3), ("vunpckhpd", 1, 2, 3))
# Of parts: those of even number, those of odd number, of two vectors one behind the other.
_EVEN, _ODD = "vshuff32x4 $$0x88,", "vshuff32x4 $$0xdd,"
_FOUR_PARTS: Final = (
    (_EVEN, 4, 8, 9), (_EVEN, 5, 10, 11), (_ODD, 6, 8, 9), (_ODD, 7, 10, 11), (_EVEN, 0, 4, 5),
    (_EVEN, 1, 6, 7), (_ODD, 2, 4, 5), (_ODD, 3, 6, 7),
)  # fmt: skip
_TWO_PARTS: Final = (("vperm2f128 $$0x20,", 0, 2, 3), ("vperm2f128 $$0x31,", 1, 2, 3))


def transposed(w: Writer, rows: Sequence[str], t: str) -> list[str]:
    """The columns of a square of vectors of a type."""
    size = len(rows) * _SIZES.get(t, 0)
    if size in (32, 64) and size <= w.options.register_bytes:
        return _by_instructions(w, rows, t, _PART // _SIZES[t])
    return _by_shuffles(w, rows, t)


def _by_instructions(w: Writer, rows: Sequence[str], t: str, elements: int) -> list[str]:
    """Parts hold so many elements of a type."""
    read_assembly()
    n = len(rows)
    parts = n // elements
    inside, of_parts = {2: _TWO, 4: _FOUR}[elements], {2: _TWO_PARTS, 4: _FOUR_PARTS}[parts]
    groups = [_block(w, n, t, rows[k : k + elements], inside) for k in range(0, n, elements)]
    out = [""] * n
    for j in range(elements):
        columns = _block(w, n, t, [group[j] for group in groups], of_parts)
        for k, v in enumerate(columns):
            out[k * elements + j] = v
    return out


def _block(w: Writer, n: int, t: str, values: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """Instructions that make as many vectors as they take, of `n` elements each."""
    full = f"<{n} x {t}>"
    made = len(steps)
    text = r"\0A\09".join([f"{name} ${b}, ${a}, ${to}" for name, to, a, b in steps])
    # instructions for vectors of 32 bytes know the first sixteen registers alone
    register = "v" if n * _SIZES[t] == 64 else "x"
    limits = ",".join([*[f"=&{register}"] * made, *[register] * len(values)])
    results = f"{{{', '.join([full] * made)}}}"
    args = ", ".join([f"{full} {v}" for v in values])
    block = w.new(f'call {results} asm "{text}", "{limits}"({args})')
    return [w.new(f"extractvalue {results} {block}, {k}") for k in range(len(values))]


def _by_shuffles(w: Writer, rows: Sequence[str], t: str) -> list[str]:
    """Blocks of half, a quarter, ... of the square change places, two rows at a time."""
    out, n = list(rows), len(rows)
    d = n // 2
    while d:
        new = list(out)
        upper = [k if not k & d else n + k - d for k in range(n)]
        lower = [k + d if not k & d else n + k for k in range(n)]
        for a in range(n):
            if not a & d:
                new[a] = shuffle(w, t, n, out[a], upper, out[a + d])
                new[a + d] = shuffle(w, t, n, out[a], lower, out[a + d])
        out, d = new, d // 2
    return out
