"""Products of arrays: shapes that do not fit, conjugates, dtypes."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(2, 4, 5)).astype(np.float32)
C = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64)


@pytest.mark.parametrize(
    "name, args",
    [
        ("dot", (A, B[0])),
        ("matmul", (A, B)),
        ("matmul", (A[0, 0], B[0])),
        ("inner", (A, A[0])),
        ("tensordot", (A, B, ((0, 2), (0, 1)))),
        ("tensordot", (A, B, (range(0, 3, 2), (0, 1)))),
        ("tensordot", (A, A, 0)),
        ("kron", (A[0], B[0])),
        ("outer", (A[0, 0], B[0])),
        ("vdot", (C, C)),
        ("trace", (A, 1, 1, 2)),
        ("diagonal", (A, -1, 0, 2)),
    ],
)
def test_as_numpy(name, args):
    want = getattr(np, name)(*args)
    f = getattr(jnp, name)
    np.testing.assert_allclose(f(*args), want, rtol=1e-4, atol=1e-5)
    static = (1, 2, 3) if name in ("trace", "diagonal") else tuple(range(2, len(args)))
    jitted = calque.jit(f, static_argnums=static)(*args)
    np.testing.assert_allclose(jitted, want, rtol=1e-4, atol=1e-5)


def test_vectors_are_conjugated_where_numpy_does():
    np.testing.assert_allclose(jnp.vecdot(C, C), (C.conj() * C).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(jnp.vecmat(C[0], C.T), C[0].conj() @ C.T, rtol=1e-4)
    np.testing.assert_allclose(jnp.matvec(C, C[0]), C @ C[0], rtol=1e-4)
    np.testing.assert_allclose(jnp.vecdot(A, A, axis=0), (A * A).sum(0), rtol=1e-5)


def test_dtypes():
    x = jnp.ones((2, 2), jnp.int8)
    assert jnp.matmul(x, x).dtype == jnp.int8
    assert jnp.matmul(x, x, preferred_element_type=jnp.int32).dtype == jnp.int32
    assert jnp.dot(x, jnp.ones(2, jnp.float16)).dtype == jnp.float16


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.matmul(A, A),
        lambda: jnp.dot(A, A),
        lambda: jnp.matmul(2.0, A),
        lambda: jnp.vdot(A, B),
        lambda: jnp.matvec(A[0, 0], A[0, 0]),
        lambda: jnp.vecmat(A[0, 0], A[0, 0]),
        lambda: jnp.tensordot(A, B, 2),
        lambda: jnp.trace(A[0, 0]),
    ],
)
def test_shapes_that_do_not_fit(call):
    with pytest.raises((ValueError, TypeError)):
        call()


@pytest.mark.parametrize("call", [lambda: jnp.outer(A, A, out=A), lambda: jnp.trace(A, out=A)])
def test_out_is_refused(call):
    with pytest.raises(NotImplementedError, match=r"'out' argument.*use the result"):
        call()


PAIRS = [
    ("int8", "int16"), ("bool", "int8"), ("int32", "float32"), ("bfloat16", "float32"),
    ("float16", "bfloat16"), ("int32", "float16"), ("float32", "complex64"),
    ("uint8", "bfloat16"), ("int8", "float16"), ("bool", "bfloat16"),
]  # fmt: skip
SUMS = {
    "dot": lambda x, y: jnp.dot(x[:, 0], y[0]),
    "matmul": lambda x, y: jnp.matmul(x.T, y.T),
    "tensordot": lambda x, y: jnp.tensordot(x, y, ((0,), (1,))),
    "inner": lambda x, y: jnp.inner(x.T, y),
    "einsum": lambda x, y: jnp.einsum("ab,ca->bc", x, y),
    "sums": lambda x, y: jnp.einsum("ab,ca->c", x, y),
    "diagonal": lambda x, y: jnp.einsum("aa,ba->b", x[:4], y[:, :4]),
}


@pytest.mark.parametrize(("left", "right"), PAIRS, ids="-".join)
def test_products_of_two_dtypes_are_those_in_the_dtype_of_both(left, right):
    """Bit for bit, whether the operands are brought to one dtype before or in the product."""
    x = jnp.asarray(np.linspace(-9, 9, 80).reshape(20, 4)).astype(left)
    y = jnp.asarray(np.linspace(-7, 8, 60).reshape(3, 20)).astype(right)
    both = jnp.promote_types(left, right)
    for f in SUMS.values():
        expected, swapped = f(x.astype(both), y.astype(both)), f(x.astype(both), y)
        for g in (f, calque.jit(f)):
            out = g(x, y)
            assert out.dtype == both and not out.weak_type
            assert np.asarray(out).tobytes() == np.asarray(expected).tobytes()
        assert np.asarray(swapped).tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize("name", ["dot", "einsum"])
def test_products_of_two_dtypes_are_single_operations(name):
    f = {"dot": jnp.dot, "einsum": lambda x, y: jnp.einsum("a,a->a", x, y)}[name]
    for left, right in (("bfloat16", "float32"), ("int8", "int32"), ("bool", "float32")):
        closed = calque.make_jaxpr(f)(jnp.ones(5, left), jnp.ones(5, right))
        (e,) = closed.eqns
        assert e.primitive.name == "dot_general" and closed.out_avals[0].dtype == np.dtype(right)
        assert e.params["preferred_element_type"] == np.dtype(right)
    slope = calque.grad(lambda x, y: jnp.dot(x, y))(jnp.ones(3, "bfloat16"), jnp.arange(3.0))
    assert slope.dtype == jnp.bfloat16 and slope.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_bools_count_where_a_dtype_is_asked_for(dtype):
    """And are joined by "or" where none is."""
    a = jnp.array([[True, True], [True, False]])
    asked = [
        jnp.matmul(a, a, preferred_element_type=dtype),
        jnp.dot(a, a, preferred_element_type=dtype),
        jnp.tensordot(a, a, 1, preferred_element_type=dtype),
        jnp.einsum("ij,jk->ik", a, a, preferred_element_type=dtype),
        jnp.linalg.matmul(a, a, preferred_element_type=dtype),
    ]
    for got in asked:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, [[2, 1], [1, 1]])
    assert jnp.vdot(a, a, preferred_element_type=dtype) == 3
    assert jnp.inner(a[0], a[0], preferred_element_type=dtype) == 2
    for plain in (a @ a, jnp.einsum("ij,jk->ik", a, a)):
        assert plain.dtype == bool and plain.tolist() == [[True, True], [True, True]]


@pytest.mark.parametrize("product", [jnp.dot, jnp.inner])
def test_products_with_numbers_have_the_preferred_dtype(product):
    halves = jnp.full(3, 300.0, jnp.float16)
    out = product(halves, jnp.float16(300), preferred_element_type=jnp.float32)
    assert out.dtype == jnp.float32 and out.tolist() == [90000.0] * 3
    assert product(2, halves, preferred_element_type=jnp.float32).dtype == jnp.float32
