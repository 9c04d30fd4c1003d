"""The methods and operators of arrays and of traced values."""

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.arrays import ArrayImpl
from calque.core.trace_state import Tracer
from calque.numpy.methods import attaching
from tests.test_help import lacks

X = np.array([[1.5, -2.0, 3.0], [0.25, 4.0, -1.0]], np.float32)
I = np.array([[5, -3, 2], [7, 1, -4]])
Y = np.array([2, 3, 1])

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BINARY += ["eq", "ne", "lt", "le", "gt", "ge"]
WHOLE = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("y", [Y, Y.astype(np.float32), 2, 2.5])
def test_operators_as_numpy_on_both_sides(name, y):
    f = getattr(operator, name)
    ours = jnp.asarray(y) if isinstance(y, np.ndarray) else y
    x = np.abs(X) if name == "pow" else X
    for got, want in (
        (f(jnp.asarray(x), ours), f(x, y)),
        (f(ours, jnp.asarray(x)), f(y, x)),
        (calque.jit(lambda a: f(a, ours))(x), f(x, y)),
        (calque.jit(lambda a: f(ours, a))(x), f(y, x)),
    ):
        np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, float), rtol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_operators_of_whole_numbers(name):
    f = getattr(operator, name)
    for a, b in ((I, Y), (Y, np.abs(I)), (Y, 3)):
        if name.endswith("shift"):
            b = np.abs(b)
        np.testing.assert_array_equal(f(jnp.asarray(a), b), f(a, b))
        np.testing.assert_array_equal(f(b, jnp.asarray(np.abs(a))), f(b, np.abs(a)))
    np.testing.assert_array_equal(~jnp.asarray(I), ~I)


def test_two_results_and_products():
    q, r = divmod(jnp.asarray(I), 3)
    np.testing.assert_array_equal(q, I // 3)
    np.testing.assert_array_equal(r, I % 3)
    q, r = divmod(7, jnp.asarray(I))
    np.testing.assert_array_equal(q, 7 // I)
    np.testing.assert_array_equal(X @ jnp.asarray(X.T), X @ X.T)
    np.testing.assert_array_equal(abs(-jnp.asarray(X)), np.abs(X))
    assert round(jnp.float32(2.567), 2) == np.float32(2.57)
    whole = round(jnp.array([0.5, 1.5]))
    assert whole.dtype == np.int32 and whole.tolist() == [0, 2]
    assert calque.jit(round)(jnp.bfloat16(3.5)).dtype == np.int32
    assert round(jnp.uint8(3)).dtype == np.int32 and round(jnp.uint8(3), 1).dtype == np.uint8


class Own:
    """Knows what to do with arrays."""

    def __radd__(self, other):
        return "radd"

    def __add__(self, other):
        return "add"

    def __gt__(self, other):
        return "gt"


def test_operands_that_know_more_are_asked():
    x = jnp.asarray(X)
    assert x + Own() == "radd" and Own() + x == "add" and (x < Own()) == "gt"
    seen = []
    calque.jit(lambda v: seen.append(v + Own()) or v)(X)
    assert seen == ["radd"]
    assert isinstance(x, ArrayImpl) and (x == "text") is False


@pytest.mark.parametrize("other", [[1.0, 2.0, 3.0], (1, 2, 3), {1}, {"a": 1}, np.array(["a"])])
def test_containers_are_refused(other):
    x = jnp.asarray(X)
    for f in (lambda v: v + other, lambda v: other * v, lambda v: v < other):
        for g in (f, calque.jit(f)):
            with pytest.raises(TypeError, match=r"unsupported operand|not supported|must be"):
                g(x)
    with pytest.raises(TypeError, match=r"convert the list with jnp.array first"):
        x + [1.0, 2.0, 3.0]


OWN = ["astype", "reshape", "transpose", "nonzero", "view", "copy", "compress", "choose",
       "argpartition", "byteswap"]  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_own_methods_are_explained_where_help_looks(name):
    assert not lacks(attaching.METHODS[name])
    assert inspect.getdoc(getattr(calque.Array, name)) == inspect.getdoc(attaching.METHODS[name])
    assert getattr(jnp.ones(2), name).__doc__ == attaching.METHODS[name].__doc__
    assert getattr(jnp.ones(2), name).__name__ == name


def test_both_kinds_have_the_same_methods():
    for name in attaching.METHODS:
        assert hasattr(ArrayImpl, name) and hasattr(Tracer, name), name


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.astype(int),
        lambda x: x.astype(bool),
        lambda x: x.reshape(3, 2),
        lambda x: x.reshape((-1,)),
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.sum(0),
        lambda x: x.std(),
        lambda x: x.argmax(1),
        lambda x: x.flatten(),
        lambda x: x.squeeze(),
        lambda x: x.clip(0, 2),
        lambda x: x.byteswap().view("uint8"),
        lambda x: x.compress(np.array([True, False, True]), 1),
        lambda x: x.take(np.array([1, 4])),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.dot(x.T),
        lambda x: x.copy(),
        lambda x: x.view("int32"),
        lambda x: np.array([x.itemsize, x.nbytes, x.size, x.ndim, *x.shape]),
        lambda x: x.real,
        lambda x: np.stack([np.asarray(r) for r in x]),
        lambda x: x.nonzero()[0],
        lambda x: x[0].argpartition(1)[1],
        lambda x: x[1, ::2],
        lambda x: len(x),
    ],
)
def test_methods_as_numpy(f):
    want = f(X)
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(X))), want, rtol=1e-6)


def test_bytes_in_the_opposite_order():
    z = (X + 2j * X).astype(np.complex64)
    for a in (I.astype(np.int16), X, z, X > 0):
        assert np.asarray(jnp.asarray(a).byteswap()).tobytes() == a.byteswap().tobytes()
        assert (calque.jit(lambda v: v.byteswap().byteswap())(a) == a).all()
    with pytest.raises(NotImplementedError, match="immutable"):
        jnp.asarray(X).byteswap(inplace=True)


def test_conversions_of_dtypes():
    z = jnp.asarray(X) * (1 + 1j)
    with pytest.warns(DeprecationWarning, match="complex to real"):
        assert (z.astype("float32") == X).all()
    assert z.astype(bool).all() and jnp.zeros(2, complex).astype(bool).sum() == 0
    x = jnp.asarray(X)
    assert x.astype(None).dtype == np.float32
    assert jnp.array([0.5, 0]).astype(bool).tolist() == [1, 0]
    d = calque.devices()[0]
    assert x.astype(int, device=d).device is d
    assert x.astype("float32", copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "x",
    [jnp.asarray(X), jnp.zeros((0, 3), "bfloat16"), jnp.asarray(2), jnp.array(True)],
)
def test_copies_are_the_same_value_elsewhere(make, x):
    got = make(x)
    got = pickle.loads(got) if isinstance(got, bytes) else got
    assert got.aval is x.aval and (np.asarray(got) == np.asarray(x)).all()
    weak = calque.jit(lambda: 2.0)()
    again = pickle.loads(pickle.dumps(weak))
    assert weak.weak_type and again.weak_type
    key = calque.random.key(3)
    assert (calque.random.bits(copy.deepcopy(key)) == calque.random.bits(key)).all()


def test_scalars_of_python():
    assert bool(jnp.array([2])) and not jnp.array([[0]]) and int(jnp.array(3.7)) == 3
    assert [10, 20, 30][jnp.array(1)] == 20 and complex(jnp.array(2.0)) == 2 + 0j
    assert f"{jnp.float32(1.5):.2f} {jnp.arange(2)}" == "1.50 [0 1]"
    assert jnp.arange(3).tolist() == [0, 1, 2] and jnp.asarray(X).item(1, 2) == -1
    for f, words in (
        (lambda: bool(jnp.arange(2)), "more than one element"),
        (lambda: bool(jnp.zeros(0)), "empty array"),
        (lambda: int(jnp.arange(1)), "Only scalar arrays"),
        (lambda: [1][jnp.array(0.0)], "Only integer scalar arrays"),
        (lambda: len(jnp.array(1)), "unsized"),
        (lambda: iter(jnp.array(1)), "0-d array"),
        (lambda: hash(jnp.array(1)), "unhashable type"),
        (lambda: jnp.arange(2).flat, "no property flat"),
        (lambda: operator.setitem(jnp.arange(2), 0, 1), r"use x = x.at\[idx\].set"),
        (lambda: operator.delitem(jnp.arange(2), 0), "jnp.delete"),
        (lambda: 1 in jnp.asarray(X), "one-dimensional"),
        (lambda: jnp.arange(2) in jnp.arange(2), "must be a scalar"),
        (lambda: "a" in jnp.arange(2), "what is looked for is a number"),
        (lambda: jnp.arange(2).__array_namespace__(api_version="1999"), "not available"),
        (lambda: jnp.arange(2).__dlpack__(stream=1), "no streams"),
        (lambda: jnp.arange(2).__dlpack__(dl_device=(2, 0)), "not copied to"),
        (lambda: np.asarray(calque.random.key(0)), "random.key_data"),
        (lambda: jnp.arange(2).__array__(float, copy=False), "needs a copy"),
    ):
        with pytest.raises((TypeError, ValueError, NotImplementedError, BufferError), match=words):
            f()
    assert 1 in jnp.arange(3) and 5 not in jnp.arange(3)


@pytest.mark.parametrize(
    "x, want",
    [
        (jnp.arange(2.0), "Array([0., 1.], dtype=float32)"),
        (jnp.zeros((0, 2)), "Array([], shape=(0, 2), dtype=float32)"),
        (jnp.zeros(0, int), "Array([], dtype=int32)"),
        (jnp.array([[1], [2]]), "Array([[1],\n       [2]], dtype=int32)"),
    ],
)
def test_printed_forms(x, want):
    assert repr(x) == want and str(x) == str(np.asarray(x))
    assert repr(calque.jit(lambda: 2)()) == "Array(2, dtype=int32, weak_type=True)"
    wide = repr(jnp.arange(100.0))
    assert max(map(len, wide.split("\n"))) <= np.get_printoptions()["linewidth"]
    assert "overlaying" in repr(calque.random.key(0))


def test_deleted_arrays_say_so():
    x = jnp.arange(3.0)
    assert x.is_ready() and x.block_until_ready() is x and x.on_device_size_in_bytes() == 12
    x.delete()
    assert x.is_deleted()
    for f in (x.block_until_ready, x.tolist, x.unsafe_buffer_pointer, lambda: x + 1):
        with pytest.raises(RuntimeError, match="deleted"):
            f()


def test_dtypes_taken_from_arrays():
    with pytest.warns(DeprecationWarning, match=r"dtype=arr.dtype"):
        assert np.dtype(jnp.arange(2)) == np.int32
    assert calque.random.key(0)._base_array.shape == (2,)
    with pytest.raises(AttributeError, match="_base_array"):
        jnp.arange(2)._base_array


@pytest.mark.parametrize(
    ("old", "new"),
    [("complex64", "float32"), ("complex64", "int8"), ("uint8", "complex64"),
     ("int32", "complex64"), ("complex64", "uint32"), ("complex64", "complex64")],
)  # fmt: skip
def test_views_of_complex_numbers_are_those_of_their_parts(old, new):
    x = np.arange(16).reshape(2, 8).astype(old)
    for view in (lambda v: v.view(new), calque.jit(lambda v: v.view(new))):
        out = view(jnp.asarray(x))
        assert out.dtype == new
        assert out.tobytes() == x.view(new).tobytes()
        assert out.shape == x.view(new).shape


def test_views_of_types_that_share_a_byte():
    x = jnp.array([[1, 2, 3, 4]], "uint4")
    assert x.view("uint8").tolist() == [[0x21, 0x43]]
    assert x.view("uint8").view("uint4").tolist() == x.tolist()
    with pytest.raises(ValueError, match="must be a divisor"):
        x[:, :3].view("uint8")
