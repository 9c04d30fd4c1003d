"""Fourier transforms as machine code: right for every kind of length, and no host calls in
programs."""

import numpy as np
import pytest

import calque
from calque import lax
from calque import numpy as jnp
from calque.core.avals import ShapedArray
from calque.core.symbols import Symbols
from calque.machine.routines.fft import transforms
from calque.machine.routines.fft.work import Functions
from calque.native import routines
from calque.native.library import fourier
from calque.ops.dimension_numbers import FftType

LENGTHS = [*range(1, 71), 81, 97, 100, 125, 128, 243, 256, 343, 360, 500, 509]
LENGTHS += [1000, 1001, 1024, 2048, 3072, 4096, 10007]
BATCHES = [(), (3,), (2, 19), (0,)]
SHAPES = [
    (4, 6),
    (30, 7, 5),
    (2, 3, 16, 9),
    (64, 80),
    (5, 100, 3),
    (70, 1, 2),
    (3, 53, 2),
    (1, 1, 1),
    (0, 5, 4, 6),
]
EPS = {"complex64": 3e-7, "complex128": 2e-15}


@pytest.fixture(autouse=True)
def wide():
    with calque.enable_x64(True):
        yield


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def close(got, want, dtype):
    assert got.shape == want.shape
    assert got.dtype == (dtype if np.iscomplexobj(want) else np.zeros(1, dtype).real.dtype)
    error = np.linalg.norm(np.asarray(got) - want)
    assert error <= EPS[dtype] * np.linalg.norm(want)


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_every_kind_of_length(batch, dtype):
    for n in LENGTHS:
        x = numbers((*batch, n), dtype, n)
        exact, half = x.astype(complex), x[..., : n // 2 + 1]
        close(jnp.fft.fft(x), np.fft.fft(exact), dtype)
        close(jnp.fft.ifft(x), np.fft.ifft(exact), dtype)
        close(jnp.fft.rfft(x.real.copy()), np.fft.rfft(exact.real), dtype)
        close(jnp.fft.irfft(half, n), np.fft.irfft(half.astype(complex), n), dtype)


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_several_axes(shape, dtype):
    x = numbers(shape, dtype)
    for k in range(2, min(len(shape), 3) + 1):
        axes, lengths = tuple(range(-k, 0)), shape[-k:]
        half, exact = x[..., : shape[-1] // 2 + 1], x.astype(complex)
        close(jnp.fft.fftn(x, axes=axes), np.fft.fftn(exact, axes=axes), dtype)
        close(jnp.fft.ifftn(x, axes=axes), np.fft.ifftn(exact, axes=axes), dtype)
        close(jnp.fft.rfftn(x.real.copy(), axes=axes), np.fft.rfftn(exact.real, axes=axes), dtype)
        want = np.fft.irfftn(half.astype(complex), s=lengths, axes=axes)
        close(jnp.fft.irfftn(half, s=lengths, axes=axes), want, dtype)


@pytest.mark.parametrize("n", [1, 8, 47, 256, 509, 3072])
def test_a_transform_does_not_depend_on_those_beside_it(n):
    x = numbers((40, n), "complex64")
    alone = np.stack([np.asarray(jnp.fft.fft(row)) for row in x])
    np.testing.assert_array_equal(np.asarray(jnp.fft.fft(x)), alone)
    np.testing.assert_array_equal(np.asarray(jnp.fft.fft(x.T.copy(), axis=0)).T, alone)


def test_exact_rules_of_small_transforms():
    np.testing.assert_array_equal(
        jnp.fft.fft(np.array([1.0, 2.0, 3.0, 4.0])), [10, -2 + 2j, -2, -2 - 2j]
    )
    np.testing.assert_array_equal(jnp.fft.irfft(np.array([10, -2 + 2j, -2 + 5j])), [1, 2, 3, 4])
    assert not np.isfinite(jnp.fft.fft(np.array([1.0, np.nan, 3.0]))).any()
    assert not np.isfinite(jnp.fft.rfft(np.array([1.0, np.inf, 3.0, 0.5, 2.0, 1.0]))).any()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 360, 1 << 16])
def test_roots_are_right_to_the_last_bits(n):
    k = np.arange(n)
    c, s = fourier.roots(n, k)
    angle = -2 * np.longdouble("3.14159265358979323846264338327950288") * k / n
    assert np.abs(c - np.cos(angle)).max() < 1.2e-16
    assert np.abs(s - np.sin(angle)).max() < 1.2e-16
    assert set(zip(*fourier.roots(4, np.arange(4)))) == {(1, 0), (0, -1), (-1, 0), (0, 1)}


@pytest.mark.parametrize("single", [False, True])
def test_radices_multiply_to_the_length(single):
    for n in range(1, 3000):
        found = fourier.radices(n, single)
        assert found is None or int(np.prod(found)) == n
        assert fourier.longer_than(n) >= 2 * n - 1
    assert fourier.radices(47, single) == [47]
    assert fourier.radices(53, single) is None


def test_vectors_of_single_precision_are_full_after_the_first_pass():
    for n in range(8, 4097, 8):
        found = fourier.radices(n, True)
        assert found is None or found[0] == 8 or (found[:2] == [4, 4] and n % 32 == 16)


@pytest.mark.parametrize(("dtype", "name"), [("c8", "calque_fft_single"), ("c16", "calque_fft")])
def test_each_precision_has_its_kernel(dtype, name):
    """Data of single precision is transformed in it."""
    params = {"fft_type": FftType.FFT, "fft_lengths": (16,)}
    found, _ = fourier.kernel(ShapedArray((8, 16), np.dtype(dtype)), params)
    assert found == f"fft {name}"
    assert found.found() == getattr(transforms, name).address


@pytest.mark.parametrize(
    ("kind", "lengths", "fields"),
    [
        (FftType.FFT, (1,), ""),
        (FftType.FFT, (128, 3), "pass_3 pass_4 pass_8"),
        (FftType.RFFT, (128,), "halves pass_8 turn_halves"),
        (FftType.IRFFT, (121, 2), "halves pass_any turn_halves"),
        (FftType.IRFFT, (4, 7), "pass_4 pass_7 whole"),
        (FftType.FFT, (53,), "convolve pass_4 pass_8"),
    ],
    ids=str,
)
def test_functions_that_no_length_needs_are_left_out(kind, lengths, fields):
    """A call names those that its lengths need; the words of the others are 0."""
    fields = {"load", "store", *fields.split()}
    assert set(fourier.needed(kind, True, lengths, 2)) == fields
    params = {"fft_type": kind, "fft_lengths": lengths}
    _, words = fourier.kernel(ShapedArray((2, *lengths), np.dtype("c8")), params)
    named = {f for f, w in zip(Functions.fields, words, strict=True) if w}
    assert named == fields
    assert all(routines.by_name(w) == w.found() for w in words if w)


def test_free_lengths_need_all():
    (n,) = Symbols((128,)).sizes()
    every = set(Functions.fields)
    assert set(fourier.needed(FftType.RFFT, True, (n, 128), 1)) == every
    left_out = {"halves", "whole", "turn_halves"}
    assert set(fourier.needed(FftType.FFT, True, (n,), 1)) == every - left_out
    assert fourier.needed(FftType.IRFFT, True, (n,), 1)["turn_halves"] == "fft_part_halves"


@pytest.mark.parametrize(
    ("kind", "lengths", "whole"),
    [
        (FftType.FFT, (128,), "pass_4 pass_8"),
        (FftType.FFT, (32,), ""),  # many such lines stand side by side, or few
        (FftType.FFT, (53,), "pass_4 pass_8"),  # in transforms of length 128
        (FftType.FFT, (56,), ""),
        (FftType.FFT, (128, 3), "pass_3 pass_4"),  # three columns; 24 after a pass
        (FftType.RFFT, (128, 128), "pass_4 pass_8"),
        (FftType.IRFFT, (16, 32, 96), "pass_3 pass_4 pass_8"),
        (FftType.FFT, (256, 13), "pass_4"),  # eight columns, and five that are left
    ],
    ids=str,
)
def test_passes_over_whole_vectors_alone(kind, lengths, whole):
    """Where no pass of a radix finds less than a vector, its code for less is left out."""
    found = fourier.needed(kind, True, lengths, 0)
    passes = {f: name for f, name in found.items() if f.startswith("pass_")}
    assert {f for f, name in passes.items() if name == f"fft_whole_{f}"} == set(whole.split())


@pytest.mark.parametrize(
    ("kind", "lengths", "outer", "whole"),
    [
        (FftType.FFT, (128,), 0, "load store"),
        (FftType.FFT, (16,), 1, "load store"),
        (FftType.FFT, (16,), 9, ""),  # lines side by side, whose elements do not follow each other
        (FftType.FFT, (16,), 0, ""),
        (FftType.FFT, (7,), 1, ""),
        (FftType.FFT, (128, 3), 1, ""),  # three columns
        (FftType.FFT, (256, 13), 1, ""),  # eight columns, and five that are left
        (FftType.FFT, (53, 128), 2, "load store"),
        (FftType.RFFT, (128, 128), 0, "load store turn_halves"),
        (FftType.IRFFT, (3, 32, 96), 2, ""),  # lines of half the length stand side by side
        (FftType.RFFT, (16,), 1, "load store"),  # four pairs
        (FftType.RFFT, (32,), 1, "load store turn_halves"),
        (FftType.RFFT, (13,), 1, ""),  # seven elements are written
        (FftType.IRFFT, (15,), 1, "load store"),
    ],
    ids=str,
)
def test_whole_lines_where_all_rows_fill_vectors(kind, lengths, outer, whole):
    """Code for what is less, or stands apart, is left out where no line needs it."""
    found = fourier.needed(kind, True, lengths, outer)
    assert {f for f in ("load", "store", "turn_halves") if "whole" in found.get(f, "")} == set(
        whole.split()
    )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_real_lines_of_every_length(dtype):
    """With the functions that were chosen for each."""
    for n in range(1, 70):
        for lines in (1, 3, 9):
            x = np.random.default_rng(n).normal(size=(lines, n)).astype(dtype)
            want = np.fft.rfft(x)
            close = 1e-12 if calque.numpy.asarray(x).dtype == "f8" else 1e-5
            got = np.asarray(calque.numpy.fft.rfft(x))
            np.testing.assert_allclose(got, want, rtol=0, atol=close * n)
            back = np.asarray(calque.numpy.fft.irfft(got, n))
            np.testing.assert_allclose(back, x, rtol=0, atol=close * n)


def test_passes_over_whole_vectors_where_lines_are_counted():
    """From eight on as many stand side by side; of one length they do not where they are few."""
    for lengths, outer, name in (
        ((16,), 8, "fft_whole_pass_4"),
        ((16,), 7, "fft_pass_4"),
        ((16,), 0, "fft_pass_4"),
        ((256,), 0, "fft_whole_pass_4"),
        ((80,), 100, "fft_whole_pass_4"),
        ((80,), 5, "fft_pass_4"),
    ):
        assert fourier.needed(FftType.FFT, True, lengths, outer)["pass_4"] == name


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_lines_of_every_number_that_stand_side_by_side(dtype):
    """Whatever is left behind whole parts, and with the passes that were chosen for it."""
    for n in (16, 64, 200, 256):
        for inner in (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 14, 20, 21, 28, 31, 70):
            x = np.random.default_rng(inner).normal(size=(n, inner, 2)).view("c16")[..., 0]
            got = np.asarray(calque.numpy.fft.fft2(x.astype(dtype)))
            close = 1e-13 if got.dtype == "c16" else 1e-6
            want = np.fft.fft2(x)
            np.testing.assert_allclose(got, want, rtol=0, atol=close * n * inner)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("n", [12, 50, 53, 64, 90])
def test_any_number_of_lines_gives_the_bits_of_one(n, dtype):
    """Where a few are left behind whole vectors, some are transformed twice."""
    x = np.random.default_rng(n).normal(size=(41, n, 2)).view("c16")[..., 0].astype(dtype)
    alone = [np.asarray(calque.numpy.fft.fft(line)) for line in x]
    for count in (1, 7, 8, 9, 15, 16, 17, 25, 41):
        some = np.asarray(calque.numpy.fft.fft(x[:count]))
        np.testing.assert_array_equal(some, alone[:count])
    real = np.asarray(calque.numpy.fft.rfft(x[:9].real))
    np.testing.assert_array_equal(real[8], np.asarray(calque.numpy.fft.rfft(x[8].real)))


def test_compiled_is_eager_without_host_calls():
    def f(x):
        return jnp.fft.fft2(x), jnp.fft.rfft(x.real), jnp.fft.irfft(x, 11)

    x = numbers((9, 6), "complex128")
    compiled = calque.jit(f)
    assert not calque.explain(compiled, x).host_calls
    for a, b in zip(compiled(x), f(x)):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_in_a_loop():
    def f(x):
        return lax.scan(
            lambda c, _: (0.5 * jnp.fft.irfft(jnp.fft.rfft(c) * 2, 24), jnp.fft.fft(c)[1]),
            x,
            None,
            length=5,
        )

    x = numbers(24, "complex128").real.copy()
    compiled = calque.jit(f)
    assert not calque.explain(compiled, x).host_calls
    last, seen = compiled(x)
    np.testing.assert_allclose(last, x, atol=1e-14)
    np.testing.assert_allclose(seen, [np.fft.fft(x)[1]] * 5, rtol=1e-12)


@pytest.mark.parametrize("kind", list(FftType), ids=lambda k: k.name)
def test_derivatives_and_lanes(kind):
    n = 10
    entries = n // 2 + 1 if kind is FftType.IRFFT else n
    x = numbers((4, entries), "complex128")
    x = x.real.copy() if kind is FftType.RFFT else x

    def f(v):
        return lax.fft(v, kind, (n,))

    np.testing.assert_array_equal(
        np.asarray(calque.jit(calque.vmap(f, 1, 1))(x.T)).T, np.asarray(f(x))
    )
    tangent = numbers((4, entries), "complex128", 1)
    tangent = tangent.real.copy() if kind is FftType.RFFT else tangent
    np.testing.assert_allclose(calque.jvp(f, (x,), (tangent,))[1], f(tangent), atol=1e-13)
    weights = np.random.default_rng(2).normal(size=f(x).shape)
    loss = calque.jit(calque.grad(lambda v: (weights * jnp.abs(f(v)) ** 2).sum()))
    assert not calque.explain(loss, x).host_calls
    step = 1e-6
    slope = (
        np.sum(weights * np.abs(f(x + step * tangent)) ** 2)
        - np.sum(weights * np.abs(f(x - step * tangent)) ** 2)
    ) / (2 * step)
    np.testing.assert_allclose(np.sum(loss(x) * tangent).real, slope, rtol=1e-6)


def test_free_lengths_are_native_too():
    f = calque.jit(
        lambda x: jnp.abs(jnp.fft.rfft(x)) + jnp.abs(jnp.fft.fft(x))[: x.shape[0] // 2 + 1]
    )
    for n in (8, 12, 200, 31, 509, 1, 12):
        x = numbers(n, "complex128", n).real.copy()
        np.testing.assert_allclose(f(x), 2 * np.abs(np.fft.rfft(x)), rtol=1e-10, atol=1e-12)


def test_a_length_that_may_be_zero():
    f = calque.jit(lambda x: lax.fft(x[1:], "FFT", (x.shape[0] - 1,)))
    for n in (5, 7, 9, 2, 1):
        x = numbers(n, "complex128", n)
        np.testing.assert_allclose(f(x), np.fft.fft(x[1:]) if n > 1 else x[1:], atol=1e-13)


def test_donated_operand():
    f = calque.jit(lambda x: jnp.fft.fft2(x), donate_argnums=0)
    x = numbers((33, 16), "complex128")
    np.testing.assert_allclose(f(jnp.array(x)), np.fft.fft2(x), atol=1e-12)
