"""Rows of the left side of a long product are copied near, in the order in which they are read."""

import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.library.tiles import has_masks


@pytest.mark.parametrize("rows", [5, 24, 30, 64, 100])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_long_sums_of_rows_side_by_side(rows, batch):
    """What `x.T @ y` copies near: whole vectors of a row of memory, element by element in the last
    tile."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(*batch, 1537, n)).astype(np.float32) for n in (rows, 40))

    def turned(x, y):
        return jnp.matmul(jnp.swapaxes(x, -1, -2), y)

    f = calque.jit(turned, dynamic="never")
    loops = f.lower(x, y).compile().as_text("loops")
    copies = re.findall(r"rows\[t, kc, mv?\] = .*", loops)
    # under masks a ragged right side of few rows is read where it stands
    assert "min" not in copies[0] if copies else has_masks() and rows < 71
    got = np.asarray(f(x, y))
    wide = np.swapaxes(x.astype("f8"), -1, -2) @ y
    np.testing.assert_allclose(got, wide, rtol=1e-3, atol=2e-3)
    lying = np.ascontiguousarray(np.swapaxes(x, -1, -2))  # the same sums, whatever is copied how
    assert got.tobytes() == np.asarray(calque.jit(jnp.matmul, dynamic="never")(lying, y)).tobytes()
    assert got.tobytes() == np.asarray(turned(x, y)).tobytes()
