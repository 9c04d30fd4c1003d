import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.jacobian import hessian, jacfwd, jacobian, jacrev
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8], np.float32)
W = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("jac", [jacfwd, jacrev, jacobian, lambda *a, **k: jit(jacrev(*a, **k))])
def test_jacobians(jac):
    close(jac(lambda x: W @ jnp.sin(x))(X), W * np.cos(X), 1e-6)
    close(jac(lambda x, y: {"o": x * y}, argnums=(0, 1))(X, X), {"o": (np.diag(X), np.diag(X))})
    close(
        jac(lambda p: (p["a"] * 2, p["b"].sum()))({"a": X, "b": W}),
        (
            {"a": 2 * np.eye(3, dtype="f"), "b": np.zeros((3, 2, 3), "f")},
            {"a": np.zeros(3, "f"), "b": np.ones((2, 3), "f")},
        ),
    )
    close(jac(lambda x: x * x)(2.0), 4.0)


def test_aux():
    j, aux = jacfwd(lambda x: (x * x, 3.0), has_aux=True)(X)
    close((j, aux), (np.diag(2 * X), 3.0))
    j, aux = jacrev(lambda x: (x * x, x), has_aux=True)(X)
    close((j, aux), (np.diag(2 * X), X))


def test_hessian():
    close(hessian(lambda x: (x**3).sum())(X), np.diag(6 * X), 1e-5)
    close(
        jit(hessian(lambda x: jnp.sin(x).prod()))(X),
        jacrev(jacfwd(lambda x: jnp.sin(x).prod()))(X),
        1e-5,
    )


def test_complex():
    z = np.array([1 + 1j, 2 - 1j], np.complex64)
    for jac in (jacfwd, jacrev):
        close(jac(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: jacfwd(lambda x: x)(3), "got int32"),
        (lambda: jacrev(lambda x: x)(3), "got int32"),
        (lambda: jacfwd(lambda x: x, holomorphic=True)(1.0), "complex dtype"),
        (lambda: jacrev(lambda x: x * 1j)(1.0), "real-valued outputs"),
        (lambda: jacfwd(lambda x: x, argnums=3)(1.0), "at least 4 positional"),
    ],
)
def test_bad_arguments(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize("transform", [jacfwd, jacrev])
def test_derivatives_at_python_numbers_are_weakly_typed(transform):
    assert transform(lambda x: x)(1.0).weak_type
    assert not transform(lambda x: x)(np.float32(1)).weak_type
