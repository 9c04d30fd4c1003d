"""The extensions `linalg` and `fft`."""

import numpy as np
import pytest

import calque.numpy as jnp
from tests.array_api.standard import CATEGORIES, COMPONENT, FLOATING, NUMERIC

STACKS = [(3, 3), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 3, 3)]


def matrices(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def positive(shape, dtype):
    a = matrices(shape, dtype)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(shape[-1], dtype=dtype)


def tol(dtype):
    return (
        {"rtol": 2e-3, "atol": 2e-4}
        if dtype in ("float32", "complex64")
        else {"rtol": 1e-9, "atol": 1e-9}
    )


def same(got, want, dtype):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, **tol(dtype))


@pytest.mark.parametrize("dtype", CATEGORIES[FLOATING])
def test_functions_of_square_matrices(dtype):
    for shape in STACKS:
        x = positive(shape, dtype)
        for name, options in [
            ("cholesky", {}),
            ("cholesky", {"upper": True}),
            ("det", {}),
            ("inv", {}),
            ("eigvalsh", {}),
        ]:
            want = np.asarray(getattr(np.linalg, name)(x, **options))
            same(getattr(jnp.linalg, name)(jnp.asarray(x), **options), want, dtype)
        sign, size = jnp.linalg.slogdet(jnp.asarray(x))
        assert jnp.linalg.slogdet(jnp.asarray(x))._fields == ("sign", "logabsdet")
        assert (sign.dtype, size.dtype) == (dtype, COMPONENT.get(dtype, dtype))
        np.testing.assert_allclose(sign * jnp.exp(size), np.linalg.det(x), **tol(dtype))
        for n in (0, 1, 3, -2):
            same(jnp.linalg.matrix_power(jnp.asarray(x), n), np.linalg.matrix_power(x, n), dtype)
        values, vectors = jnp.linalg.eigh(jnp.asarray(x))
        assert jnp.linalg.eigh(jnp.asarray(x))._fields == ("eigenvalues", "eigenvectors")
        assert (values.dtype, vectors.dtype) == (COMPONENT.get(dtype, dtype), dtype)
        np.testing.assert_allclose(
            x @ vectors, vectors * np.asarray(values)[..., None, :], **tol(dtype)
        )


@pytest.mark.parametrize("dtype", CATEGORIES[FLOATING])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 4, 3), (0, 2), (3, 0)])
def test_factors(shape, dtype):
    x = matrices(shape, dtype)
    a = jnp.asarray(x)
    for mode in ("reduced", "complete"):
        out = jnp.linalg.qr(a, mode=mode)
        want = np.linalg.qr(x, mode=mode)
        assert out._fields == ("Q", "R") and [o.shape for o in out] == [w.shape for w in want]
        np.testing.assert_allclose(np.asarray(out.Q) @ np.asarray(out.R), x, **tol(dtype))
    for full in (True, False):
        out = jnp.linalg.svd(a, full_matrices=full)
        want = np.linalg.svd(x, full_matrices=full)
        assert out._fields == ("U", "S", "Vh") and [o.shape for o in out] == [w.shape for w in want]
        assert [o.dtype for o in out] == [dtype, COMPONENT.get(dtype, dtype), dtype]
        k = out.S.shape[-1]
        made = (np.asarray(out.U)[..., :k] * np.asarray(out.S)[..., None, :]) @ np.asarray(out.Vh)[
            ..., :k, :
        ]
        np.testing.assert_allclose(made, x, **tol(dtype))
    same(jnp.linalg.svdvals(a), np.linalg.svdvals(x), dtype)
    if 0 not in shape:
        same(jnp.linalg.pinv(a), np.linalg.pinv(x), dtype)
        same(jnp.linalg.pinv(a, rtol=0.5), np.linalg.pinv(x, rtol=0.5), dtype)
        assert jnp.linalg.matrix_rank(a).tolist() == np.linalg.matrix_rank(x).tolist()
        assert jnp.linalg.matrix_rank(a, rtol=2.0).tolist() == np.zeros(shape[:-2]).tolist()
    for keepdims in (False, True):
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            if 0 not in shape:
                same(
                    jnp.linalg.matrix_norm(a, ord=order, keepdims=keepdims),
                    np.asarray(np.linalg.matrix_norm(x, ord=order, keepdims=keepdims)),
                    dtype,
                )


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (2, 3, 1)),
        ((2, 3, 3), (3, 2)),
        ((3, 3), (4, 3, 1)),
        ((2, 3, 3), (3,)),
    ],
)
def test_solve(shapes):
    for dtype in CATEGORIES[FLOATING]:
        a, b = positive(shapes[0], dtype), matrices(shapes[1], dtype, 1)
        same(jnp.linalg.solve(jnp.asarray(a), jnp.asarray(b)), np.linalg.solve(a, b), dtype)


@pytest.mark.parametrize("dtype", ["int32", *CATEGORIES[FLOATING]])
def test_products_of_vectors(dtype):
    a, b = (
        (5 * matrices((2, 3), dtype, 1)).astype(dtype),
        (5 * matrices((2, 3), dtype, 2)).astype(dtype),
    )
    x, y = jnp.asarray(a), jnp.asarray(b)
    for m, t in ((jnp, np), (jnp.linalg, np.linalg)):
        same(m.vecdot(x, y), t.vecdot(a, b), dtype)
        same(m.vecdot(x, y, axis=0), t.vecdot(a, b, axis=0), dtype)
        same(m.tensordot(x, y, axes=((1,), (1,))), t.tensordot(a, b, axes=((1,), (1,))), dtype)
        same(m.tensordot(x, y, axes=0), t.tensordot(a, b, axes=0), dtype)
        same(m.matrix_transpose(x), t.matrix_transpose(a), dtype)
    same(jnp.linalg.cross(x, y), np.linalg.cross(a, b), dtype)
    same(jnp.linalg.cross(x.T, y.T, axis=0), np.linalg.cross(a.T, b.T, axis=0), dtype)
    same(jnp.linalg.outer(x[0], y[1]), np.linalg.outer(a[0], b[1]), dtype)
    for offset in (-3, -1, 0, 1, 5):
        same(jnp.linalg.diagonal(x, offset=offset), np.linalg.diagonal(a, offset=offset), dtype)
        got, want = (
            jnp.linalg.trace(x, offset=offset),
            np.asarray(np.linalg.trace(a, offset=offset)),
        )
        np.testing.assert_allclose(got, want, **tol(dtype))
        assert got.dtype == ("int64" if dtype == "int32" else dtype)
    assert jnp.linalg.trace(x, dtype=jnp.complex128).dtype == "complex128"


@pytest.mark.parametrize("dtype", CATEGORIES[FLOATING])
def test_norms_of_vectors(dtype):
    x = matrices((2, 3, 4), dtype)
    for order in (2, 1, 0, -1, 3, 2.5, np.inf, -np.inf):
        for axis in (None, 0, -1, (0, 2)):
            for keepdims in (False, True):
                want = np.asarray(np.linalg.vector_norm(x, ord=order, axis=axis, keepdims=keepdims))
                got = jnp.linalg.vector_norm(
                    jnp.asarray(x), ord=order, axis=axis, keepdims=keepdims
                )
                np.testing.assert_allclose(got, want, **tol(dtype))
                assert (got.dtype, got.shape) == (COMPONENT.get(dtype, dtype), want.shape)


def test_what_is_refused():
    x = jnp.ones((2, 3))
    for f in (
        jnp.linalg.cholesky,
        jnp.linalg.inv,
        jnp.linalg.det,
        jnp.linalg.eigh,
        jnp.linalg.slogdet,
    ):
        with pytest.raises((ValueError, TypeError)):
            f(x)
    for call in (
        lambda: jnp.linalg.solve(jnp.ones((2, 2)), jnp.ones(3)),
        lambda: jnp.linalg.cross(jnp.ones(3), jnp.ones(4)),
        lambda: jnp.linalg.outer(x, x),
        lambda: jnp.linalg.vecdot(jnp.ones(3), jnp.ones(4)),
        lambda: jnp.linalg.matrix_power(jnp.ones((2, 2)), 1.5),
        lambda: jnp.linalg.qr(x, mode="some"),
        lambda: jnp.linalg.matrix_norm(jnp.ones((2, 2)), ord="some"),
        lambda: jnp.linalg.matrix_norm(jnp.ones(3)),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()


# ---------------------------------------------------------------- fft

COMPLEX_OF = {
    "float32": "complex64",
    "float64": "complex128",
    "complex64": "complex64",
    "complex128": "complex128",
}
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]


def inputs(name):
    return (
        ("float32", "float64")
        if name in ("rfft", "ihfft", "rfftn")
        else ("complex64", "complex128")
    )


def transformed(name, dtype):
    return COMPONENT[dtype] if name in ("irfft", "hfft", "irfftn") else COMPLEX_OF[dtype]


@pytest.mark.parametrize("name", ONE)
def test_transforms_of_one_axis(name):
    for dtype in inputs(name):
        x = matrices((3, 6), dtype)
        for options in (
            {},
            {"n": 4},
            {"n": 9},
            {"axis": 0},
            {"axis": -2, "n": 5},
            {"norm": "ortho"},
            {"norm": "forward"},
            {"norm": "backward"},
        ):
            got, want = (
                getattr(jnp.fft, name)(jnp.asarray(x), **options),
                getattr(np.fft, name)(x, **options),
            )
            assert (got.dtype, got.shape) == (transformed(name, dtype), want.shape)
            np.testing.assert_allclose(got, want, **tol(dtype))


@pytest.mark.parametrize("name", MANY)
def test_transforms_of_several_axes(name):
    for dtype in inputs(name):
        x = matrices((3, 4, 6), dtype)
        for options in (
            {},
            {"axes": (0, 2)},
            {"s": (2, 7), "axes": (1, 2)},
            {"norm": "ortho"},
            {"axes": (1,)},
            {"norm": "forward", "axes": (-1, 0)},
        ):
            got, want = (
                getattr(jnp.fft, name)(jnp.asarray(x), **options),
                getattr(np.fft, name)(x, **options),
            )
            assert (got.dtype, got.shape) == (transformed(name, dtype), want.shape)
            np.testing.assert_allclose(got, want, **tol(dtype))


def test_frequencies_and_shifts():
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 4, 5):
            for options in ({}, {"d": 0.5}):
                got, want = (
                    getattr(jnp.fft, name)(n, **options),
                    getattr(np.fft, name)(n, **options),
                )
                assert got.dtype == "float64"
                np.testing.assert_allclose(got, want)
            assert getattr(jnp.fft, name)(n, dtype=jnp.float32).dtype == "float32"
    for dtype in CATEGORIES[NUMERIC][::4]:
        x = np.arange(12).reshape(3, 4).astype(dtype)
        for name in ("fftshift", "ifftshift"):
            for axes in (None, 0, (0, 1), -1):
                got = getattr(jnp.fft, name)(jnp.asarray(x), axes=axes)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, getattr(np.fft, name)(x, axes=axes))


def test_wrong_transforms_are_refused():
    for call in (
        lambda: jnp.fft.fft(jnp.ones(3), norm="some"),
        lambda: jnp.fft.fft(jnp.ones(3), n=0),
        lambda: jnp.fft.fft(jnp.ones(3), axis=2),
        lambda: jnp.fft.rfft(jnp.ones(3, complex)),
        lambda: jnp.fft.fftn(jnp.ones((2, 2)), s=(2,), axes=(0, 1)),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)):
            call()
