"""Sizes as operands, and the dtypes of places."""

import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops import sizes


@pytest.mark.parametrize(
    "extents, dtype",
    [((3,), "int32"), ((3, 2**30 - 1), "int32"), ((2**31,), "int64"), ((5, 2**40), "int64")],
)
def test_dtypes_of_places(extents, dtype):
    assert sizes.index_dtype(*extents) == np.dtype(dtype)


def test_operands_of_the_very_dtype():
    x = np.arange(3, dtype=np.int64)
    assert typeof(sizes.exactly(x)).dtype == np.dtype("int64")  # also without x64
    assert typeof(sizes.exactly(x.astype(np.int8))).dtype == np.dtype("int8")


def test_fixed_sizes_are_numbers():
    assert sizes.as_number(5, np.dtype("float32")) == np.float32(5)
    assert np.asarray(sizes.places(4)).tolist() == [0, 1, 2, 3]
    assert np.asarray(sizes.places(0, np.int64)).shape == (0,)


def test_free_sizes_are_traced_numbers():
    symbols = Symbols((3,))
    (n,) = symbols.sizes()

    def f(x):
        return [sizes.as_number(n * 2, np.dtype("float32")), sizes.places(n)]

    closed = trace_to_jaxpr(f, [ShapedArray((n,), np.dtype("float32"))])
    assert closed.out_avals[1].shape == (n,) and not symbols.guards
    assert "size_value" in str(closed)


def test_in_a_program_for_any_size():
    f = calque.jit(lambda x: x * sizes.as_number(x.shape[0], np.dtype("float32")))
    for n in (2, 3, 5, 7):
        assert float(f(np.ones(n, np.float32)).sum()) == n * n
