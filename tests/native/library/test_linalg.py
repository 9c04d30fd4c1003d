"""Factors, triangular systems and spectra of matrices without Python: what the meanings give, eager
and compiled, by our own loops and by LAPACK."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_numpy
from calque.machine import threads
from calque.machine.routines.linalg import factors as routines
from calque.native.library import linalg
from calque.ops.linalg.factors import (
    cholesky_p,
    lu_p,
    lu_pivots_to_permutation_p,
    triangular_solve_p,
)
from calque.ops.linalg.orthogonal import qr_p
from calque.ops.linalg.spectral import eigh_p, svd_p
from tests.native.programs import compiled, run
from tests.ops.helpers import x64

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
NAMES = [np.dtype(d).name for d in DTYPES]
SIZES = (0, 1, 2, 3, 5, 8, 16, 31, 33, 64)
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 0))
FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def numbers(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(dtype: Any, *shape: int) -> np.ndarray:
    x = numbers(dtype, *shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 5 * np.eye(shape[-1])).astype(dtype)


def triangle(dtype: Any, *shape: int) -> np.ndarray:
    return (numbers(dtype, *shape) / max(shape[-1], 1) + 2 * np.eye(shape[-1])).astype(dtype)


def close(got: Any, want: np.ndarray) -> None:
    got = to_numpy(got)
    assert got.shape == want.shape and got.dtype == want.dtype
    tol = 1e-3 if want.dtype.itemsize // (1 + (want.dtype.kind == "c")) == 4 else 1e-10
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def same_bits(got: Any, want: Any) -> None:
    got, want = np.ascontiguousarray(to_numpy(got)), np.ascontiguousarray(to_numpy(want))
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


# ---------------------------------------------------------------- every type and size


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_cholesky(dtype: Any) -> None:
    with x64():
        for n in SIZES:
            for batch in BATCHES:
                a = positive(dtype, *batch, n, n)
                a[..., np.triu_indices(n, 1)[0], np.triu_indices(n, 1)[1]] = np.nan  # is not read
                close(cholesky_p.bind(jnp.asarray(a)), cholesky_p.meaning(a))


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_lu(dtype: Any) -> None:
    with x64():
        for n in SIZES:
            for batch in BATCHES:
                for m in (n, n + 3, max(n - 2, 0)):
                    x = numbers(dtype, *batch, m, n)
                    for got, want in zip(lu_p.bind(jnp.asarray(x)), lu_p.meaning(x), strict=True):
                        close(got, want)


def test_pivots_to_permutation() -> None:
    rng = np.random.default_rng(0)
    with x64():
        for dtype in (np.int32, np.int64, np.uint8):
            for shape, n in (((5,), 5), ((3, 4), 7), ((0, 2), 3), ((2, 0), 3), ((0,), 0)):
                pivots = rng.integers(0, max(n, 1), shape).astype(dtype)
                got = lu_pivots_to_permutation_p.bind(jnp.asarray(pivots), permutation_size=n)
                same_bits(got, lu_pivots_to_permutation_p.meaning(pivots, permutation_size=n))
    odd = np.array([9, -1, -7, 2], np.int32)  # a row that is not there is left alone
    want = np.array([0, 3, 1, 2], np.int32)
    same_bits(lax.linalg.lu_pivots_to_permutation(jnp.asarray(odd), 4), want)
    same_bits(lu_pivots_to_permutation_p.meaning(odd, permutation_size=4), want)
    a, b = positive(np.float32, 5, 5), numbers(np.float32, 5)

    def solve(a, b):
        return jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b)

    e = compiled(solve, a, b)
    assert not e.host_calls
    close(run(e, a, b)[0], np.linalg.solve(a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_triangular(dtype: Any) -> None:
    with x64():
        for k in range(32):
            p = dict(zip(FLAGS, [bool(k >> i & 1) for i in range(5)], strict=True))
            for n in (0, 1, 3, 8, 33):
                for batch in BATCHES[: 3 if n == 3 else 1]:
                    a = triangle(dtype, *batch, n, n)
                    for m in (0, 1, 5, 65):
                        b = numbers(dtype, *batch, *((n, m) if p["left_side"] else (m, n)))
                        got = triangular_solve_p.bind(jnp.asarray(a), jnp.asarray(b), **p)
                        close(got, triangular_solve_p.meaning(a, b, **p))


def test_only_the_triangle_of_a_triangular_system_is_read() -> None:
    for n in (3, 40):
        a = triangle(np.float32, n, n)
        b = numbers(np.float32, n, 2)
        clean = np.tril(a)
        dirty = np.where(np.tri(n, dtype=bool), a, np.nan).astype(np.float32)

        def solve(a, b=b):
            return lax.linalg.triangular_solve(
                jnp.asarray(a), jnp.asarray(b), left_side=True, lower=True
            )

        same_bits(solve(dirty), solve(clean))
        np.fill_diagonal(dirty, np.nan)
        unit = lax.linalg.triangular_solve(dirty, b, left_side=True, lower=True, unit_diagonal=True)
        assert np.isfinite(to_numpy(unit)).all()


def agrees(primitive: Any, x: np.ndarray, **params: Any) -> None:
    for got, want in zip(
        primitive.bind(jnp.asarray(x), **params), primitive.meaning(x, **params), strict=True
    ):
        close(got, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_qr(dtype: Any) -> None:
    with x64():
        for m, n in ((0, 0), (1, 1), (5, 5), (6, 3), (3, 6), (4, 0), (0, 4), (40, 33)):
            for batch in BATCHES:
                x = numbers(dtype, *batch, m, n)
                for full in (False, True):
                    for pivoting in (False, True):
                        agrees(qr_p, x, pivoting=pivoting, full_matrices=full, use_magma=None)


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_svd(dtype: Any) -> None:
    with x64():
        for m, n in ((0, 0), (1, 1), (5, 5), (6, 3), (3, 6), (4, 0), (0, 4), (40, 33)):
            for batch in BATCHES:
                x = numbers(dtype, *batch, m, n)
                for full in (False, True):
                    for vectors in (False, True):
                        agrees(
                            svd_p,
                            x,
                            full_matrices=full,
                            compute_uv=vectors,
                            subset_by_index=None,
                            algorithm=None,
                        )


EIGH = {"sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
SVD = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": None}


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_eigh(dtype: Any) -> None:
    with x64():
        for n in (0, 1, 2, 5, 33):
            for batch in BATCHES:
                x = numbers(dtype, *batch, n, n)  # one triangle is read
                for lower in (False, True):
                    agrees(eigh_p, x, lower=lower, **EIGH)


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_spectra_of_what_is_no_number(dtype: Any) -> None:
    with x64():
        x = np.stack([numbers(dtype, 5, 5, seed=k) for k in range(3)])
        for value in (np.nan, np.inf):
            x[1, 2, 3] = value
            agrees(eigh_p, x, lower=True, **EIGH)
            agrees(svd_p, x, **SVD)


# ------------------------------------------------------- what is no number, what cannot be factored


@pytest.mark.parametrize("n", [1, 3, 32, 33, 70])
@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_not_positive_definite(dtype: Any, n: int) -> None:
    with x64():
        good = positive(dtype, n, n)
        bad = good.copy()
        bad[n // 2, n // 2] = -1
        nan, inf, edge = good.copy(), good.copy(), good.copy()
        nan[n - 1, n // 2], inf[n // 2, 0], edge[n - 1, n - 1] = np.nan, np.inf, np.inf
        stack = np.stack([good, bad, nan, inf, edge, np.zeros_like(good), good])
        with np.errstate(all="ignore"):
            close(cholesky_p.bind(jnp.asarray(stack)), cholesky_p.meaning(stack))


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_lu_of_what_is_singular_or_no_number(dtype: Any, n: int) -> None:
    with x64():
        zero = np.zeros((n, n), dtype)
        for got, want in zip(lu_p.bind(jnp.asarray(zero)), lu_p.meaning(zero), strict=True):
            close(got, want)
        for value in (np.nan, np.inf):
            x = positive(dtype, n, n)
            x[1, 1] = value
            factors, pivots, order = map(to_numpy, lu_p.bind(jnp.asarray(x)))
            assert not np.isfinite(factors).all()
            assert ((pivots >= 0) & (pivots < n)).all() and sorted(order) == list(range(n))


@pytest.mark.parametrize("n", [3, 40])
def test_triangular_systems_that_are_singular(n: int) -> None:
    a = triangle(np.float32, n, n)
    a[1, 1] = 0
    x = to_numpy(
        lax.linalg.triangular_solve(a, np.ones((n, 1), np.float32), left_side=True, lower=True)
    )
    assert not np.isfinite(x[1]).any()
    assert n > routines.SMALL or np.isfinite(x[0]).all()  # BLAS works on several rows at a time


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_tridiagonal_systems_of_every_size(dtype: Any) -> None:
    """Eager, compiled and with free sizes the bits are the same; complex ones are LAPACK's."""
    f = jax.jit(lax.linalg.tridiagonal_solve)
    for n, columns in ((1, 1), (4, 3), (7, 200), (300, 2)):
        given = [numbers(dtype, n) for _ in range(3)]
        b = numbers(dtype, n, columns)
        got, want = (to_numpy(g(*given, b)) for g in (f, lax.linalg.tridiagonal_solve))
        assert got.tobytes() == want.tobytes()
        lower, main, upper = given
        dense = np.diag(main) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
        close(dense @ got, b)


# ---------------------------------------------------------------- compiled programs


def test_compiled_programs_do_not_call_python() -> None:
    a, b = positive(np.float32, 5, 5), numbers(np.float32, 5, 2)
    for fun in (
        lambda a, b: jnp.linalg.cholesky(a) @ b,
        lambda a, b: jnp.linalg.solve(a, b),
        lambda a, b: [jnp.linalg.det(a), jnp.linalg.inv(a), jnp.linalg.slogdet(a)[1]],
        lambda a, b: list(lax.linalg.lu(a)),
        lambda a, b: [lax.linalg.lu(a)[2]],
        lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b),
        lambda a, b: list(jnp.linalg.qr(b)),
        lambda a, b: [jnp.linalg.qr(b, mode="r"), jnp.linalg.eigvalsh(a), jnp.linalg.svdvals(b)],
        lambda a, b: list(jnp.linalg.eigh(a)),
        lambda a, b: list(jnp.linalg.svd(b)),
        lambda a, b: lax.linalg.tridiagonal_solve(a[0], a[1], a[2], b),
    ):
        e = compiled(fun, a, b)
        assert not e.host_calls
        want = fun(jnp.asarray(a), jnp.asarray(b))
        for got, w in zip(run(e, a, b), want if isinstance(want, list) else [want], strict=True):
            close(got, to_numpy(w))
    assert not jax.explain(jnp.linalg.solve, a, b).host_calls


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_compiled_and_eager_give_the_same_bits(dtype: Any) -> None:
    with x64():
        for n in (4, 40):
            a, b = positive(dtype, 2, n, n), numbers(dtype, 2, n, 3)

            def solve(x, b=b):
                return lax.linalg.triangular_solve(x, b, left_side=True)

            for fun in (
                cholesky_p.bind,
                lu_p.bind,
                solve,
                lax.linalg.qr,
                lax.linalg.eigh,
                lax.linalg.svd,
            ):
                eager = fun(jnp.asarray(a))
                made = jax.jit(fun)(a)
                for g, w in zip(
                    *((x if isinstance(x, (list, tuple)) else [x]) for x in (made, eager)),
                    strict=True,
                ):
                    same_bits(g, w)


def test_in_loops() -> None:
    ys = numbers(np.float32, 20, 2)
    f, h = (
        np.eye(4, dtype=np.float32) + np.eye(4, k=2, dtype=np.float32) / 8,
        np.eye(2, 4, dtype=np.float32),
    )

    def filtered(np_: Any, solve: Any, c: Any, y: Any) -> Any:
        x, p = c
        x, p = f @ x, f @ p @ f.T + np_.eye(4, dtype=np.float32) / 64
        gain = solve(h @ p @ h.T + np_.eye(2, dtype=np.float32) / 8, h @ p).T
        x = x + gain @ (y - h @ x)
        return (x, p - gain @ h @ p), x

    first = np.zeros(4, np.float32), np.eye(4, dtype=np.float32)
    rolled = jax.jit(
        lambda ys: lax.scan(lambda c, y: filtered(jnp, jnp.linalg.solve, c, y), first, ys)[1]
    )
    want, c = [], first
    for y in ys:
        c, x = filtered(np, np.linalg.solve, c, y)
        want.append(x)
    close(rolled(ys), np.stack(want).astype(np.float32))
    assert not jax.explain(rolled, ys).host_calls

    def halves(c):
        return (c[0] + 1, jnp.linalg.cholesky(c[1] @ c[1].T))

    a = positive(np.float32, 3, 3)
    root = jax.jit(lambda v: lax.while_loop(lambda c: c[0] < 2, halves, (0, v))[1])(a)
    close(
        root,
        np.linalg.cholesky((lambda l: l @ l.T)(np.linalg.cholesky(a @ a.T))).astype(np.float32),
    )


def test_transformed() -> None:
    a, b = positive(np.float32, 6, 4, 4), numbers(np.float32, 6, 4)
    solved = jax.jit(jax.vmap(jnp.linalg.solve))
    close(solved(a, b), np.linalg.solve(a, b[..., None])[..., 0])
    close(
        jax.vmap(jnp.linalg.cholesky, in_axes=2, out_axes=0)(np.moveaxis(a, 0, 2).copy()),
        np.linalg.cholesky(a),
    )
    gradient = jax.jit(jax.grad(lambda m: jnp.linalg.slogdet(m)[1]))
    close(gradient(a[0]), np.linalg.inv(a[0]).T)
    assert not jax.explain(gradient, a[0]).host_calls
    through = jax.jit(jax.grad(lambda m: jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(m))))))
    close(through(a[0]), np.linalg.inv(a[0]) / 2)


def test_free_sizes() -> None:
    traces = []

    @jax.jit
    def f(a: Any, b: Any) -> Any:
        traces.append(1)
        return jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), lax.linalg.lu(a)[1]

    for n, m in ((3, 2), (5, 4), (40, 1), (8, 70), (2, 2)):
        a, b = positive(np.float32, n, n), numbers(np.float32, n, m)
        factor, x, pivots = f(a, b)
        close(factor, np.linalg.cholesky(a))
        close(x, np.linalg.solve(a, b))
        close(pivots, lu_p.meaning(a)[1])
    assert len(traces) <= 2


def test_spectra_of_free_sizes() -> None:
    traces = []

    @jax.jit
    def f(a: Any) -> Any:
        traces.append(1)
        q, r = jnp.linalg.qr(a)
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        w, v = jnp.linalg.eigh(a.T @ a)
        return q @ r, (u * s) @ vt, (v * w) @ v.T

    for m, n in ((4, 3), (7, 5), (40, 35), (2, 1)):
        a = numbers(np.float32, m, n)
        for got, want in zip(f(a), (a, a, a.T @ a), strict=True):
            close(got, want)
    assert len(traces) <= 3


def test_inputs_stay_and_donated_ones_serve() -> None:
    for n in (4, 40):
        a = positive(np.float32, n, n)
        x = jnp.asarray(a)
        jax.jit(cholesky_p.bind)(x)
        jax.jit(lu_p.bind)(x)
        jax.jit(lambda a: lax.linalg.triangular_solve(a, a))(x)
        same_bits(x, a)
        close(jax.jit(cholesky_p.bind, donate_argnums=0)(jnp.asarray(a)), cholesky_p.meaning(a))
        close(
            jax.jit(lambda a: lu_p.bind(a)[0], donate_argnums=0)(jnp.asarray(a)), lu_p.meaning(a)[0]
        )


def test_threads_do_not_change_bits() -> None:
    a, b = positive(np.float32, 3000, 4, 4), numbers(np.float32, 3000, 4, 2)
    before, seen = threads.get_num_threads(), []
    try:
        for count in (1, 3):
            threads.set_num_threads(count)
            seen.append([jnp.linalg.cholesky(a), *lax.linalg.lu(a), jnp.linalg.solve(a, b)])
    finally:
        threads.set_num_threads(before)
    for one, three in zip(*seen, strict=True):
        same_bits(one, three)
    close(seen[0][0], np.linalg.cholesky(a))


# ---------------------------------------------------------------- the library


def test_small_matrices_do_not_need_the_library() -> None:
    def functions(n: int, dtype: Any) -> list[int] | None:
        aval = jax.core.ShapedArray((2, n, n), np.dtype(dtype))
        return linalg.functions_of("cholesky", {}, [aval])

    assert functions(routines.SMALL, np.float32) == functions(4, np.float64) == [0]
    for n, dtype in ((routines.SMALL + 1, np.float32), (2, np.complex64)):
        found = functions(n, dtype)
        assert found and all(found)


def test_the_routine_is_begun_before_the_library_starts_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    routine_of, functions_of = linalg.routine_of, linalg.functions_of
    monkeypatch.setattr(linalg, "routine_of", lambda n: order.append("routine") or routine_of(n))
    monkeypatch.setattr(
        linalg, "functions_of", lambda *a: order.append("library") or functions_of(*a)
    )
    x = np.random.default_rng(0).normal(size=(50, 40)).astype("f4")
    assert jax.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(x)[1].shape == (40,)
    assert order == ["routine", "library"]


def test_without_the_library_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linalg, "library_function", lambda name, dtype: 0)
    a = positive(np.float32, 37, 37)
    e = compiled(
        lambda a: [lax.linalg.cholesky(a), *lax.linalg.lu(a), lax.linalg.triangular_solve(a, a)], a
    )
    assert sorted(e.host_calls) == ["cholesky", "lu", "triangular_solve"]
    assert compiled(lambda a: list(jnp.linalg.eigh(a)), a).host_calls == ["eigh"]
    close(run(e, a)[0], np.linalg.cholesky(a))
    assert not compiled(lambda a: lax.linalg.cholesky(a[:5, :5]), a).host_calls


@pytest.mark.peer
@pytest.mark.parametrize("n", [4, 40])
def test_peer(n: int) -> None:
    peer = pytest.importorskip("jax")
    a, b = positive(np.float32, 2, n, n), numbers(np.float32, 2, n, 3)
    close(jnp.linalg.cholesky(a), np.asarray(peer.numpy.linalg.cholesky(a)))
    close(jnp.linalg.solve(a, b), np.asarray(peer.numpy.linalg.solve(a, b)))
    for name in ("qr", "eigh", "svd"):  # the signs of vectors as well
        for got, want in zip(
            getattr(jnp.linalg, name)(a), getattr(peer.numpy.linalg, name)(a), strict=True
        ):
            close(got, np.asarray(want))
    for got, want in zip(lax.linalg.lu(a), peer.lax.linalg.lu(a), strict=True):
        close(got, np.asarray(want))
