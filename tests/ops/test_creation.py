"""Arrays made from nothing."""

import numpy as np
import pytest

from calque.ops import creation
from tests.ops.helpers import run, same, traced


def test_full():
    same(run(lambda: creation.full((2, 1), 3, np.int8))[0], np.full((2, 1), 3, np.int8))
    same(run(lambda: creation.full((), 1.5))[0], np.array(1.5, np.float32))
    same(
        run(lambda x: creation.full_like(x, 2), np.zeros((2, 3), np.float16))[0],
        np.full((2, 3), 2, np.float16),
    )
    same(
        run(lambda x: creation.full_like(x, 2, np.int32, (4,)), np.zeros(2, np.float16))[0],
        np.full(4, 2, np.int32),
    )
    with pytest.raises(TypeError, match=r"scalar fill_value; got fill_value.shape \(2,\)"):
        traced(lambda x: creation.full((3,), x), np.zeros(2, np.float32))


def test_one_size_is_a_shape() -> None:
    assert creation.full(3, 2.5).shape == (3,)
    assert creation.full_like(np.zeros(2, "float32"), 1, shape=4).shape == (4,)
    assert creation.broadcasted_iota("int32", 3, 0).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
        creation.full(3.0, 1)
