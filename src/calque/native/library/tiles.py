"""How many sums of a product registers hold at a time."""

from __future__ import annotations

from typing import Any, Final

from calque.core.dims import hint_of, is_symbolic, surely_at_most, surely_divides
from calque.machine.code.target import describe
from calque.machine.records import record
from calque.machine.threads import get_num_threads
from calque.native.loops.tree import ROUND
from calque.native.scalars.expr import item_size

MASKED: Final = 64  # bytes of a vector of processors that read and write under masks at no cost
MOST_ROWS: Final = 14
TILES: Final = 4  # tiles of rows of a block in a long product
MANY_ROWS: Final = 128  # of so many tiles, twice as many: the right side is read half as often
SHORT: Final = 1.5  # rows that take as long as what a tile takes beside its sums, ...
HIGH: Final = 0.25  # ... and where sums are long, and registers many
LITTLE: Final = 1 << 20  # multiplications that one thread does alone
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


def tile_for(e: Extents, dtype: str, most: int = MOST_ROWS) -> Tile:
    """As many sums as registers hold; fewer rows where that wastes much less at the edge, or where
    threads then have equal parts. Few shapes, so that new sizes find their kernel.

    A free size may become much larger than it was while tracing: its tiles are not made for few."""
    t = describe()
    lanes = t.vector_bytes // max(item_size(dtype), 4)
    vectors = 1 if surely_at_most(e.columns, lanes) else VECTORS
    most = min((t.vector_registers - vectors - 2) // vectors, most)
    long = hint_of(e.depth) > ROUND // item_size(dtype)
    threads = 1 if goes_by_panel(e, most, vectors * lanes) and not long else threads_of_rows(e)
    nearly = () if threads == 1 else (most - 1, most - 2)
    few = () if is_symbolic((e.rows,)) else (4,)

    beside = HIGH if long and most > 8 else SHORT

    def longest(rows: int) -> tuple[float, int]:
        """What the thread that does most has to do."""
        tiles = -(-hint_of(e.rows) // rows)
        block = tiles_of_block(e, rows) if long else 1  # which a thread does
        own = tiles if threads == 1 else -(-tiles // (block * threads)) * block
        return min(own, tiles) * (rows + beside), -rows

    return Tile(min(min((most, *nearly, 8, *few), key=longest), most), vectors * lanes)


def tiles_of_block(e: Extents, rows: int) -> int:
    """How many tiles of so many rows a block of a long product has."""
    return 2 * TILES if hint_of(e.rows) >= MANY_ROWS * rows else TILES


def goes_by_panel(e: Extents, rows: int, columns: int) -> bool:
    """Whether a product goes from panel to panel, since there are more of them than tiles of
    rows."""
    return -(-hint_of(e.columns) // columns) * 2 >= -(-hint_of(e.rows) // rows)


def threads_of_rows(e: Extents) -> int:
    """How many threads share the rows of a product of these extents."""
    sizes = (e.rows, e.columns, e.depth)
    if e.batch is not None or is_symbolic(sizes) or e.rows * e.columns * e.depth < LITTLE:
        return 1
    return get_num_threads()


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
