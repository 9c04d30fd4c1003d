"""How many sums of a product registers hold at a time."""

from __future__ import annotations

from typing import Any, Final

from calque.core.dims import hint_of, is_symbolic, surely_at_most, surely_divides
from calque.machine.code.target import describe
from calque.machine.records import record
from calque.native.scalars.expr import item_size

MASKED: Final = 64  # bytes of a vector of processors that read and write under masks at no cost
MOST_ROWS: Final = 14
VECTORS: Final = 2  # of a tile of many rows
WIDEST: Final = 8  # vectors of a tile of few rows


def has_masks() -> bool:
    """Does the processor read and write under masks at no cost?"""
    return describe().vector_bytes == MASKED


@record
class Tile:
    """How many rows and columns are summed at a time."""

    rows: int
    columns: int


@record
class Extents:
    """How much is multiplied; `batch` is None for a single product."""

    batch: int | None
    rows: int
    columns: int
    depth: int

    def right_bytes(self, dtype: str) -> Any:
        """Of the right side of one product."""
        return self.depth * self.columns * item_size(dtype)


def tile_for(m: Any, n: Any, dtype: str, most: int = MOST_ROWS) -> Tile:
    """As many sums as registers hold; fewer rows where that wastes much less at the edge. Few
    shapes, so that new sizes find their kernel.

    A free size may become much larger than it was while tracing: its tiles are not made for few."""
    t = describe()
    lanes = t.vector_bytes // max(item_size(dtype), 4)
    vectors = 1 if surely_at_most(n, lanes) else VECTORS
    most = min((t.vector_registers - vectors - 2) // vectors, most)
    rows = min(
        (most, 8, *(() if is_symbolic((m,)) else (4,))),
        key=lambda r: (-(-hint_of(m) // r) * (r + 1.5), -r),
    )
    return Tile(min(rows, most), vectors * lanes)


def flat_tile(rows: int, n: Any, dtype: str, near: bool = False) -> Tile:
    """An even part of few rows, and as many columns as registers hold sums of. Where masks are
    slow, fewer columns that end with the last one can be read where they stand, which pays where
    the right side is `near`."""
    t = describe()
    m = even_part(rows, VECTORS)
    lanes = t.vector_bytes // max(item_size(dtype), 4)
    vectors = WIDEST
    while vectors > 1 and (
        vectors * (m + 1) + 2 > t.vector_registers or surely_at_most(n, vectors * lanes // 2)
    ):
        vectors //= 2
    if near and not has_masks() and surely_divides(lanes, n):
        while not surely_divides(vectors * lanes, n):
            vectors //= 2
            m = even_part(rows, vectors)
    return Tile(m, vectors * lanes)


def even_part(rows: int, vectors: int) -> int:
    """As many rows as registers hold sums of, beside vectors of columns; all parts are about as
    high."""
    most = min((describe().vector_registers - 2) // vectors - 1, MOST_ROWS)
    return -(-rows // -(-rows // most))
