"""How many sums registers hold."""

import pytest

from calque.machine.code.target import describe
from calque.native.library.tiles import MOST_ROWS, even_part, flat_tile, tile_for


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16"])
@pytest.mark.parametrize("n", [1, 7, 16, 100, 5000])
@pytest.mark.parametrize("m", [1, 3, 9, 14, 15, 28, 128, 5000])
def test_sums_fit_into_registers(m: int, n: int, dtype: str) -> None:
    t = describe()
    lanes = t.vector_bytes // (8 if dtype == "f64" else 4)
    for tile in (tile_for(m, n, dtype), flat_tile(m, n, dtype), flat_tile(m, n, dtype, near=True)):
        assert 1 <= tile.rows <= MOST_ROWS and tile.columns % lanes == 0
        vectors = tile.columns // lanes
        assert vectors * (tile.rows + 1) + 1 <= t.vector_registers


@pytest.mark.parametrize("rows", [1, 13, 14, 15, 128, 168])
def test_parts_are_about_as_high(rows: int) -> None:
    part = even_part(rows, 2)
    parts = -(-rows // part)
    assert 0 <= parts * part - rows < parts  # none has two rows less than another
