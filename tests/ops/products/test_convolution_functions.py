"""Convolutions as users call them: layouts by letters, padding by name, transposed, unshared,
patches, shapes."""

import numpy as np
import pytest

import calque
from calque import lax
from calque.ops.dimension_numbers import ConvDimensionNumbers
from calque.ops.products import convolution_functions as F
from tests.ops import peer
from tests.ops.helpers import run, values


def v(*shape, seed=0):
    return values("float64", shape, seed=seed)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (
            lambda x, w: F.conv(
                x,
                w[:, :3] if isinstance(w, np.ndarray) else np.ones((2, 3, 3, 3), "float32"),
                (1, 1),
                "SAME",
            ),
            "input feature dimension",
        ),
        (lambda x, w: F.conv(x, w, (1,), "SAME"), "window_strides"),
        (lambda x, w: F.conv(x, np.ones((2, 4, 3), "float32"), (1, 1), "SAME"), "ndim to be equal"),
        (lambda x, w: F.conv_general_dilated(x, w, (1, 1), "SAME", (2, 2)), "String padding"),
        (
            lambda x, w: F.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHX", "NCHW")
            ),
            "same spatial",
        ),
        (
            lambda x, w: F.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NCHH", "OIHH", "NCHH")
            ),
            "no letter twice",
        ),
        (lambda x, w: F.conv_general_dilated(x, w, (1, 1), [(0, 0)]), "padding must have one pair"),
        (
            lambda x, w: F.conv_general_dilated(x, w, (1, 1), "SAME", batch_group_count=2),
            "divisible",
        ),
        (
            lambda x, w: F.conv_general_dilated(
                x, w, (1, 1), "SAME", feature_group_count=2, batch_group_count=2
            ),
            "at most one",
        ),
        (lambda x, w: F.conv(x, np.ones((2, 4, 3, 3), "int32"), (1, 1), "SAME"), "same dtypes"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError), match=words):
        run(fun, X, W)


X, W = v(1, 4, 5, 6).astype("float32"), v(2, 4, 3, 3).astype("float32")


@pytest.mark.peer
def test_functions_beside_jax():
    x, k = v(1, 5, 6, 4).astype("float32"), v(3, 2, 4, 2).astype("float32")
    cases = [
        (lambda lax, x, w: lax.conv(x, w, (2, 1), "SAME"), X, W),
        (lambda lax, x, w: lax.conv(x, w, (2, 1), "VALID"), X, W),
        (
            lambda lax, x, w: lax.conv_with_general_padding(
                x, w, (1, 1), [(1, 1), (0, 2)], (2, 1), (1, 2)
            ),
            X,
            W,
        ),
        (lambda lax, x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME_LOWER"), X, W),
        (
            lambda lax, x, k: lax.conv_general_dilated(
                x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            x,
            k,
        ),
    ]
    for padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
        for strides in ((1, 1), (2, 3), (4, 1)):
            cases.append(
                (lambda lax, x, k, p=padding, s=strides: lax.conv_transpose(x, k, s, p), x, k)
            )
            cases.append(
                (
                    lambda lax, x, k, p=padding, s=strides: lax.conv_transpose(
                        x, k, s, p, use_consistent_padding=True, rhs_dilation=(1, 2)
                    ),
                    x,
                    k,
                )
            )
    peer.compare(cases, rtol=1e-4, atol=1e-4)
    layout = ("NHWC", "HWIO", "NHWC")
    wide = v(4, 4, 4 * 6, 3).astype("float32")
    peer.compare(
        [
            (
                lambda lax, x, k: lax.conv_transpose(
                    lax.slice(x, (0, 0, 0, 0), (1, 5, 6, 2)),
                    k,
                    (2, 2),
                    "SAME",
                    transpose_kernel=True,
                ),
                x,
                k,
            ),
            (lambda lax, x: lax.conv_general_dilated_patches(x, (3, 2), (1, 2), "VALID"), X),
            (
                lambda lax, x: lax.conv_general_dilated_patches(
                    x, (3, 2), (1, 2), "SAME", dimension_numbers=layout
                ),
                x,
            ),
            (
                lambda lax, x, w: lax.conv_general_dilated_local(
                    x, w, (1, 1), "VALID", (2, 3), dimension_numbers=layout
                ),
                x,
                wide,
            ),
        ],
        rtol=1e-4,
        atol=1e-4,
        printed=False,
    )


LAYOUTS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CWNH", "WOHI", "HNCW")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_letters_name_positions(layout):
    """The same convolution in every layout."""
    x, w = v(2, 3, 5, 6).astype("float32"), v(4, 3, 2, 3).astype("float32")
    plain = np.asarray(lax.conv_general_dilated(x, w, (1, 2), "SAME"))

    def laid_out(a, letters, own):
        return np.transpose(a, [letters.index(c) for c in own])

    got = lax.conv_general_dilated(
        laid_out(x, "NCHW", layout[0]),
        laid_out(w, "OIHW", layout[1]),
        (1, 2) if layout[1].index("H") < layout[1].index("W") else (2, 1),
        "SAME",
        dimension_numbers=layout,
    )
    np.testing.assert_allclose(got, laid_out(plain, "NCHW", layout[2]), rtol=1e-5, atol=1e-5)
    shape = lax.conv_general_shape_tuple(
        laid_out(x, "NCHW", layout[0]).shape,
        laid_out(w, "OIHW", layout[1]).shape,
        (1, 2) if layout[1].index("H") < layout[1].index("W") else (2, 1),
        "SAME",
        layout,
    )
    assert shape == np.asarray(got).shape


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 1), (0, 1)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
def test_transposed_convolution_is_the_gradient_of_a_convolution(padding, strides):
    """With `transpose_kernel`, of the one with these strides and, by name, this padding."""
    layout = ("NHWC", "HWIO", "NHWC")
    k = v(3, 2, 2, 4).astype("float32")
    y = v(1, 3, 2, 4).astype("float32")
    got = np.asarray(
        lax.conv_transpose(y, k, strides, padding, dimension_numbers=layout, transpose_kernel=True)
    )
    if isinstance(padding, str):

        def forward(x):
            return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=layout)

        assert calque.eval_shape(forward, got).shape == y.shape
        (want,) = calque.linear_transpose(forward, got)(y)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    shape = lax.conv_transpose_shape_tuple(y.shape, (3, 2, 4, 2), strides, padding, layout)
    assert shape == got.shape


def test_patches_are_windows():
    x = v(2, 3, 6, 5)
    got = np.asarray(lax.conv_general_dilated_patches(x, (2, 3), (2, 1), "VALID"))
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))[:, :, ::2]
    want = np.moveaxis(windows, (1, 4, 5), (1, 2, 3)).reshape(2, 18, 3, 3)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_kernels_of_their_own_for_each_position():
    x, w = v(2, 3, 5), v(4, 6, 4, seed=1)
    got = np.asarray(lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,)))
    want = np.zeros((2, 4, 4))
    for at in range(4):
        want[:, :, at] = x[:, :, at : at + 2].reshape(2, 6) @ w[:, :, at].T
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_numbers_that_are_given_stay():
    numbers = ConvDimensionNumbers((0, 1, 2), (1, 0, 2), (2, 1, 0))
    assert lax.conv_dimension_numbers((), (), numbers) is numbers
    assert lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), None) == ((0, 1, 2),) * 3
    for bad, words in (
        (("NC", "OI"), "a tuple of 3"),
        (("NC", "OIH", "NCH"), "one letter for each of 3"),
        (("NCH", "OIH", "NHH"), "N and C once"),
        (("NCH", "OIW", "NCH"), "same spatial"),
    ):
        with pytest.raises(TypeError, match=words):
            lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), bad)


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: lax.conv_transpose(np.ones((1, 2, 2)), np.ones((2, 2)), (1,), "SAME"),
            "equal rank",
        ),
        (
            lambda: lax.conv_transpose(np.ones([1] * 6), np.ones([1] * 6), (1,) * 4, "SAME"),
            "default",
        ),
        (
            lambda: lax.conv_transpose(np.ones((1, 4, 2)), np.ones((2, 2, 2)), (1,), "FULL"),
            '"SAME" or "VALID"',
        ),
        (lambda: lax.conv_shape_tuple((1, 3, 8), (4, 3, 3), (1,), [(0, 0)] * 2), "explicit pads"),
    ],
)
def test_refusals(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
