"""sparsify: functions of dense arrays on sparse ones."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental import sparse

RNG = np.random.default_rng(0)
X = np.where(RNG.random((4, 5)) < 0.4, RNG.random((4, 5)), 0).astype(np.float32)
Y = np.where(RNG.random((4, 5)) < 0.4, RNG.random((4, 5)), 0).astype(np.float32)
V = RNG.normal(size=5).astype(np.float32)


def _close(got: Any, want: Any) -> None:
    got = got.todense() if isinstance(got, sparse.JAXSparse) else got
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "sin",
        "sinh",
        "tan",
        "tanh",
        "arctan",
        "arcsinh",
        "expm1",
        "log1p",
        "sqrt",
        "square",
        "sign",
        "negative",
    ],
)
def test_functions_of_values(name: str) -> None:
    f = getattr(jnp, name)
    mat = sparse.BCOO.fromdense(X)
    twice = sparse.BCOO(
        (jnp.concatenate([mat.data, mat.data]), jnp.concatenate([mat.indices] * 2)), shape=X.shape
    )
    _close(sparse.sparsify(f)(mat), f(X))
    _close(sparse.sparsify(f)(twice), f(2 * X))


def test_programs() -> None:
    a, b = sparse.BCOO.fromdense(X), sparse.BCOO.fromdense(Y)
    rows = sparse.BCSR.fromdense(X)
    cases: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [
        (lambda a, v: (a * a + a) @ v, (a, V), (X, V)),
        (lambda a, b: (a + b).T, (a, b), (X, Y)),
        (lambda a, b: a - 2 * b, (a, b), (X, Y)),
        (lambda a: a.sum(axis=1), (a,), (X,)),
        (lambda a: a.sum(), (a,), (X,)),
        (lambda a: a.reshape(2, 10)[1], (a,), (X,)),
        (lambda a, b: jnp.concatenate([a, b], axis=1), (a, b), (X, Y)),
        (lambda a, b: jnp.stack([a, b]), (a, b), (X, Y)),
        (lambda a: a[None] ** 3, (a,), (X,)),
        (lambda a, v: v[:4] @ a, (a, V), (X, V)),
        (lambda a, v: calque.nn.relu(a @ v), (rows, V), (X, V)),
        (lambda a, v: calque.jit(lambda a, v: a @ v)(a, v), (a, V), (X, V)),
        (lambda a, v: lax.cond(v.sum() > 0, lambda a: a @ v, lambda a: -a @ v, a), (a, V), (X, V)),
        (lambda a, v: lax.fori_loop(0, 3, lambda i, u: a.T @ (a @ u), v), (a, V), (X, V)),
        (lambda a, v: lax.scan(lambda u, t: (a.T @ (a @ u) + t, u.sum()), v, v), (a, V), (X, V)),
    ]
    for f, inputs, dense in cases:
        got, want = sparse.sparsify(f)(*inputs), f(*map(jnp.asarray, dense))
        calque.tree.map(_close, got, want, is_leaf=lambda x: isinstance(x, sparse.JAXSparse))
    tree = sparse.sparsify(lambda d: {"out": d["a"] * 2, "v": d["v"]})({"a": a, "v": V})
    _close(tree["out"], 2 * X)
    _close(calque.jit(sparse.sparsify(lambda a, v: jnp.sin(a) @ v))(a, V), np.sin(X) @ V)


def test_operators_by_values_of_one_array() -> None:
    a = sparse.BCOO.fromdense(X)
    assert (a + a).nse == a.nse and (a * a).nse == a.nse
    _close(2 * a, 2 * X)
    _close(a**2, X**2)
    _close(+a, X)
    _close(V[:4] @ a, V[:4] @ X)


def test_what_would_be_dense_is_refused() -> None:
    a = sparse.BCOO.fromdense(X)
    for f, text in (
        (jnp.cos, "dense output"),
        (jnp.exp, "dense output"),
        (lambda a: a > 0, "dense output"),
        (lambda a: a**-1, "integer_pow|div"),
        (lambda a: jnp.sort(a), "sort"),
        (lambda a: a + 1.0, "dense"),
        (lambda a: lax.scan(lambda c, r: (c, r.sum()), 0, a), "scan"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            sparse.sparsify(f)(a)
    with pytest.raises(TypeError, match="use_tracer"):
        sparse.sparsify(jnp.sin, use_tracer=3)


def test_todense_inside_of_a_sparsified_function() -> None:
    dense = jnp.arange(4.0).reshape(2, 2)
    f = sparse.sparsify(lambda m: sparse.todense(m) + 1)
    for m in (dense, sparse.BCOO.fromdense(dense), sparse.BCSR.fromdense(dense)):
        np.testing.assert_array_equal(f(m), dense + 1)
        np.testing.assert_array_equal(calque.jit(f)(m), dense + 1)
    np.testing.assert_array_equal(
        calque.grad(lambda m: sparse.todense(m).sum())(dense), 1 + 0 * dense
    )
    np.testing.assert_array_equal(calque.vmap(sparse.todense)(dense), dense)


def test_sums_of_sparse_and_dense_arrays_are_dense() -> None:
    x, y = sparse.BCOO.fromdense(jnp.arange(6.0).reshape(2, 3)), jnp.ones((2, 3))
    np.testing.assert_array_equal(sparse.sparsify(lambda a, b: a + b)(x, y), x.todense() + 1)
    np.testing.assert_array_equal(sparse.sparsify(lambda a, b: b - a)(x, y), 1 - x.todense())
    with pytest.raises(NotImplementedError, match="where their shapes differ"):
        sparse.sparsify(lambda a: a + 1.0)(x)


def test_branches_give_the_same_kinds_of_arrays() -> None:
    @sparse.sparsify
    def choose(x, y):
        return calque.lax.cond(False, lambda v: v[0], lambda v: v[1], (x, y))

    x = sparse.BCOO.fromdense(jnp.arange(3.0))
    assert isinstance(choose(x, x), sparse.BCOO)
    with pytest.raises(TypeError, match="same type structure as sparsified false_fun output"):
        choose(x, jnp.arange(3.0))
