"""Layout primitives against NumPy, their rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.core.trace import trace_to_jaxpr
from calque.ops import creation
from calque.ops import layout as L
from calque.ops.broadcasting import broadcast
from tests.ops import peer
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)

X = values("float64", (2, 3))


# ------------------------------------------------------------ the rules of each primitive, by table

CASES = [
    (
        L.broadcast_in_dim_p,
        X,
        {"shape": (4, 2, 3), "broadcast_dimensions": (1, 2), "sharding": None},
    ),
    (
        L.broadcast_in_dim_p,
        X[:1],
        {"shape": (2, 5, 3), "broadcast_dimensions": (1, 2), "sharding": None},
    ),
    (
        L.broadcast_in_dim_p,
        X[0, 0],
        {"shape": (2, 2), "broadcast_dimensions": (), "sharding": None},
    ),
    (
        L.broadcast_in_dim_p,
        X,
        {"shape": (2, 1, 3), "broadcast_dimensions": (0, 2), "sharding": None},
    ),
    (
        L.broadcast_in_dim_p,
        X[:0],
        {"shape": (0, 3, 2), "broadcast_dimensions": (0, 1), "sharding": None},
    ),
    (L.reshape_p, X, {"new_sizes": (3, 2), "dimensions": None, "sharding": None}),
    (L.reshape_p, X, {"new_sizes": (6,), "dimensions": (1, 0), "sharding": None}),
    (L.reshape_p, X[0, :1], {"new_sizes": (), "dimensions": None, "sharding": None}),
    (L.reshape_p, X[:0], {"new_sizes": (3, 0, 2), "dimensions": None, "sharding": None}),
    (L.transpose_p, X, {"permutation": (1, 0)}),
    (L.transpose_p, values("float64", (2, 3, 4)), {"permutation": (2, 0, 1)}),
    (L.transpose_p, X[0, 0], {"permutation": ()}),
    (L.squeeze_p, X.reshape(1, 2, 1, 3), {"dimensions": (0, 2)}),
    (L.squeeze_p, X[:1, :1], {"dimensions": (0, 1)}),
    (L.squeeze_p, X, {"dimensions": ()}),
]
IDS = [f"{p.name}-{i}" for i, (p, _, _) in enumerate(CASES)]


def expected(prim, x, params):
    """The result by other means than the primitive's meaning: element by element."""
    if prim is L.broadcast_in_dim_p:
        out = np.empty(params["shape"], x.dtype)
        for i in np.ndindex(*params["shape"]):
            at = tuple(
                i[d] if n > 1 else 0 for d, n in zip(params["broadcast_dimensions"], x.shape)
            )
            out[i] = x[at]
        return out
    if prim is L.transpose_p:
        out = np.empty([x.shape[d] for d in params["permutation"]], x.dtype)
        for i in np.ndindex(*out.shape):
            at = [0] * x.ndim
            for j, d in enumerate(params["permutation"]):
                at[d] = i[j]
            out[i] = x[tuple(at)]
        return out
    if prim is L.reshape_p:
        flat = (
            x
            if params["dimensions"] is None
            else expected(L.transpose_p, x, {"permutation": params["dimensions"]})
        )
        return np.array(list(flat.flat), x.dtype).reshape(params["new_sizes"])
    return np.array(list(x.flat), x.dtype).reshape(
        [n for d, n in enumerate(x.shape) if d not in params["dimensions"]]
    )


@pytest.mark.parametrize(("prim", "x", "params"), CASES, ids=IDS)
def test_meaning(prim, x, params):
    for dtype in ("float32", "int8", "bool", "complex64", ml_dtypes.bfloat16):
        check_meaning(
            prim, lambda v: expected(prim, v, params), np.asarray(x).astype(dtype), **params
        )


@pytest.mark.parametrize(("prim", "x", "params"), CASES, ids=IDS)
def test_rules(prim, x, params):
    check_jvp(prim, x, **params)
    check_transpose(prim, x, **params)
    check_batch(prim, np.asarray(x).astype("float32"), **params)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "complex64", ml_dtypes.bfloat16])
def test_iota(dtype):
    (out,) = call(creation.iota_p, dtype=np.dtype(dtype), shape=(2, 3), dimension=1, sharding=None)
    same(out, np.array([[0, 1, 2]] * 2).astype(dtype))
    (out,) = call(creation.empty_p, dtype=np.dtype(dtype), shape=(2, 0), out_sharding=None)
    assert out.shape == (2, 0)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: L.broadcast_in_dim(x, (2, 4), (0, 1)), "either be 1"),
        (lambda x: L.broadcast_in_dim(x, (3, 2), (1, 1)), "strictly increasing"),
        (lambda x: L.broadcast_in_dim(x, (2, 3), (0,)), "equal to operand ndim"),
        (lambda x: L.reshape(x, (4,)), "total size must be unchanged"),
        (lambda x: L.reshape(x, (-1,)), "must all be positive"),
        (lambda x: L.reshape(x, (6,), (0, 0)), "permutation"),
        (lambda x: L.transpose(x, (0,)), "isn't a permutation"),
        (lambda x: L.squeeze(x, (0,)), "size not equal to one"),
        (lambda x: L.expand_dims(x, (0, 0)), "repeated axis"),
        (lambda x: creation.full((2,), np.ones(2)), "scalar fill_value"),
        (lambda x: creation.full((2.5,), 0.0), "1D sequences of concrete values"),
        (lambda x: creation.broadcasted_iota("float32", (2,), 1), "out of bounds"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError), match=words):
        run(fun, X.astype("float32"))


# ---------------------------------------------------------------- lax functions


def test_functions():
    x = X.astype("float32")
    same(run(lambda x: L.expand_dims(x, (0, -1)), x)[0], x[None, :, :, None])
    same(run(lambda x: L.squeeze(x, (-1,)), x[:, :1])[0], x[:, 0])
    same(run(lambda x: creation.full_like(x, 2), x)[0], np.full((2, 3), 2, "float32"))
    same(
        run(lambda x: creation.full_like(x, 2, dtype=int, shape=(4,)), x)[0], np.full(4, 2, "int32")
    )
    same(run(lambda: creation.full((2,), 1.5, "bfloat16"))[0], np.full(2, 1.5, ml_dtypes.bfloat16))
    same(run(lambda: creation.iota("int8", 3))[0], np.arange(3, dtype="int8"))


def test_no_operation_when_nothing_changes():
    aval = ShapedArray((2, 3), np.dtype("float32"))

    def same_thing(x):
        x = L.reshape(x, (2, 3))
        x = L.transpose(x, (0, 1))
        x = L.broadcast_in_dim(x, (2, 3), (0, 1))
        return [L.expand_dims(L.squeeze(x, ()), ())]

    assert trace_to_jaxpr(same_thing, [aval]).eqns == []


def test_weak_types():
    closed = trace_to_jaxpr(
        lambda x: [creation.full((2,), 1.0), creation.full_like(x, 1.0), L.reshape(x, (1,))],
        [ShapedArray((), np.dtype("float32"), True)],
    )
    assert [a.weak_type for a in closed.out_avals] == [True, True, True]
    closed = trace_to_jaxpr(
        lambda: [creation.full((2,), 1.0, "float32"), creation.full((2,), np.float32(1))], []
    )
    assert [a.weak_type for a in closed.out_avals] == [False, False]


def test_printed_form():
    aval = ShapedArray((3, 4), np.dtype("float32"))
    text = str(
        trace_to_jaxpr(
            lambda x: [broadcast(x, (2,)), creation.full((2,), 2.0), L.reshape(x, (12,))], [aval]
        )
    )
    assert "b:f32[2,3,4] = broadcast_in_dim[broadcast_dimensions=(1, 2)] a" in text
    assert "c:f32[2] = broadcast_in_dim 2.0:f32[]" in text
    assert "d:f32[12] = reshape[dimensions=None new_sizes=(12,) sharding=None] a" in text


# ---------------------------------------------------------------- beside JAX


@pytest.mark.peer
def test_beside_jax():
    x = X.astype("float32")
    peer.compare(
        [
            (lambda lax, x: lax.broadcast_in_dim(x, (4, 2, 3), (1, 2)), x),
            (lambda lax, x: lax.broadcast(x, (2, 1)), x),
            (lambda lax, x: lax.reshape(x, (3, 2)), x),
            (lambda lax, x: lax.reshape(x, (3, 2), dimensions=(1, 0)), x),
            (lambda lax, x: lax.transpose(x, (1, 0)), x),
            (lambda lax, x: lax.expand_dims(x, (0, -1)), x),
            (lambda lax, x: lax.squeeze(lax.expand_dims(x, (1,)), (1,)), x),
            (lambda lax, x: lax.collapse(x, 0, 2), x),
            (lambda lax, x: lax.full_like(x, 3), x),
            (lambda lax, x: lax.full_like(x, 3.7, dtype="int32", shape=(2,)), x),
            (lambda lax, x: lax.full_like(x, 3, dtype=bool), x),
            (lambda lax, x: lax.broadcasted_iota("float32", (2, 3), 0), x),
            (lambda lax, x: lax.iota("uint8", 4), x),
            (lambda lax, x: lax.broadcast_like(x, lax.full((4, 2, 3), 0.0)), x),
        ]
    )
    peer.compare([(lambda lax, x: lax.shape_as_value((1, 2)), x)], printed=False)


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_reshape_reads_the_dimensions_in_the_order_given(order):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    want = np.transpose(x, order).reshape(2, 6)

    def f(v):
        return L.reshape(v, (2, 6), order)

    def stack(v):
        return calque.vmap(f)(v[None])[0]

    for g in (
        f,
        calque.jit(f),
        stack,
        calque.jit(stack),
        lambda v: calque.jit(lambda u: L.reshape(u, (4, 3), (1, 0)))(v),
    ):
        got = np.asarray(g(x))
        np.testing.assert_array_equal(got, want if got.shape == (2, 6) else x.T)
    square = x[:, :3]
    np.testing.assert_array_equal(
        calque.jit(lambda v: L.reshape(v, (3, 3), (1, 0)))(square), square.T
    )


def test_a_broadcast_whose_dimensions_change_places() -> None:
    x = np.arange(6, dtype="float32").reshape(3, 2)

    def f(v):
        return L.broadcast_in_dim(v, (2, 3, 4), (1, 0))

    for g in (f, calque.jit(f)):
        np.testing.assert_array_equal(g(x), np.broadcast_to(x.T[..., None], (2, 3, 4)))
    w = np.arange(24, dtype="float32").reshape(2, 3, 4)
    slope = calque.grad(lambda v: (f(v) * w).sum())(x)
    np.testing.assert_array_equal(slope, w.sum(-1).T)
    with pytest.raises(TypeError, match="must not contain duplicates"):
        L.broadcast_in_dim(x, (2, 3, 4), (1, 1))
