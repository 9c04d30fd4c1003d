"""minimize against SciPy and JAX."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy.optimize import OptimizeResults, minimize
from tests.peers import jax

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
METHODS = ["BFGS", LIMITED]


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _himmelblau(p: Any) -> Any:
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def _quadratic(x: Any) -> Any:
    return ((x - np.arange(3, dtype=np.float32)) ** 2 * np.array([1, 10, 0.1], np.float32)).sum()


PROBLEMS: list[tuple[Callable[[Any], Any], list[float], list[float]]] = [
    (_rosenbrock, [-1.2, 1.0], [1, 1]),
    (_himmelblau, [1.0, 1.0], [3, 2]),
    (_quadratic, [5.0, -3.0, 1.0], [0, 1, 2]),
]


@pytest.fixture
def x64() -> Any:
    calque.config.update("calque_enable_x64", True)
    yield
    calque.config.update("calque_enable_x64", False)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p[0].__name__)
def test_finds_the_minimum(problem: Any, method: str, x64: Any) -> None:
    f, start, want = problem
    got = minimize(
        f,
        np.array(start),
        method=method,
        options={"gtol": 1e-7, **({"ftol": 0} if method == LIMITED else {})},
    )
    np.testing.assert_allclose(got.x, want, atol=1e-5)
    assert got.x.dtype == np.float64
    assert float(got.fun) == pytest.approx(float(f(np.asarray(got.x))), abs=1e-12)
    if method == "BFGS":
        assert bool(got.success) and int(got.status) == 0
        exact = np.linalg.inv(np.asarray(calque.hessian(f)(got.x)))
        np.testing.assert_allclose(got.hess_inv, exact, rtol=0.1, atol=0.1)


@pytest.mark.peer
@pytest.mark.parametrize("method", METHODS)
def test_takes_the_steps_that_jax_takes(method: str) -> None:
    """The first ones, before rounding tells; from there calque goes on where JAX's line search
    gives up on a reversed interval."""
    jax()
    peer = importlib.import_module("jax.scipy.optimize")
    for f, start, _ in PROBLEMS[:1]:
        x0 = np.array(start, np.float32)
        got = minimize(f, x0, method=method, options={"maxiter": 4})
        want = peer.minimize(f, jax().numpy.asarray(x0), method=method, options={"maxiter": 4})
        np.testing.assert_allclose(got.x, want.x, rtol=2e-3, atol=2e-3)
        for name in ("status", "success", "nfev", "njev", "nit"):
            assert int(getattr(got, name)) == int(getattr(want, name)), name


def test_under_transformations() -> None:
    def solve(shift: Any) -> Any:
        return minimize(lambda x, s: jnp.sum((x - s) ** 2), jnp.zeros(2), (shift,), method="BFGS").x

    shifts = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    np.testing.assert_allclose(calque.jit(solve)(shifts[0]), shifts[0], atol=1e-4)
    np.testing.assert_allclose(calque.vmap(solve)(shifts), shifts, atol=1e-4)


def test_complex_variables() -> None:
    target = jnp.array([1 + 2j, -1j])
    got = minimize(
        lambda z: jnp.sum(jnp.abs(z - target) ** 2), jnp.zeros(2, complex), method=LIMITED
    )
    np.testing.assert_allclose(got.x, target, atol=1e-3)


def test_ends() -> None:
    assert isinstance(minimize(_quadratic, jnp.arange(3.0), method="bfgs"), OptimizeResults)
    at_once = minimize(_quadratic, jnp.arange(3.0), method="BFGS")
    assert bool(at_once.success) and int(at_once.nit) == 0 and int(at_once.nfev) == 1
    loose = minimize(_rosenbrock, jnp.array([-1.2, 1.0]), method="BFGS", tol=1e3)
    assert int(loose.nit) == 0 and bool(loose.success)
    assert (
        int(minimize(lambda x: x.sum(), jnp.zeros(2), method="BFGS", options={"maxiter": 2}).status)
        != 0
    )


def test_bad_arguments() -> None:
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: minimize(_quadratic, jnp.zeros(3), 1, method="BFGS"), TypeError, "tuple"),
        (
            lambda: minimize(_quadratic, jnp.zeros(3), method="Nelder-Mead"),
            ValueError,
            "Nelder-Mead",
        ),
        (lambda: minimize(_quadratic, jnp.zeros((3, 1)), method="BFGS"), TypeError, "vector"),
        (lambda: minimize(_quadratic, jnp.zeros(3, complex), method="BFGS"), TypeError, "real"),
        (
            lambda: minimize(_quadratic, jnp.zeros(3), method="BFGS", options={"steps": 1}),
            TypeError,
            "steps",
        ),
        (lambda: minimize(lambda x: x, jnp.zeros(3), method="BFGS"), TypeError, "scalar"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
