"""Tangents that are known to be zero."""

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.primitives import Zero
from calque.transforms.engines import zeros

F, I = (ShapedArray((2,), np.dtype(d)) for d in ("float32", "int32"))


def test_which_values_have_tangents():
    assert zeros.has_tangent(F) and zeros.has_tangent(ShapedArray((), np.dtype("complex64")))
    assert not zeros.has_tangent(I) and not zeros.has_tangent(ShapedArray((), np.dtype(bool)))
    assert zeros.value_has_tangent(1.0) and not zeros.value_has_tangent(np.int32(1))


def test_taken_out_and_put_back():
    x = np.ones(2, np.float32)
    ts = [x, Zero(F), x, Zero(I)]
    mask = zeros.nonzero(ts)
    assert mask == (True, False, True, False) and zeros.only_nonzero(ts) == [x, x]
    back = zeros.with_zeros(zeros.only_nonzero(ts), mask, [F, F, F, I])
    assert back[0] is x and type(back[1]) is Zero and back[1].aval is F
    assert back[3].aval.dtype == float0  # the tangents of integers are of that type


def test_as_arrays():
    assert np.asarray(zeros.ones(F)).tolist() == [1, 1]
    assert np.asarray(zeros.instantiate(Zero(F))).tolist() == [0, 0]
    x = np.ones(2, np.float32)
    assert zeros.instantiate(x) is x
    assert np.asarray(zeros.add_tangents(x, x)).tolist() == [2, 2]
    assert (
        zeros.add_tangents(Zero(F), x) is x and type(zeros.add_tangents(Zero(F), Zero(F))) is Zero
    )
