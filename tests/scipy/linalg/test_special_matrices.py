"""Matrices with a pattern, as SciPy makes them, and what they are for."""

import numpy as np
import pytest
import scipy.linalg

import calque
import calque.numpy as jnp
from calque.scipy import linalg as sl
from calque.scipy.linalg.special_matrices import _fiedler_places
from tests.scipy.linalg.shared import close

RNG = np.random.default_rng(0)
V = {n: RNG.normal(size=n).astype(np.float32) for n in range(1, 8)}
C = (V[4] + 1j * RNG.normal(size=4)).astype(np.complex64)


@pytest.mark.parametrize(
    "name, args",
    [
        *[("toeplitz", args) for args in ((V[3],), (C,), (V[3], V[5]), (V[5], C))],
        *[("hankel", args) for args in ((V[4],), (V[3], V[5]), (V[5], V[2]), (V[1], V[1]))],
        ("circulant", (C,)), ("circulant", (V[1],)),
        ("companion", (V[5],)), ("companion", (V[2],)), ("companion", (C,)),
        ("fiedler", (V[4],)),
        *[("fiedler_companion", (V[n],)) for n in range(1, 8)],
        ("leslie", (V[4], V[3])), ("leslie", (V[2], V[1])),
        ("block_diag", (V[3], V[4].reshape(2, 2), 2.0)), ("block_diag", ()),
        *[("convolution_matrix", (V[m], n, mode)) for m in (1, 3, 6) for n in (1, 4, 5)
          for mode in ("full", "same", "valid")],
        *[(name, (n,)) for name in ("hilbert", "invhilbert", "pascal", "invpascal", "dft")
          for n in (0, 1, 5)],
        *[(name, (4, kind)) for name in ("pascal", "invpascal") for kind in ("lower", "upper")],
        ("helmert", (5,)), ("helmert", (5, True)), ("helmert", (1, True)),
        ("hadamard", (1,)), ("hadamard", (8,)), ("dft", (4, "sqrtn")), ("dft", (3, "n")),
    ],
)  # fmt: skip
def test_as_scipy(name, args):
    if name == "fiedler_companion" and args[0].size == 1:
        assert sl.fiedler_companion(*args).shape == (0, 0)
        return
    want = np.asarray(getattr(scipy.linalg, name)(*args))
    got = np.asarray(getattr(sl, name)(*args))
    assert got.shape == want.shape
    close(got, want, 1e-5)


@pytest.mark.parametrize("name", ["companion", "fiedler_companion"])
@pytest.mark.parametrize("n", range(2, 8))
def test_eigenvalues_of_companions_are_roots(name, n):
    roots = np.arange(1.0, n)
    a = np.poly(roots).astype(np.float32)
    with calque.config.override("enable_x64", True):
        found = np.sort(np.linalg.eigvals(np.asarray(getattr(sl, name)(a.astype(float)))).real)
    np.testing.assert_allclose(found, roots, rtol=1e-4)
    places = _fiedler_places(n - 1)
    assert sorted(places[places < n - 1].tolist()) == list(range(n - 1))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_products_with_convolution_matrices(mode):
    for m in (1, 3, 6):
        for n in (2, 5):
            got = sl.convolution_matrix(V[m], n, mode) @ V[n]
            np.testing.assert_allclose(got, np.convolve(V[m], V[n], mode), rtol=1e-4, atol=1e-5)


def test_inverses_and_orthogonality():
    for n in (1, 4):
        np.testing.assert_allclose(sl.hilbert(n) @ sl.invhilbert(n), np.eye(n), atol=1e-3)
        for kind in ("symmetric", "lower", "upper"):
            product = sl.pascal(n, kind) @ sl.invpascal(n, kind)
            np.testing.assert_allclose(product, np.eye(n), atol=1e-5)
        h = sl.helmert(n, full=True)
        np.testing.assert_allclose(h @ h.T, np.eye(n), atol=1e-6)
    f = np.asarray(sl.dft(6, "sqrtn"))
    np.testing.assert_allclose(f @ f.conj().T, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(sl.dft(6) @ C[:1].repeat(6), np.fft.fft(C[:1].repeat(6)), atol=1e-4)
    h = sl.hadamard(16, np.float32)
    np.testing.assert_array_equal(h @ h.T, 16 * np.eye(16))


@pytest.mark.parametrize(
    "f", [sl.toeplitz, sl.hankel, sl.circulant, sl.fiedler, sl.companion, sl.fiedler_companion,
          lambda v: sl.leslie(v, v[..., 1:]), lambda v: sl.convolution_matrix(v, 3)]
)  # fmt: skip
def test_batches_are_stacks(f):
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    want = np.stack([[np.asarray(f(v)) for v in row] for row in x])
    np.testing.assert_allclose(f(x), want, rtol=1e-6)
    np.testing.assert_allclose(calque.vmap(calque.vmap(f))(x), want, rtol=1e-6)


def test_derivatives_pass_through():
    ct = RNG.normal(size=(3, 3)).astype(np.float32)
    got = calque.grad(lambda c: (sl.toeplitz(c) * ct).sum())(V[3])
    want = [sum(ct[i, j] for i in range(3) for j in range(3) if abs(i - j) == k) for k in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: sl.hankel(jnp.array(1.0)), ValueError, "c must be at least 1-dim"),
        (lambda: sl.leslie(V[1], V[1]), ValueError, "at least 2"),
        (lambda: sl.leslie(V[3], V[3]), ValueError, "one less"),
        (lambda: sl.companion(V[1]), ValueError, "at least 2"),
        (lambda: sl.fiedler_companion(np.zeros(0, np.float32)), ValueError, "nonzero length"),
        (lambda: sl.convolution_matrix(V[3], 0), ValueError, "positive integer"),
        (lambda: sl.convolution_matrix(V[3], 2, "half"), ValueError, "mode must be"),
        (lambda: sl.convolution_matrix(np.zeros(0), 2), ValueError, "at least 1"),
        (lambda: sl.convolution_matrix(jnp.array(1.0), 2), ValueError, "got a scalar"),
        (lambda: sl.block_diag(np.zeros((1, 1, 1))), ValueError, "argument 0"),
        (lambda: sl.hilbert(-1), TypeError, "negative"),
        (lambda: sl.pascal(3, "diagonal"), ValueError, "kind"),
        (lambda: sl.helmert(0), ValueError, "positive integer"),
        (lambda: sl.hadamard(6), ValueError, "power of 2"),
        (lambda: sl.dft(3, "half"), ValueError, "scale must be"),
        (lambda: sl.dft(3, dtype=np.float32), ValueError, "complex floating-point"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_pascal_is_float32_in_wide_mode_too():
    with calque.enable_x64(True):
        assert {sl.pascal(3, kind).dtype.name for kind in (None, "lower", "upper")} == {"float32"}
        assert sl.invpascal(3).dtype == "float64"
    assert sl.pascal(0).shape == (0, 0)
