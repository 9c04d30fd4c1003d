"""Fourier transforms over one axis, two or many."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.numpy import fft
from calque.numpy.fourier import over_many, over_one, scale_of
from tests.numpy.public.shared import check_parameters

X = np.arange(16.0, dtype=np.float32).reshape(2, 2, 2, 2)


def test_many_axes_are_one_after_the_other() -> None:
    every = over_many("fftn", "FFT")(X)
    one = over_one("fft", "FFT")
    np.testing.assert_allclose(every, one(one(one(one(X, axis=0), axis=1), axis=2)), atol=1e-4)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_the_scales_of_both_ways_undo_each_other(norm: str | None) -> None:
    both = scale_of("fft", norm, False, 8) * scale_of("ifft", norm, True, 8)
    assert both == pytest.approx(1)


@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("axes", ["", "2", "n"])
def test_what_is_written_is_what_was_made(kind: str, axes: str) -> None:
    check_parameters(getattr(fft, kind + axes).__wrapped__)


def test_an_axis_may_not_occur_twice() -> None:
    with pytest.raises(ValueError, match="repeated axes"):
        jnp.fft.fftn(X, axes=(0, 0))


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfft2", "irfftn"])
def test_one_point_of_a_real_transform_stands_for_none(name: str) -> None:
    """Of how many points it was made is not said, and 2 * (1 - 1) is none."""
    x = np.ones((2, 1), np.complex64)
    for f in (getattr(jnp.fft, name), calque.jit(getattr(jnp.fft, name))):
        got = f(x)
        assert (got.shape, got.dtype) == ((2, 0), np.float32)
    with pytest.raises(ValueError, match="must be positive"):
        jnp.fft.irfft(x, 0)
    assert jnp.fft.irfft(x, 1).shape == (2, 1)
    for shape in ((2, 0), (0, 0)):
        assert getattr(jnp.fft, name)(x[:, :0].reshape(shape)).shape == shape


@pytest.mark.parametrize(
    "shape", [(17, 2, 1), (18, 3, 1), (23, 60, 1), (17, 1, 5, 1, 1), (15, 1, 1)]
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_axes_before_those_of_one_element(shape: tuple[int, ...], name: str) -> None:
    """They are transformed in their place, of lines one behind the other: each of them once."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape).astype("f4")
    x = x if name == "rfftn" else x + 1j * rng.standard_normal(shape).astype("f4")
    s = shape if name == "irfftn" else None
    want = getattr(np.fft, name)(x, s, range(len(shape)))
    for f in (getattr(jnp.fft, name), calque.jit(getattr(jnp.fft, name), static_argnums=1)):
        np.testing.assert_allclose(f(x, s), want, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 0, 2), (0, 3, 4), (0, 0, 5)])
def test_real_transforms_of_no_lines(shape: tuple[int, ...]) -> None:
    """An axis without elements beside the last one leaves nothing to transform."""
    x, half = jnp.zeros(shape), (*shape[:2], shape[2] // 2 + 1)
    for f in (jnp.fft.rfftn, calque.jit(jnp.fft.rfftn)):
        assert (f(x).shape, f(x).dtype) == (half, "complex64")
    for f in (jnp.fft.irfftn, calque.jit(jnp.fft.irfftn)):
        assert (f(x).shape, f(x).dtype) == ((*shape[:2], 2 * (shape[2] - 1)), "float32")
    with pytest.raises(ValueError, match="must be positive"):
        jnp.fft.rfftn(jnp.zeros((3, 2, 0)))


def test_no_axes_leave_real_values_alone() -> None:
    for dtype in ("float16", "float32"):
        out = fft.rfftn(jnp.ones((2, 4), dtype), axes=())
        assert out.dtype == dtype and out.shape == (2, 4)
    with pytest.raises(ValueError, match="rfftn"):
        fft.rfftn(jnp.ones(2, "complex64"), axes=())
    for transform in (fft.rfftn, fft.fftn, fft.irfftn):  # what is wrong is told all the same
        with pytest.raises(ValueError, match="different lengths"):
            transform(jnp.ones(2), s=(3,), axes=())
        with pytest.raises(ValueError, match="Invalid norm"):
            transform(jnp.ones(2), axes=(), norm="none")
