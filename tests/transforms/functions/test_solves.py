import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.loops import while_loop
from calque.transforms.functions.solves import custom_linear_solve, custom_root
from tests.transforms.programs import check, close, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
B = np.array([1.0, -2.0])


def scalar_solve(f, y):
    return y / f(jnp.ones_like(y))


def newton(f, x):
    def step(c):
        x, _ = c
        value, slope = jvp(f, (x,), (jnp.ones_like(x),))
        return x - value / slope, c[1] + 1

    return while_loop(lambda c: c[1] < 40, step, (x, 0))[0]


def test_root():
    def sqrt(a):
        return custom_root(lambda x: x * x - a, 1.0, newton, scalar_solve)

    close(sqrt(2.0), np.float32(np.sqrt(2)), 1e-6)
    check(
        lambda a: custom_root(lambda x: x * x - jnp.sin(a), jnp.ones_like(a), newton, scalar_solve),
        0.7,
    )


def test_root_with_aux():
    def solve(f, x):
        return newton(f, x), {"steps": 40}

    x, aux = custom_root(lambda x: x - 3.0, 1.0, solve, scalar_solve, has_aux=True)
    close((x, aux), (3.0, {"steps": np.int32(40)}))


def inverse(m):
    (a, b), (c, d) = (m[0, 0], m[0, 1]), (m[1, 0], m[1, 1])
    return jnp.stack([jnp.stack([d, -b]), jnp.stack([-c, a])]) / (a * d - b * c)


def matrix_of(f, like):
    return jnp.stack([f(jnp.array(e, like.dtype)) for e in ([1, 0], [0, 1])], axis=1)


def dense(f, y):
    return inverse(matrix_of(f, y)) @ y


def test_linear_solve_is_differentiated_by_the_theorem():
    m = np.array([[2.0, 0.3], [-0.4, 1.5]])

    def f(m, b):
        return custom_linear_solve(lambda x: m @ x, b, dense, dense)

    check(f, m, B)
    check(
        lambda d, b: custom_linear_solve(lambda x: d * x, b, dense, symmetric=True),
        np.array([2.0, 3.0]),
        B,
    )


def test_linear_solve_with_aux():
    def solve(f, y):
        return (dense(f, y), 7)

    x, aux = custom_linear_solve(
        lambda x: 2.0 * x, jnp.array(B, np.float32), solve, solve, has_aux=True
    )
    close((x, aux), (B.astype("f") / 2, np.int32(7)))


def test_bad_arguments():
    b = jnp.array(B, np.float32)
    with pytest.raises(TypeError, match="transpose_solve required"):
        grad(lambda b: custom_linear_solve(lambda x: 2.0 * x, b, dense).sum())(b)
    with pytest.raises(ValueError, match=r"matvec\(\) output"):
        custom_linear_solve(lambda x: x[:1], b, dense)
    with pytest.raises(ValueError, match=r"solve\(\) output shapes and dtypes must match"):
        custom_linear_solve(lambda x: 2.0 * x, b, lambda f, y: y[:1])
    with pytest.raises(TypeError, match=r"f\(\) output"):
        custom_root(lambda x: (x, x), 1.0, newton, scalar_solve)


def test_a_solver_that_captures_what_is_differentiated():
    import calque

    def f(x):
        return custom_root(
            lambda y: y * y - x, 1.0, lambda _, __: jnp.sqrt(x), lambda g, y: y / g(1.0)
        )

    xs = np.array([0.7, 1.0], np.float32)
    for run in (
        calque.vmap(calque.grad(f)),
        calque.jit(calque.vmap(calque.grad(f))),
        calque.vmap(calque.jacfwd(f)),
    ):
        np.testing.assert_allclose(run(xs), 0.5 / np.sqrt(xs), rtol=1e-6)
    np.testing.assert_allclose(calque.vmap(f)(xs), np.sqrt(xs), rtol=1e-6)
    np.testing.assert_allclose(calque.grad(calque.grad(f))(0.7), -0.25 * 0.7**-1.5, rtol=1e-5)


def test_solvers_of_tangents_are_looked_at_at_once():
    def wrong(g, y):
        raise LookupError("never written")

    with pytest.raises(LookupError, match="never written"):
        lax.custom_root(lambda x: x - 1.0, 0.0, lambda f, x: 1.0, wrong)


def test_both_solvers_of_a_root_may_capture_what_is_differentiated():
    """Tracers that the solver of tangents holds have ended when reverse mode runs it."""

    def f(a, b):
        inverse = jnp.linalg.inv(a)
        return custom_root(
            lambda x: a @ x - b,
            b,
            lambda g, y: (inverse @ b, {"steps": 1}),
            lambda g, y: inverse @ y,
            has_aux=True,
        )[0]

    a, b = np.float32([[3, 1], [1, 2]]), np.float32([1, 4])
    for mode in (calque.jacrev, calque.jacfwd, lambda *a, **k: calque.jit(calque.jacrev(*a, **k))):
        found = mode(f, argnums=(0, 1))(a, b)
        wanted = calque.jacrev(jnp.linalg.solve, argnums=(0, 1))(a, b)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
    second = calque.jacfwd(calque.jacrev(lambda b: (f(a, b) ** 2).sum()))(b)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(second, 2 * inverse.T @ inverse, rtol=1e-4)


def test_what_solvers_of_roots_return_is_checked():
    def root(solve, tangent_solve, **more):
        return custom_root(lambda x: x - 2.0, 0.0, solve, tangent_solve, **more)

    with pytest.raises(TypeError, match=r"^solve\(\) output pytree structure"):
        root(lambda g, x: (x, x), scalar_solve)
    with pytest.raises(TypeError, match=r"tangent_solve\(\) output pytree structure"):
        root(lambda g, x: x, lambda g, y: (y, y))
    with pytest.raises(TypeError, match=r"solve\(\) with has_aux=True must return a pair"):
        root(lambda g, x: x, scalar_solve, has_aux=True)
    with pytest.raises(TypeError, match=r"transpose_solve\(\) output pytree structure"):
        custom_linear_solve(lambda x: x, 1.0, lambda g, y: y, lambda g, y: (y, y))
