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
