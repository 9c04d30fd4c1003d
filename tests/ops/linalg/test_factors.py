"""Triangular systems, Cholesky, LU, symmetric products: definitions, rules, JAX."""

import itertools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.ops.linalg import factors as A
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_fun_jvp,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)

DTYPES = [("float32", 1e-4), ("float64", 1e-10), ("complex64", 1e-4), ("complex128", 1e-10)]


def well(dtype, *shape, seed=0):
    """Matrices with a strong diagonal."""
    x = values(dtype, shape, seed=seed)
    return x + (4 * np.eye(*shape[-2:])).astype(dtype)


def definite(dtype, *shape, seed=0):
    x = values(dtype, shape, seed=seed)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(shape[-1])).astype(dtype)


FLAGS = [
    dict(zip(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), f))
    for f in itertools.product([True, False], repeat=5)
]


def dense_triangle(a, p):
    t = np.tril(a) if p["lower"] else np.triu(a)
    if p["unit_diagonal"]:
        n = a.shape[-1]
        t = t * (1 - np.eye(n)) + np.eye(n)
    t = np.swapaxes(t, -1, -2) if p["transpose_a"] else t
    return np.conj(t) if p["conjugate_a"] else t


@pytest.mark.parametrize("p", FLAGS, ids=lambda p: "".join(str(int(v)) for v in p.values()))
def test_triangular_solve(p):
    for dtype, tol in DTYPES:
        a = well(dtype, 2, 3, 3) / 3
        b = values(dtype, (2, 3, 4) if p["left_side"] else (2, 4, 3), seed=1)

        def expected(a, b):
            t = dense_triangle(a.astype("complex128"), p)
            if p["left_side"]:
                return (
                    np.linalg.solve(t, b).astype(b.dtype)
                    if b.dtype.kind == "c"
                    else np.linalg.solve(t, b).real.astype(b.dtype)
                )
            x = np.swapaxes(np.linalg.solve(np.swapaxes(t, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
            return x.astype(b.dtype) if b.dtype.kind == "c" else x.real.astype(b.dtype)

        check_meaning(A.triangular_solve_p, expected, a, b, rtol=tol, atol=tol, **p)
    check_transpose(A.triangular_solve_p, a[0], b[0], linear=(1,), **p)
    check_jvp(A.triangular_solve_p, a[0], b[0], order=2, rtol=1e-5, **p)


def test_triangular_edges():
    p = FLAGS[0]
    a, b = well("float32", 3, 3), values("float32", (3, 2))
    check_batch(A.triangular_solve_p, a, b, rtol=1e-4, atol=1e-4, **p)
    same(run(lambda a, b: A.triangular_solve_p.bind(a, b, **p), a[:0, :0], b[:0])[0], b[:0])
    vector = run(lambda a, b: A.triangular_solve(a, b, left_side=True, lower=True), a, b[:, 0])[0]
    same(np.tril(a) @ vector, b[:, 0], rtol=1e-4, atol=1e-4)
    vector = run(lambda a, b: A.triangular_solve(a, b, lower=True), a, b[:, 0])[0]
    same(vector @ np.tril(a), b[:, 0], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="do not fit"):
        run(lambda a, b: A.triangular_solve(a, b), a, b)
    with pytest.raises(ValueError, match="square"):
        run(lambda a, b: A.triangular_solve(a, b), b, b)
    with pytest.raises(TypeError, match="float32, float64"):
        run(lambda a, b: A.triangular_solve(a, b), a.astype("int32"), b.astype("int32"))


# ---------------------------------------------------------------- cholesky


@pytest.mark.parametrize(("dtype", "tol"), DTYPES)
def test_cholesky(dtype, tol):
    x = definite(dtype, 2, 4, 4)
    check_meaning(A.cholesky_p, np.linalg.cholesky, x, rtol=tol, atol=tol)
    odd = x + np.triu(values(dtype, (4, 4)), 1)  # only the lower triangle counts
    check_meaning(A.cholesky_p, np.linalg.cholesky, odd, rtol=tol, atol=tol)
    check_batch(A.cholesky_p, x[0], only=[(0,)], size=1, rtol=tol)
    if dtype.endswith(("64", "128")) and dtype != "complex64":
        check_jvp(A.cholesky_p, odd[0], order=2, rtol=1e-5)


def test_cholesky_failures():
    x = np.stack([np.eye(2), -np.eye(2), np.full((2, 2), np.nan)]).astype("float32")
    (out,) = run(A.cholesky_p.bind, x)
    same(out[0], np.eye(2, dtype="float32"))
    for bad in out[1:]:
        same(bad, np.array([[np.nan, 0], [np.nan, np.nan]], "float32"))
    same(run(A.cholesky, x[:0])[0], x[:0])
    with pytest.raises(ValueError, match="square"):
        run(A.cholesky, np.ones((2, 3), "float32"))


def test_cholesky_update():
    r, w = np.linalg.cholesky(definite("float64", 3, 3)).T.copy(), values("float64", (3,))
    (out,) = run(A.cholesky_update_p.bind, r.astype("float32"), w.astype("float32"))
    np.testing.assert_allclose(out.T @ out, r.T @ r + np.outer(w, w), rtol=1e-4)
    check_jvp(A.cholesky_update_p, r, w, order=2, rtol=1e-5)
    check_batch(
        A.cholesky_update_p, r.astype("float32"), w.astype("float32"), only=[(None, 0)], rtol=1e-5
    )


# ---------------------------------------------------------------- lu


@pytest.mark.parametrize("shape", [(2, 3, 3), (4, 2), (2, 4), (1, 1), (0, 2), (2, 0)])
def test_lu(shape):
    for dtype, tol in DTYPES:
        x = values(dtype, shape)
        lu, pivots, order = run(A.lu_p.bind, x)
        m, n = shape[-2:]
        k = min(m, n)
        lower, upper = np.tril(lu[..., :, :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])
        permuted = np.take_along_axis(x, order[..., None], axis=-2)
        np.testing.assert_allclose(lower @ upper, permuted, rtol=tol, atol=tol)
        assert lu.dtype == x.dtype and pivots.dtype == order.dtype == np.int32
        assert pivots.shape == (*shape[:-2], k) and order.shape == (*shape[:-2], m)
        perm = run(lambda p: A.lu_pivots_to_permutation(p, m), pivots)[0]
        same(perm, order)
    x = values("float64", shape)
    check_jvp(A.lu_p, x, order=2, rtol=1e-5)
    check_jvp(A.lu_p, values("complex128", shape), order=1, rtol=1e-5)
    check_batch(A.lu_p, x.astype("float32"), rtol=1e-5)


def test_permutations():
    pivots = np.array([[1, 1], [0, 2]], "int32")
    same(
        run(lambda p: A.lu_pivots_to_permutation(p, 3), pivots)[0],
        np.array([[1, 0, 2], [0, 2, 1]], "int32"),
    )
    check_batch(A.lu_pivots_to_permutation_p, pivots, permutation_size=4)
    with pytest.raises(ValueError, match="at most 1"):
        run(lambda p: A.lu_pivots_to_permutation(p, 1), pivots)


def test_symmetric_product():
    a, c = values("float64", (2, 3, 4)), values("float64", (2, 3, 3), seed=1)
    p = {"alpha": 2.0, "beta": -0.5}
    check_meaning(
        A.symmetric_product_p,
        lambda a, c: 2 * a @ np.swapaxes(a, -1, -2) - c / 2,
        a.astype("float32"),
        c.astype("float32"),
        rtol=1e-5,
        atol=1e-5,
        **p,
    )
    check_jvp(A.symmetric_product_p, a[0], c[0], order=2, **p)
    check_batch(
        A.symmetric_product_p,
        a[0].astype("float32"),
        c[0].astype("float32"),
        rtol=1e-5,
        atol=1e-5,
        **p,
    )
    out = run(
        lambda a, c: A.symmetric_product(a, c, symmetrize_output=True, beta=1.0),
        a[0].astype("float32"),
        c[0].astype("float32"),
    )[0]
    same(out, out.T)


def test_gradient_of_solve():
    """Second derivatives through LU, permutation and triangular systems together."""
    from calque.ops.linalg.common import solve

    check_fun_jvp(
        lambda a, b: solve(a, b),
        well("float64", 3, 3),
        values("float64", (3, 2)),
        order=2,
        rtol=1e-5,
    )


@pytest.mark.peer
def test_beside_jax():
    x, b = well("float32", 3, 3), values("float32", (3, 2))
    spd = definite("float32", 3, 3)
    peer.compare(
        [
            (lambda lax, x: linalg(lax).lu(x), x),
            (lambda lax, x: linalg(lax).lu(x), np.stack([x, 2 * x])[:, :2]),
            (lambda lax, x, b: linalg(lax).triangular_solve(x, b, left_side=True), x, b),
            (
                lambda lax, x, b: linalg(lax).triangular_solve(x, b, lower=True, transpose_a=True),
                x,
                b.T.copy(),
            ),
            (lambda lax, p: linalg(lax).lu_pivots_to_permutation(p, 4), np.array([2, 1], "int32")),
            (lambda lax, a, c: linalg(lax).symmetric_product(a, c, alpha=2.0, beta=0.5), x, spd),
        ],
        rtol=1e-4,
        atol=1e-4,
    )
    peer.compare(
        [
            (lambda lax, x: linalg(lax).cholesky(x), spd),
            (lambda lax, x: linalg(lax).cholesky(x), -spd),
            (lambda lax, x: linalg(lax).cholesky(x, symmetrize_input=False), spd),
            (lambda lax, x: linalg(lax).cholesky(x), definite("complex64", 2, 3, 3)),
            (
                lambda lax, r, w: linalg(lax).cholesky_update(r, w),
                np.linalg.cholesky(spd).T.copy(),
                b[:, 0].copy(),
            ),
        ],
        rtol=1e-4,
        atol=1e-4,
        printed=False,
    )


def linalg(lax):
    return lax if lax is peer.ours else lax.linalg


@pytest.mark.peer
@pytest.mark.parametrize("name", ["cholesky", "lu"])
def test_gradients_beside_jax(name):
    jax = pytest.importorskip("jax")
    x = definite("float32", 3, 3)
    t = values("float32", (3, 3), seed=7)
    t = t + t.T

    def first(f):
        return lambda x: f(x)[0] if isinstance(f(x), (tuple, list)) else f(x)

    want = jax.jvp(first(getattr(jax.lax.linalg, name)), (x,), (t,))[1]
    prim = {"cholesky": A.cholesky_p, "lu": A.lu_p}[name]
    got = run(
        lambda x, t: (
            [prim.jvp((x,), (t,))[1]] if name == "cholesky" else [prim.jvp((x,), (t,))[1][0]]
        ),
        x,
        t,
    )[0]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_triangular_systems_of_halves_are_solved_in_float32(dtype):
    a, b = jnp.array([[4, 0], [1, 2]], dtype), jnp.array([[1], [3]], dtype)
    out = A.triangular_solve(a, b, left_side=True, lower=True)
    assert out.dtype == dtype and out.ravel().tolist() == [0.25, 1.375]
    slope = calque.grad(lambda b: A.triangular_solve(a, b, left_side=True, lower=True).sum())(b)
    assert slope.dtype == dtype and slope.ravel().tolist() == [0.125, 0.5]
