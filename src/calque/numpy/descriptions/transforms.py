"""What the help of Fourier transforms says."""

from __future__ import annotations

from typing import Final

from calque.numpy.descriptions.parts import described, entries

__all__ = ["of_transform"]

_TABLE: Final = """
fft: The discrete Fourier transform along an axis.
>>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

ifft: The inverse of `fft` along an axis.
>>> jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0]))
Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

rfft: The Fourier transform of real values along an axis: the half of `fft` that says it all.
= Complex numbers, `n // 2 + 1` along the axis.
>>> jnp.fft.rfft(jnp.array([1.0, 1.0, 1.0, 1.0]))
Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)

irfft: The inverse of `rfft`: real values, from the first half of their transform.
= Real numbers, `n` along the axis.
>>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0]))
Array([1., 1., 1., 1.], dtype=float32)

fft2: The discrete Fourier transform over two axes.
>>> jnp.fft.fft2(jnp.ones((2, 2)))
Array([[4.+0.j, 0.+0.j],
       [0.+0.j, 0.+0.j]], dtype=complex64)

ifft2: The inverse of `fft2` over two axes.
>>> jnp.fft.ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
Array([[1.+0.j, 1.+0.j],
       [1.+0.j, 1.+0.j]], dtype=complex64)

rfft2: The Fourier transform of real values over two axes, halved along the last of them.
= Complex numbers, `n // 2 + 1` along the last axis of `axes`.
>>> jnp.fft.rfft2(jnp.ones((2, 2)))
Array([[4.+0.j, 0.+0.j],
       [0.+0.j, 0.+0.j]], dtype=complex64)

irfft2: The inverse of `rfft2`: real values over two axes.
= Real numbers.
>>> jnp.fft.irfft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
Array([[1., 1.],
       [1., 1.]], dtype=float32)

fftn: The discrete Fourier transform over several axes.
>>> jnp.fft.fftn(jnp.ones((2, 2)))
Array([[4.+0.j, 0.+0.j],
       [0.+0.j, 0.+0.j]], dtype=complex64)

ifftn: The inverse of `fftn` over several axes.
>>> jnp.fft.ifftn(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
Array([[1.+0.j, 1.+0.j],
       [1.+0.j, 1.+0.j]], dtype=complex64)

rfftn: The Fourier transform of real values over several axes, halved along the last of them.
= Complex numbers, `n // 2 + 1` along the last axis of `axes`.
>>> jnp.fft.rfftn(jnp.ones((2, 2)))
Array([[4.+0.j, 0.+0.j],
       [0.+0.j, 0.+0.j]], dtype=complex64)

irfftn: The inverse of `rfftn`: real values over several axes.
= Real numbers.
>>> jnp.fft.irfftn(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
Array([[1., 1.],
       [1., 1.]], dtype=float32)
"""
_ENTRIES: Final = entries(_TABLE)

_NORM: Final = """\
norm: "forward" divides the transform by the number of points, "backward" the inverse, "ortho"
    both by its square root. None is "backward"."""
_ONE: Final = """\
a: an array of {}.
n: the number of points: values are cut off at the end, or zeros appended. None is
    {}.
axis: the axis to transform.
{}"""
_SEVERAL: Final = """\
a: an array of {}.
s: the number of points along each axis: values are cut off at the end, or zeros appended. None,
    and -1 for one axis, is {}.
axes: the axes to transform, no axis twice. By default {}.
{}"""


def of_transform(name: str) -> str:
    """The help of a transform over one axis, two or any."""
    does, returns, _, example = _ENTRIES[name]
    values = "real values" if name.startswith("rfft") else "values, real or complex"
    halved = name.startswith("irfft")
    if name.endswith(("2", "n")):
        number = "its size, `2 * (size - 1)` for the last" if halved else "its size"
        axes = "the last two" if name.endswith("2") else "all, or the last `len(s)`"
        arguments = _SEVERAL.format(values, number, axes, _NORM)
    else:
        number = "`2 * (size - 1)`" if halved else "the size of the axis"
        arguments = _ONE.format(values, number, _NORM)
    returns = returns or "Complex numbers, complex128 for float64 and complex128."
    return described(does, arguments, returns, example)
