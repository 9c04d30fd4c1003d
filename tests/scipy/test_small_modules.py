"""scipy.integrate and scipy.cluster.vq; the package imports its modules when they are asked for."""

import subprocess
import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy import integrate
from calque.scipy.cluster import vq
from tests.numpy.expressions import lines
from tests.scipy.expressions import check_jax, check_scipy

_rng = np.random.default_rng(0)
DATA = {
    "Y": _rng.normal(size=(3, 4)).astype(np.float32), "B": _rng.normal(size=(5,
    4)).astype(np.float32), "I": np.array([0, 1, 3, 7]),
    "H": np.array([1, 2, 3, 4], np.float16), "T": _rng.normal(size=(2, 3, 4)).astype(np.float32),
}  # fmt: skip

INTEGRALS = lines("""
m.trapezoid(Y)
m.trapezoid(Y,I)
m.trapezoid(Y,dx=0.5,axis=0)
m.trapezoid(I)
m.trapezoid(Y,x=I[None,:])
""")
CODES = lines("""
m.vq(Y,B)
m.vq(I,I[1:])
m.vq(Y[0],B[0],False)
""")


@pytest.mark.parametrize("case", INTEGRALS)
def test_integrals(case: str) -> None:
    check_scipy(case, "integrate", DATA)


@pytest.mark.parametrize("case", CODES)
def test_codes(case: str) -> None:
    check_scipy(case, "cluster.vq", DATA)


@pytest.mark.peer
@pytest.mark.parametrize(
    "case", [*INTEGRALS, "m.trapezoid(H)", "m.trapezoid(Y,axis=3)", "m.trapezoid([1.,2.])"]
)
def test_types_of_integrals(case: str) -> None:
    check_jax(case, "integrate", DATA)


@pytest.mark.peer
@pytest.mark.parametrize(
    "case",
    [
        *CODES,
        "m.vq(Y,I)",
        "m.vq(T,T)",
        "m.vq(Y,Y[:,:2])",
        "m.vq(H,I)",
        "m.vq([1.],I)",
        "m.vq(Y,B[:0])",
    ],
)
def test_types_of_codes(case: str) -> None:
    check_jax(case, "cluster.vq", DATA)


def test_derivatives_of_distances() -> None:
    slope = calque.grad(lambda x: vq.vq(x, jnp.asarray(DATA["B"]))[1].sum())(jnp.asarray(DATA["Y"]))
    np.testing.assert_allclose(np.linalg.norm(slope, axis=1), np.ones(3), rtol=1e-5)
    assert float(calque.grad(lambda dx: integrate.trapezoid(jnp.ones(4), dx=dx))(0.5)) == 3


def test_modules_are_imported_when_asked_for() -> None:
    code = (
        "import sys, calque; loaded = [m for m in sys.modules if m.startswith('calque.scipy.')];"
        " import calque.scipy as s; print(loaded, s.fft.__name__, s.sparse.linalg.__name__)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.split() == ["[]", "calque.scipy.fft", "calque.scipy.sparse.linalg"]
