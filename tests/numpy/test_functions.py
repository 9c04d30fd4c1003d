"""Creation, reductions, shapes, sorting and products against NumPy, eager and under jit."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.numpy.compare import check, compare, values

X = values((3, 4), "float32")
I = values((3, 4), "int32")

CASES = [
    ("sum", (X,), {}), ("sum", (X, 0), {}), ("sum", (X, (0, 1)), {"keepdims": True}), ("sum", (I,
    -1), {}), ("sum", (X > 0,), {}),
    ("sum", (X,), {"axis": 1, "initial": 2.0}), ("sum", (X,), {"where": X > 0}), ("prod", (X, 1),
    {}), ("prod", (I, 0), {}),
    ("max", (X,), {}), ("max", (I, 0), {}), ("min", (X, 1), {"keepdims": True}), ("max", (X,),
    {"where": X > 0, "initial": -1.0}),
    ("mean", (X,), {}), ("mean", (X, 0), {}), ("mean", (I, 1), {}), ("mean", (X,),
    {"where": X > 0}), ("var", (X,), {}),
    ("var", (X, 0), {"ddof": 1}), ("var", (values((5,), "complex64"),), {}), ("std", (X, 1), {}),
    ("all", (X > 0, 0), {}), ("any", (X > 0,), {}),
    ("any", (I,), {"axis": 1, "keepdims": True}), ("argmax", (X,), {}), ("argmax", (X, 1), {}),
    ("argmin", (X, 0), {"keepdims": True}),
    ("cumsum", (X,), {}), ("cumsum", (X, 1), {}), ("cumprod", (X, 0), {}), ("cumsum", (X > 0, 0),
    {}), ("ptp", (X, 0), {}),
    ("sum", (np.zeros((0, 3), np.float32), 0), {}), ("prod", (np.zeros((0,), np.float32),), {}),
    ("mean", (np.zeros((0,), np.float32),), {}),
    ("reshape", (X, (2, 6)), {}), ("reshape", (X, -1), {}), ("reshape", (X, (4, -1)),
    {"order": "F"}), ("ravel", (X,), {}),
    ("transpose", (X,), {}), ("transpose", (values((2, 3, 4), "float32"), (1, 2, 0)), {}),
    ("swapaxes", (X, 0, -1), {}),
    ("moveaxis", (values((2, 3, 4), "float32"), 0, -1), {}), ("expand_dims", (X, (0, -1)), {}),
    ("squeeze", (X[:1],), {}),
    ("broadcast_to", (X[0], (2, 4)), {}), ("flip", (X,), {}), ("flip", (X, 0), {}), ("roll", (X,
    5), {}), ("roll", (X, (1, -2), (0, 1)), {}),
    ("repeat", (X, 2), {}), ("repeat", (X, 3, 1), {}), ("tile", (X, 2), {}), ("tile", (X, (2, 1,
    3)), {}), ("split", (X, 2, 1), {}),
    ("split", (X, [1, 3], 1), {}), ("array_split", (X, 2), {}), ("atleast_3d", (X,), {}), ("clip",
    (X, -0.5, 0.5), {}),
    ("where", (X > 0, X, 0), {}), ("sort", (X,), {}), ("sort", (X, None), {}), ("argsort", (X, 0),
    {}), ("take", (X, np.array([2, 0]), 0), {}),
    ("take_along_axis", (X, np.argsort(X, 1), 1), {}), ("searchsorted", (np.sort(X[0]), X), {}),
    ("round", (X, 2), {}), ("round", (X * 100, -1), {}),
    ("searchsorted", (np.array([1, 2, 2, 3]), np.array([0, 2, 9])), {"side": "right"}),
    ("dot", (X, X.T), {}), ("dot", (X, X[0]), {}), ("dot", (X[0], X[1]), {}), ("matmul", (X, X.T),
    {}), ("matmul", (X, X[0]), {}),
    ("matmul", (X[:, 0], X), {}), ("matmul", (values((5, 3, 4), "float32"), X.T), {}), ("matmul",
    (X, values((5, 4, 2), "float32")), {}),
    ("matmul", (values((2, 1, 3, 4), "float32"), values((5, 4, 2), "float32")), {}), ("inner", (X,
    X), {}), ("outer", (X[0], X[1]), {}),
    ("tensordot", (X, X, 2), {}), ("tensordot", (X, X, ((0,), (0,))), {}), ("vdot", (values((4,),
    "complex64"), values((4,), "complex64", 1)), {}),
    ("kron", (X[:2, :2], X), {}), ("trace", (X, 1), {}), ("diagonal", (X, -1), {}), ("matmul", (I,
    I.T), {}),
    ("zeros_like", (X,), {}), ("full_like", (X, 3), {}), ("nonzero", (np.zeros(0),), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, args, kw", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_function(name, args, kw):
    if name == "nonzero":
        return compare(jnp.nonzero(*args), np.nonzero(*args))
    check(name, *args, tol=1e-5, **kw)


def test_creation():
    compare(jnp.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32), dtypes=True)
    compare(jnp.linspace(-1, 4, 7, endpoint=False), np.linspace(-1, 4, 7, endpoint=False))
    compare(
        jnp.linspace(np.zeros(3), np.arange(3.0), 4, axis=-1),
        np.linspace(np.zeros(3), np.arange(3.0), 4, axis=-1),
    )
    compare(jnp.linspace(0, 1, 0), np.linspace(0, 1, 0))
    compare(jnp.linspace(0, 10, 5, dtype=int), np.linspace(0, 10, 5, dtype=np.int32), dtypes=True)
    compare(jnp.eye(3, 4, 1), np.eye(3, 4, 1))
    compare(jnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    assert jnp.zeros(3).dtype == np.float32 and jnp.ones((), bool).dtype == bool
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        calque.jit(lambda n: jnp.ones((n,)))(3.0)
    with pytest.raises(TypeError, match="Shapes must be 1D"):
        jnp.zeros(2.5)


def test_array():
    compare(jnp.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]], np.int32), dtypes=True)
    compare(jnp.array([1, 2.5]), np.array([1, 2.5], np.float32), dtypes=True)
    compare(jnp.array([True, False]), np.array([True, False]), dtypes=True)
    compare(jnp.array([]), np.array([], np.float32), dtypes=True)
    compare(jnp.array([jnp.ones(2), np.zeros(2)]), np.array([[1, 1], [0, 0]], np.float32))
    compare(jnp.array(1 + 2j), np.array(1 + 2j, np.complex64), dtypes=True)
    compare(jnp.array(3, ndmin=2), np.array([[3]], np.int32), dtypes=True)
    compare(calque.jit(lambda x: jnp.array([x, [1.0, 2.0]]))(jnp.zeros(2)), [[0, 0], [1, 2]])
    x = np.arange(3.0)
    y = jnp.array(x)
    x[0] = 9
    compare(y, [0, 1, 2])
    for bad in (None, "abc", {"a": 1}, [1, None], np.array(["a"]), np.array([object()])):
        with pytest.raises(ValueError if "None" in repr(bad) else TypeError):
            jnp.array(bad)
    with pytest.raises(OverflowError):
        jnp.array(2**40)


def test_odd_numpy_inputs():
    big_endian = np.arange(3, dtype=">f4")
    compare(jnp.asarray(big_endian) + 1, [1, 2, 3])
    compare(calque.jit(lambda x: x + 1)(big_endian), [1, 2, 3])
    strided = np.arange(10.0, dtype=np.float32)[::-2]
    compare(calque.jit(lambda x: x + 1)(strided), strided + 1)
    read_only = np.arange(3.0, dtype=np.float32)
    read_only.flags.writeable = False
    compare(calque.jit(lambda x: x * 2)(read_only), [0, 2, 4])
    fortran = np.asfortranarray(X)
    compare(calque.jit(lambda x: x + 1)(fortran), X + 1)
    with pytest.raises(TypeError):
        calque.jit(lambda x: x)(np.array([object()]))


def test_put_clips_places_from_the_end_only_without_a_mode():
    """As in NumPy, whose mode "clip" knows no places from the end, and as in JAX without one."""
    x, at, v = np.arange(12, dtype=np.float32), np.array([-3, 2, 100]), np.float32([7, 8, 9])
    for mode in ("clip", "wrap"):
        want = x.copy()
        np.put(want, at, v, mode=mode)
        compare(jnp.put(x, at, v, mode=mode, inplace=False), want)
    want = x.copy()
    want[[-3, 2, 11]] = v
    compare(jnp.put(x, at, v, inplace=False), want)


def test_wrong_axes_and_shapes():
    for call, error in [
        (lambda: jnp.sum(X, axis=2), ValueError), (lambda: jnp.sum(X, axis=(0, 0)), ValueError),
        (lambda: jnp.reshape(X, (5, 5)), TypeError),
        (lambda: jnp.reshape(X, (-1, -1)), TypeError), (lambda: jnp.transpose(X, (0, 0)),
        TypeError), (lambda: jnp.squeeze(X, 0), ValueError),
        (lambda: jnp.dot(X, X), TypeError), (lambda: jnp.matmul(X, 2.0), ValueError),
        (lambda: jnp.max(jnp.zeros((0,))), ValueError),
        (lambda: jnp.split(X, 5), ValueError), (lambda: jnp.broadcast_to(X, (2, 2)), ValueError),
        (lambda: jnp.argmax(jnp.zeros((0,))), ValueError),
    ]:  # fmt: skip
        with pytest.raises(error):
            call()


def test_creation_goes_where_it_is_asked_to():
    device = calque.devices()[0]
    for x in (
        jnp.ones(2, device=device),
        jnp.array([1, 2], device=device),
        jnp.arange(3, device=device),
        jnp.zeros_like(X, device=device),
    ):
        assert x.devices() == {device}
    with pytest.raises((TypeError, ValueError)):
        jnp.ones(2, device="nowhere")
