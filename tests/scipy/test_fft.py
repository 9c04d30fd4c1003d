"""Cosine transforms: values against SciPy for every type and normalisation, types and refusals
against JAX, derivatives."""

import numpy as np
import pytest
import scipy.fft

import calque
import calque.numpy as jnp
from calque.scipy import fft
from calque.test_util import check_grads
from tests.numpy.expressions import lines
from tests.ops.helpers import x64
from tests.scipy.expressions import check_jax

X = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
DATA = {
    "X": X,
    "I": np.array([[1, 2, 4]]),
    "C": (X + 1j * X[::-1]).astype(np.complex64),
    "H": X.astype(np.float16),
}


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_values(type: int, norm: str | None) -> None:
    for name in ("dct", "idct", "dctn", "idctn"):
        ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
        for x in (X, X.T, DATA["C"], X[:, :2]):
            want = theirs(x.astype(complex if x.dtype.kind == "c" else float), type=type, norm=norm)
            np.testing.assert_allclose(
                np.asarray(ours(x, type=type, norm=norm)), want, rtol=1e-5, atol=2e-5
            )
    with x64():
        got = fft.dct(X.astype(float), type, norm=norm)
        np.testing.assert_allclose(
            got, scipy.fft.dct(X.astype(float), type, norm=norm), rtol=1e-13, atol=1e-13
        )


def test_sizes_and_axes() -> None:
    for name, options in (
        ("dct", {"n": 3}), ("dct", {"n": 8, "axis": 0}), ("idct", {"n": 2, "axis": -2}), ("dctn",
        {"s": (2, 7)}), ("dctn", {"s": (4,), "axes": (0,)}),
        ("idctn", {"axes": (-1,)}), ("dctn", {"s": 4, "axes": 1}), ("idctn", {"s": (4,)}),
    ):  # fmt: skip
        want = getattr(scipy.fft, name)(X.astype(float), **options)

        def f(x, name=name, options=options):
            return getattr(fft, name)(x, **options)

        np.testing.assert_allclose(np.asarray(f(X)), want, rtol=1e-5, atol=2e-5)
        np.testing.assert_allclose(np.asarray(calque.jit(f)(X)), want, rtol=1e-5, atol=2e-5)


TYPES = lines("""
m.dct(X)
m.dct(I)
m.dct(C)
m.dct(H)
m.dct(X,norm='x')
m.dct(X,axis=3)
m.dct(2.)
m.dct([1.])
m.dct(X,n=8)
m.idct(X,norm='ortho')
m.idct(I)
m.idct(H,axis=0)
m.idct(X,type=5)
m.idct(X,n=-1)
m.dctn(X,s=(2,))
m.dctn(X,s=(2,3,4))
m.dctn(X,axes=(0,0))
m.dctn(X,axes=())
m.idctn(I)
m.idctn(X,norm='x')
m.idctn(C)
""")


@pytest.mark.peer
@pytest.mark.parametrize("case", TYPES)
def test_types_and_refusals_of_jax(case: str) -> None:
    check_jax(case, "fft", DATA)


def test_bad_sizes() -> None:
    for bad in (
        lambda: fft.dct(X, n=0),
        lambda: fft.dct(X[:, :1], 1),
        lambda: fft.dctn(X, s=(2,), axes=(0, 1)),
    ):
        with pytest.raises(ValueError, match="dct"):
            bad()


def test_derivatives() -> None:
    with x64():
        for f in (lambda x: fft.dct(x, 1, norm="ortho"), lambda x: fft.idctn(x, 4)):
            check_grads(f, (jnp.asarray(X.astype(float)),), order=1, atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(calque.vmap(fft.dct)(X), fft.dct(X), rtol=1e-5, atol=1e-5)


def test_numbers_have_no_axes():
    for name in ("dctn", "idctn"):
        out = getattr(fft, name)(2.0)
        assert out == 2 and out.weak_type and getattr(fft, name)(np.int8(3)).dtype == np.int8
    with pytest.raises(NotImplementedError, match=r"types 1 to 4, got type=1\.5"):
        fft.dct(X, 1.5)
