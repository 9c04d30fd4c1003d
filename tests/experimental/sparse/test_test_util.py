"""Random sparse arrays for tests."""

import numpy as np
import pytest

from calque.experimental import sparse
from calque.experimental.sparse.test_util import rand_bcoo, rand_bcsr


@pytest.mark.parametrize(("make", "kind"), [(rand_bcoo, sparse.BCOO), (rand_bcsr, sparse.BCSR)])
def test_arrays_have_as_many_elements_as_asked(make, kind) -> None:
    for dtype in ("float32", "uint8", "complex64"):
        x = make(np.random.RandomState(1), nse=3)((4, 5), dtype)
        assert isinstance(x, kind) and x.dtype == dtype and x.nse <= 3
    ones = make(np.random.RandomState(1), lambda rng: np.ones, nse=0.25)((4, 5), "int32")
    assert int(ones.todense().sum()) == 5
