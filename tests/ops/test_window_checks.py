"""Lists of dimensions that fit no gather and no scatter: each is refused by its name."""

import numpy as np
import pytest

from calque import lax

X, INDICES = np.ones((4, 3, 5), np.float32), np.ones((4, 2, 1), np.int32)


def gather(**numbers):
    full = {"offset_dims": (2, 3), "collapsed_slice_dims": (0,), "start_index_map": (0,), **numbers}
    return lambda: lax.gather(X, INDICES, lax.GatherDimensionNumbers(**full), (1, 3, 5))


def scatter(shape=(4, 2, 3, 5), **numbers):
    full = {
        "update_window_dims": (2, 3),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        **numbers,
    }
    updates = np.ones(shape, np.float32)
    return lambda: lax.scatter(X, INDICES, updates, lax.ScatterDimensionNumbers(**full))


ERRORS = {
    "unsorted offsets": (gather(offset_dims=(3, 2)), "offset_dims in gather op must be sorted"),
    "offset twice": (gather(offset_dims=(2, 2)), "offset_dims in gather op must not repeat"),
    "far offset": (gather(offset_dims=(2, 9)), "Offset dimension 1 in gather op is out of bounds"),
    "far map": (gather(start_index_map=(7,)), "Invalid start_index_map"),
    "long map": (gather(start_index_map=(0, 1)), "2 elements in start_index_map"),
    "far collapsed": (gather(collapsed_slice_dims=(8,)), "Invalid collapsed_slice_dims set in"),
    "unsorted collapsed": (gather(collapsed_slice_dims=(1, 0)), "collapsed_slice_dims in gather"),
    "too many collapsed": (gather(collapsed_slice_dims=(0, 1)), "either be a offset dimension or"),
    "both": (gather(operand_batching_dims=(0,)), "must be disjoint"),
    "mapped and batched": (
        gather(collapsed_slice_dims=(), operand_batching_dims=(0,)),
        "start_index_map and operand_batching_dims",
    ),
    "indices batched alone": (
        gather(start_indices_batching_dims=(0,)),
        "requires equal numbers of operand_batching_dims",
    ),
    "index vectors batched": (
        gather(start_indices_batching_dims=(2,)),
        "cannot have the index vector dimension",
    ),
    "sizes that differ": (
        gather(
            start_index_map=(1,),
            collapsed_slice_dims=(),
            operand_batching_dims=(0,),
            start_indices_batching_dims=(1,),
        ),
        "have the same shape",
    ),
    "fits": (gather(), None),
    "unsorted windows": (scatter(update_window_dims=(3, 2)), "update_window_dims in scatter op"),
    "far window": (scatter(update_window_dims=(2, 9)), "Invalid update_window_dims set in scatter"),
    "inserted twice": (scatter(inserted_window_dims=(0, 0)), "must not repeat"),
    "far scatter map": (scatter(scatter_dims_to_operand_dims=(9,)), "Invalid scatter_dims_to_op"),
    "few windows": (scatter(inserted_window_dims=()), "window of size 2; doesn't match operand"),
    "rank of updates": (scatter((4, 2, 3, 5, 1)), "must be of rank 4; got 5"),
    "large windows": (scatter((4, 2, 3, 9)), "Bounds of the window dimensions"),
    "other updates": (scatter((4, 7, 3, 5)), "Bounds of the scatter dimensions"),
    "fits as well": (scatter(), None),
}


@pytest.mark.parametrize("name", ERRORS)
def test_dimension_numbers(name):
    fun, words = ERRORS[name]
    if words is None:
        fun()
        return
    with pytest.raises(TypeError, match=words):
        fun()


def test_where_nothing_is_taken_slices_may_be_larger():
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    out = lax.gather(np.zeros(0, np.float32), np.zeros((0, 1), np.int32), numbers, (1,))
    assert out.shape == (0,)
