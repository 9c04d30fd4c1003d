"""How many sums registers hold."""

import pytest

from calque.machine.code.target import describe
from calque.native.library import tiles
from calque.native.library.tiles import MOST_ROWS, Extents, even_part, flat_tile, tile_for


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16"])
@pytest.mark.parametrize("n", [1, 7, 16, 100, 5000])
@pytest.mark.parametrize("m", [1, 3, 9, 14, 15, 28, 128, 5000])
def test_sums_fit_into_registers(m: int, n: int, dtype: str) -> None:
    t = describe()
    lanes = t.vector_bytes // (8 if dtype == "f64" else 4)
    made = (
        tile_for(Extents(None, m, n, 8), dtype),
        tile_for(Extents(None, m, n, 5000), dtype),
        flat_tile(m, n, dtype),
        flat_tile(m, n, dtype, near=True),
    )
    for tile in made:
        assert 1 <= tile.rows <= MOST_ROWS and tile.columns % lanes == 0
        vectors = tile.columns // lanes
        assert vectors * (tile.rows + 1) + 1 <= t.vector_registers


@pytest.mark.parametrize("rows", [1, 13, 14, 15, 128, 168])
def test_parts_are_about_as_high(rows: int) -> None:
    part = even_part(rows, 2)
    parts = -(-rows // part)
    assert 0 <= parts * part - rows < parts  # none has two rows less than another


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_threads_get_equal_parts(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 256 rows two threads take 10 tiles of 13 rows each, not 10 and 9 of 14."""
    monkeypatch.setattr(tiles, "get_num_threads", lambda: threads)
    most = tile_for(Extents(3, 1 << 12, 256, 256), "f32").rows  # of batches threads share products
    rows = tile_for(Extents(None, 256, 256, 256), "f32").rows
    own = -(-(-(-256 // rows)) // threads) * rows
    assert own <= -(-(-(-256 // most)) // threads) * most
    if describe().vector_registers == 32:
        assert rows == {1: 14, 2: 13, 16: 8}[threads]
