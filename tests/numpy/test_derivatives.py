"""Derivatives of library functions against finite differences, and where naive ones would be nan;
batches against loops."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.compare import values

X = values((3, 3), "float32", 5)
V = np.array([0.3, 1.2, 2.0, 3.1], np.float32)
POSITIVE = X @ X.T + 2 * np.eye(3, dtype=np.float32)

FUNCTIONS = {
    "det": (lambda x: jnp.linalg.det(x), X),
    "det of 4": (lambda x: jnp.linalg.det(x), values((4, 4), "float32", 6)),
    "slogdet": (lambda x: jnp.linalg.slogdet(x).logabsdet, X),
    "inv": (lambda x: jnp.linalg.inv(x).sum(), POSITIVE),
    "solve": (lambda x: jnp.linalg.solve(x, X[0]).sum(), POSITIVE),
    "cholesky": (lambda x: jnp.linalg.cholesky(x).sum(), POSITIVE),
    "eigvalsh": (lambda x: jnp.sin(jnp.linalg.eigvalsh(x)).sum(), POSITIVE),
    "svdvals": (lambda x: jnp.sin(jnp.linalg.svdvals(x)).sum(), X),
    "pinv": (lambda x: jnp.sin(jnp.linalg.pinv(x)).sum(), X[:, :2]),
    "qr": (lambda x: jnp.sin(jnp.linalg.qr(x).R).sum(), X),
    "norm": (lambda x: jnp.linalg.norm(x, axis=1).sum(), X),
    "norm 3": (lambda x: jnp.linalg.norm(x, 3, axis=1).sum(), X),
    "matrix_power": (lambda x: jnp.linalg.matrix_power(x, 3).sum(), X),
    "einsum": (lambda x: jnp.einsum("ij,jk,ki->", x, x, x), X),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)).sum(), X),
    "irfft": (lambda x: jnp.sin(jnp.fft.irfft(x)).sum(), X),
    "quantile": (lambda x: jnp.quantile(x, 0.3), V),
    "median": (lambda x: jnp.sin(jnp.median(x)), V),
    "nanvar": (lambda x: jnp.nanvar(x), V),
    "cov": (lambda x: jnp.sin(jnp.cov(x)).sum(), X),
    "interp": (lambda x: jnp.interp(x, V, V**2).sum(), np.array([0.7, 1.5], np.float32)),
    "sinc": (lambda x: jnp.sinc(x).sum(), V),
    "i0": (lambda x: jnp.i0(x).sum(), V),
    "logaddexp": (lambda x: jnp.logaddexp(x, x[::-1] * 2).sum(), V),
    "hypot": (lambda x: jnp.hypot(x, 2.0).sum(), V),
    "ldexp": (lambda x: jnp.ldexp(x, 3).sum(), V),
    "frexp": (lambda x: jnp.frexp(x)[0].sum(), V * np.float32(1.1)),
    "pad": (lambda x: jnp.sin(jnp.pad(x, 2, mode="reflect")).sum(), V),
    "cumprod": (lambda x: jnp.cumprod(x).sum(), V),
    "convolve": (lambda x: jnp.sin(jnp.convolve(x, x)).sum(), V),
    "polyval": (lambda x: jnp.polyval(x, x).sum(), V),
    "gradient": (lambda x: jnp.sin(jnp.gradient(x)).sum(), V),
    "trapezoid": (lambda x: jnp.trapezoid(x**2, x), V),
    "diag": (lambda x: jnp.sin(jnp.diag(x)).sum(), V),
    "insert": (lambda x: jnp.sin(jnp.insert(x, 1, x[0])).sum(), V),
    "unwrap": (lambda x: jnp.unwrap(x * 3).sum(), V),
    "unique": (lambda x: jnp.sin(jnp.unique(x, size=5)).sum(), V),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_finite_differences(name):
    f, x = FUNCTIONS[name]
    g = np.asarray(calque.grad(f)(x))
    direction = values(x.shape, "float32", 9)
    if name in ("cholesky", "eigvalsh"):
        direction = direction + direction.T
    h = 2e-3
    slope = (float(f(x + h * direction)) - float(f(x - h * direction))) / (2 * h)
    assert np.vdot(g, direction) == pytest.approx(slope, rel=2e-2, abs=2e-2)


@pytest.mark.parametrize(
    "f, x, want",
    [
        (jnp.linalg.norm, np.zeros(3, np.float32), np.zeros(3)),
        (
            lambda x: jnp.linalg.norm(x, axis=0).sum(),
            np.zeros((2, 2), np.float32),
            np.zeros((2, 2)),
        ),
        (lambda x: jnp.linalg.norm(x, 3), np.zeros(3, np.float32), np.zeros(3)),
        (lambda x: jnp.hypot(x[0], x[1]), np.zeros(2, np.float32), np.zeros(2)),
        (lambda x: jnp.sinc(x).sum(), np.zeros(2, np.float32), np.zeros(2)),
        (lambda x: jnp.logaddexp(x[0], x[1]), np.zeros(2, np.float32), [0.5, 0.5]),
        (lambda x: jnp.logaddexp(x[0], x[1]), np.array([0, -np.inf], np.float32), [1, 0]),
        (lambda x: jnp.i0(x).sum(), np.zeros(1, np.float32), [0]),
        (lambda x: jnp.nanmean(x), np.array([1, np.nan], np.float32), [1, 0]),
        (jnp.linalg.det, np.diag([1.0, 2.0, 3.0, 0.0]).astype(np.float32), np.diag([0.0, 0, 0, 6])),
        (jnp.linalg.det, np.zeros((4, 4), np.float32), np.zeros((4, 4))),
    ],
)
def test_where_naive_derivatives_would_be_nan(f, x, want):
    np.testing.assert_allclose(calque.grad(f)(x), want, atol=1e-5)


def test_second_derivatives():
    assert float(calque.grad(calque.grad(jnp.sinc))(0.0)) == pytest.approx(
        -(np.pi**2) / 3, rel=1e-5
    )
    hessian = calque.jvp(calque.grad(jnp.linalg.det), (POSITIVE,), (np.eye(3, dtype=np.float32),))[
        1
    ]
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches(name):
    f, x = FUNCTIONS[name]
    batch = np.stack([x, x * np.float32(1.1), x * np.float32(0.9)])
    want = np.stack([np.asarray(f(b)) for b in batch])
    np.testing.assert_allclose(calque.vmap(f)(batch), want, rtol=2e-3, atol=2e-4)
