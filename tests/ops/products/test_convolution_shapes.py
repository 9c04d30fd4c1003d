"""Dimension numbers, padding by name and shapes of convolutions."""

import numpy as np
import pytest

from calque.ops.products import convolution_shapes as F
from calque.ops.products.convolution_functions import conv_general_dilated, conv_transpose
from tests.ops.helpers import same

LAYOUT = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_shapes_are_those_of_the_results(padding, strides):
    x, w = np.ones((1, 8, 9, 3), "float32"), np.ones((3, 2, 3, 4), "float32")
    found = conv_general_dilated(x, w, strides, padding, dimension_numbers=LAYOUT).shape
    assert F.conv_general_shape_tuple(x.shape, w.shape, strides, padding, LAYOUT) == found
    found = conv_transpose(x, w, strides, padding, dimension_numbers=LAYOUT).shape
    assert F.conv_transpose_shape_tuple(x.shape, w.shape, strides, padding, LAYOUT) == found


def test_refusals():
    with pytest.raises(TypeError, match="expected 2, got 1"):
        F.conv_shape_tuple((1, 3, 8, 9), (4, 3, 3, 2), (2, 1), [(0, 1)])
    with pytest.raises(ValueError, match='Padding mode must be "SAME"'):
        F.transposed_padding(3, 2, "FULL")


@pytest.mark.peer
def test_shape_tuples_beside_jax():
    jax = pytest.importorskip("jax")
    layout = ("NHWC", "HWIO", "NHWC")
    for name, args in [
        ("conv_shape_tuple", ((1, 3, 8, 9), (4, 3, 3, 2), (2, 1), [(0, 1), (1, 1)])),
        ("conv_general_shape_tuple", ((1, 8, 9, 3), (3, 2, 3, 4), (2, 1), "SAME", layout)),
        ("conv_transpose_shape_tuple", ((1, 8, 9, 3), (3, 2, 3, 4), (2, 1), "SAME", layout)),
        ("conv_transpose_shape_tuple", ((1, 8, 9, 3), (3, 2, 3, 4), (2, 1), "VALID", layout)),
    ]:
        assert getattr(F, name)(*args) == tuple(getattr(jax.lax, name)(*args))
    same(
        np.array(F.conv_general_permutations(layout)),
        np.array(jax.lax.conv_general_permutations(layout)),
    )
