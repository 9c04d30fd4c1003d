"""Sizes that the program finds, under transformations and in control flow; questions that nobody
can answer."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax

X = np.random.RandomState(0).randn(50).astype(np.float32)


def total(x):
    return (x[x < 0] ** 2).sum()


SLOPE = np.where(X < 0, 2 * X, 0)


def test_derivatives():
    for f in (
        jax.jit(jax.grad(total)),
        jax.grad(jax.jit(total)),
        jax.jit(jax.grad(jax.checkpoint(total))),
    ):
        np.testing.assert_allclose(f(X), SLOPE, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.hessian(total))(X), np.diag(np.where(X < 0, 2.0, 0)))
    out, tangent = jax.jit(lambda x: jax.jvp(total, (x,), (x,)))(X)
    np.testing.assert_allclose(tangent, 2 * out, rtol=1e-5)
    value, back = jax.jit(jax.value_and_grad(lambda x, n: x[:n].sum()))(X, 3)
    np.testing.assert_allclose(value, X[:3].sum(), rtol=1e-6)
    np.testing.assert_array_equal(back, np.arange(50) < 3)


def test_calls_inside():
    part = jax.jit(lambda x: x[x < 0])
    f = jax.jit(lambda x: (part(x), part(x + 1), part(x).sum()))
    for got, want in zip(f(X), (X[X < 0], (X + 1)[X + 1 < 0], X[X < 0].sum())):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_vmap():
    rows = jax.jit(lambda x: jax.vmap(lambda a: (a * x[x < 0]).sum())(jnp.arange(3.0)))
    np.testing.assert_allclose(rows(X), np.arange(3.0) * X[X < 0].sum(), rtol=1e-5)
    for f in (jax.jit(jax.vmap(total)), jax.vmap(total), jax.vmap(jax.jit(total))):
        with pytest.raises(jax.errors.NonConcreteBooleanIndexError, match="size="):
            f(X.reshape(5, 10))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="size="):
        jax.jit(jax.vmap(jnp.nonzero))(X.reshape(5, 10))


def below(x, t):
    return x[x < t].sum()


def test_loops():
    limits = np.arange(-2.0, 2.0, 0.5, dtype=np.float32)
    sums = np.array([X[t > X].sum() for t in limits])
    last, ys = jax.jit(
        lambda x: lax.scan(lambda c, t: (c + below(x, t), below(x, t)), 0.0, limits)
    )(X)
    np.testing.assert_allclose(ys, sums, rtol=1e-5)
    np.testing.assert_allclose(last, sums.sum(), rtol=1e-5)
    f = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c + below(x, i), 0.0))
    for n in (0, 1, 3):
        np.testing.assert_allclose(f(X, n), sum(X[i > X].sum() for i in range(n)), rtol=1e-5)
    w = jax.jit(
        lambda x: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + below(x, s[0])), (0, 0.0)
        )
    )
    np.testing.assert_allclose(w(X)[1], f(X, 3), rtol=1e-6)


def test_carries_of_found_size():
    f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: 2 * c, x[x < 0]))
    np.testing.assert_allclose(f(X), 8 * X[X < 0])
    h = jax.jit(
        lambda x, y: lax.while_loop(
            lambda c: c[0].sum() > y, lambda c: (c[1], c[0]), (lambda n: (n, 2 * n))(x[x < 0])
        )
    )
    a, b = h(X, X[X < 0].sum() * 1.5)
    np.testing.assert_allclose(b, X[X < 0])
    np.testing.assert_allclose(a, 2 * X[X < 0])


def test_branches():
    def f(x, p):
        return lax.cond(p, lambda: x[x < 0].sum(), lambda: (x[x > 0] ** 2).sum())

    for p, want in ((True, X[X < 0].sum()), (False, (X[X > 0] ** 2).sum())):
        np.testing.assert_allclose(jax.jit(f)(X, p), want, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X, False), np.where(X > 0, 2 * X, 0), rtol=1e-6)


def test_free_and_found_sizes():
    traces = []

    @jax.jit
    def f(x):
        traces.append(x.shape)
        return x[x < 0], x[x < 0].sum(), x[: x.shape[0] // 2][x[: x.shape[0] // 2] > 0]

    for n in (50, 40, 30, 20, 7):
        for got, want in zip(
            f(X[:n]), (X[:n][X[:n] < 0], X[:n][X[:n] < 0].sum(), X[: n // 2][X[: n // 2] > 0])
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5)
    assert len(traces) == 2
    assert f(X[:0])[0].shape == (0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x[x < 0].shape[0] == 0 else -x,
        lambda x: x if x[x < 0].shape[0] > 3 else -x,
        lambda x: x if x[x < 0].size else -x,
        lambda x: sum(range(x[x < 0].shape[0])),
        lambda x: jnp.ones(int(x[x < 0].shape[0])),
        lambda x: np.zeros(x[x < 0].shape),
        lambda x: list(x[x < 0]),
        lambda x: float(x[x < 0].shape[0]),
        lambda x: lax.top_k(x[x < 0], 2),
    ],
    ids=["equal", "more", "any", "range", "int", "numpy", "list", "float", "top_k"],
)
def test_questions_that_only_the_running_program_can_answer(f):
    with pytest.raises(
        jax.errors.ConcretizationTypeError, match=r"x\[mask\] at .*test_found_sizes.py:\d+"
    ) as e:
        jax.jit(f)(X)
    assert "size=" in str(e.value)


def test_programs_are_shown_and_run_otherwise():
    def f(x):
        return jnp.sqrt(x[x > 0])

    closed = jax.make_jaxpr(f)(X)
    assert "let_size[size=n]" in str(closed) and "f32[n]" in str(closed)
    (out,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, X)
    np.testing.assert_allclose(out, np.sqrt(X[X > 0]), rtol=1e-6)
    assert str(jax.eval_shape(f, X).shape) == "(n,)"
    compiled = jax.jit(f).lower(X).compile()
    np.testing.assert_allclose(compiled(X), np.sqrt(X[X > 0]), rtol=1e-6)
    assert "alloc" in compiled.as_text("driver") and compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().argument_size_in_bytes == 200
    assert "let_size" in str(jax.explain(jax.jit(f), X))
    with jax.disable_jit():
        np.testing.assert_allclose(jax.jit(f)(X), np.sqrt(X[X > 0]), rtol=1e-6)


def test_nan_checks_and_donation():
    with (
        jax.debug_nans(True),
        pytest.raises(FloatingPointError, match=r"log at .*test_found_sizes"),
    ):
        jax.jit(lambda x: jnp.log(x[x < 0]))(X)
    x = jnp.array(X)
    with pytest.warns(UserWarning, match="not usable"):
        out = jax.jit(lambda x: x[x < 0] * 2, donate_argnums=0)(x)
    np.testing.assert_allclose(out, 2 * X[X < 0])
    f = jax.jit(lambda x, y: (x + 1, y[y < 0] * 2), donate_argnums=0)
    out, part = f(x, X)
    assert x.is_deleted()
    np.testing.assert_allclose(out, X + 1)
    np.testing.assert_allclose(part, 2 * X[X < 0])


def test_results_own_their_memory():
    f = jax.jit(lambda x: (x[x < 0], x[x < 0][::-1]))
    kept = [f(X) for _ in range(5)]
    for a, b in kept:
        np.testing.assert_array_equal(a, X[X < 0])
        np.testing.assert_array_equal(b, X[X < 0][::-1])


@pytest.mark.parametrize("wide", [False, True])
def test_products_of_any_number_of_rows(wide):
    rng = np.random.RandomState(0)
    with jax.enable_x64(wide):
        a, b = (rng.randn(300, n).astype(np.float64 if wide else np.float32) for n in (40, 70))
        f = jax.jit(
            lambda a, b, m: (
                a[m].T @ b[m],
                a[m] @ a.T,
                a[m] @ a[m].T,
                a[m][:, 0] @ b[m],
                a[m] @ a[0],
            )
        )
        for k in (0, 1, 2, 9, 17, 65, 299, 300):
            m = np.zeros(300, bool)
            m[rng.permutation(300)[:k]] = True
            want = (a[m].T @ b[m], a[m] @ a.T, a[m] @ a[m].T, a[m][:, 0] @ b[m], a[m] @ a[0])
            for x, y in zip(f(a, b, m), want):
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


def test_convolutions_of_found_sizes():
    x, kernel = X.reshape(1, 50), np.array([0.5, 1.0, -2.0], np.float32)

    def conv(y):
        return lax.conv_general_dilated(y[None], kernel[None, None], (1,), "SAME")

    f = jax.jit(lambda x, m: conv(x[:, m]))
    for p in (1.0, 0.4, 0.02):
        m = np.arange(50) < 50 * p
        np.testing.assert_allclose(f(x, m), conv(x[:, m]), rtol=1e-5)


def test_random_masks_of_many_sizes():
    rng = np.random.RandomState(1)
    f = jax.jit(
        lambda x, m: (x[m], jnp.cumsum(x[m]), x[m].sum(), (x[m][:, None] * jnp.arange(3.0)).sum(0))
    )
    for n in (1, 2, 15, 16, 17, 63, 64, 65, 1000, 20_000, 70_000):
        x = rng.rand(n).astype(np.float32)
        for p in (0.0, 0.02, 0.5, 1.0):
            m = rng.rand(n) < p
            got = f(x, m)
            np.testing.assert_array_equal(got[0], x[m])
            np.testing.assert_allclose(got[1], np.cumsum(x[m].astype(float)), rtol=1e-4)
            np.testing.assert_allclose(got[2], x[m].astype(float).sum(), rtol=1e-5)
            np.testing.assert_allclose(got[3], x[m].astype(float).sum() * np.arange(3.0), rtol=1e-5)
