"""Views of Refs: parts, other shapes, orders and dtypes, and views as arguments."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.transforms.primitives.ref_views import TransformedRef


def filled():
    return np.arange(24, dtype=np.float32).reshape(4, 3, 2)


VIEWS = {
    "part": lambda r: r.at[1:3],
    "row": lambda r: r.at[2],
    "part of a part": lambda r: r.at[0:4, 0:3].at[1:3, :, 0],
    "places": lambda r: r.at[np.array([2, 0])],
    "new axis": lambda r: r.at[None, 1],
    "dynamic": lambda r: r.at[calque.ds(1, 2)],
    "shape": lambda r: r.reshape(2, -1),
    "shape of a part": lambda r: r.at[1].reshape((6,)),
    "part of a shape": lambda r: r.reshape(-1).at[5:9],
    "order": lambda r: r.transpose(2, 0, 1),
    "turned": lambda r: r.T,
    "part of an order": lambda r: r.transpose((1, 0, 2)).at[1],
    "bits": lambda r: r.bitcast(np.int32),
    "narrower bits": lambda r: r.bitcast(np.int16),
    "bits of a part": lambda r: r.at[1:3].bitcast(np.uint32).at[0],
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_what_is_written_through_a_view_is_read_through_it(name, jitted):
    def run(value):
        ref = calque.new_ref(value)
        view = VIEWS[name](ref)
        assert isinstance(view, TransformedRef)
        before = view[...]
        assert (view.shape, view.dtype, view.ndim) == (before.shape, before.dtype, before.ndim)
        assert view.size == before.size and view.type.shape == view.shape
        old = view.swap(before + 1)
        view.addupdate(jnp.ones_like(view))
        return before, old, view.get(), ref[...]

    before, old, after, whole = (calque.jit(run) if jitted else run)(filled())
    np.testing.assert_array_equal(before, old)
    np.testing.assert_array_equal(after, before + 2)
    changed = np.asarray(whole) != filled()
    per_element = 4 // np.asarray(before).dtype.itemsize
    assert changed.sum() == np.asarray(before).size // per_element


def test_the_bits_of_pairs_of_rows():
    ref = calque.new_ref(jnp.arange(8, dtype=jnp.uint16).reshape(4, 2))
    wide = ref.bitcast(np.uint32)
    assert wide.shape == (2, 2)
    np.testing.assert_array_equal(wide[...], [[2 << 16, 1 | 3 << 16], [4 | 6 << 16, 5 | 7 << 16]])
    wide[0, 1] = jnp.uint32(9)
    assert ref[...].tolist() == [[0, 9], [2, 0], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="do not make whole ones"):
        calque.new_ref(jnp.zeros((3, 2), jnp.uint16)).bitcast(np.uint32)
    with pytest.raises(NotImplementedError, match="two axes"):
        calque.new_ref(jnp.zeros(4, jnp.uint16)).bitcast(np.uint32)


def test_places_that_are_added_to_twice():
    ref = calque.new_ref(jnp.zeros((2, 3)))
    ref.at[1].addupdate(jnp.ones(3), np.array([0, 0, 2]))
    calque.ref.addupdate(ref.at[0], 1, 5.0)
    assert ref[...].tolist() == [[0, 5, 0], [2, 0, 1]]


def test_functions_of_refs_take_views():
    ref = calque.new_ref(jnp.arange(4.0))
    view = ref.at[1:]
    calque.ref.set(view, 0, 7.0)
    assert calque.ref.swap(view, 1, 8.0) == 2 and calque.ref.get(view).tolist() == [7, 8, 3]
    assert [float(v) for v in view] == [7, 8, 3] and len(view) == 3
    assert "TransformedRef" in repr(view)
    for wrong in (calque.freeze, calque.free_ref):
        with pytest.raises(ValueError, match="on a Ref"):
            wrong(view)
    with pytest.raises(TypeError, match="read its value first"):
        np.asarray(view)
    with pytest.raises(TypeError, match="not a Ref"):
        calque.new_ref(view)


def test_mistakes_at_views():
    ref = calque.new_ref(jnp.zeros((4, 2)))
    with pytest.raises(ValueError, match="Out of bound"):
        ref.at[4]
    with pytest.raises(ValueError, match="Out of bound"):
        ref.at[1:3][2]
    with pytest.raises(ValueError, match="Expected shape: \\(2, 2\\)"):
        ref.at[1:3][...] = jnp.ones(2)
    with pytest.raises(ValueError, match="Invalid dtype"):
        ref.at[1:3][...] = jnp.ones((2, 2), jnp.int32)
    with pytest.raises(ValueError, match="no order of the axes"):
        ref.transpose(0, 0)
    with pytest.raises(TypeError):
        ref.reshape(3, 3)


def _scan(f):
    return lambda view: lax.scan(lambda c, _: (f(view), c)[1:] and (c, None), 0, None, length=1)[0]


TRANSFORMS = {
    "jit": calque.jit,
    "checkpoint": calque.checkpoint,
    "cond": lambda f: lambda view: lax.cond(True, f, f, view),
    "scan": _scan,
    "while_loop": lambda f: (
        lambda view: lax.while_loop(lambda i: i < 1, lambda i: (f(view), i + 1)[1], 0)
    ),
    "dict": lambda f: lambda view: calque.jit(lambda d: f(d["view"]))({"view": view, "n": 1}),
}


@pytest.mark.parametrize("outer", [calque.jit, lambda f: f], ids=["jit", "eager"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_views_as_arguments(name, outer):
    def body(view):
        view[...] += 17 * jnp.ones(5)

    def f(start):
        ref = calque.new_ref(jnp.zeros(7))
        TRANSFORMS[name](body)(ref.at[1:6])
        TRANSFORMS[name](body)(ref.at[calque.ds(start, 5)])
        return ref[...]

    assert outer(f)(2).tolist() == [0, 17, 34, 34, 34, 34, 17]


def test_gradients_through_views():
    def f(x):
        ref = calque.new_ref(jnp.ones(5))
        ref.at[1:4][...] += x
        ref.reshape(5, 1).at[2].addupdate(x[:1])
        return (ref[...] ** 2).sum()

    x = jnp.array([1.0, 2.0, 3.0])
    for grad in (calque.grad(f), calque.jit(calque.grad(f))):
        assert grad(x).tolist() == [4 + 8, 8, 8]


UNREAD_BY_JAX = ("new axis", "dynamic", "order", "turned", "part of an order")
WRITTEN_BY_JAX = ("part", "row", "part of a part", "places")  # it only reads through the others


@pytest.mark.peer
@pytest.mark.parametrize("name", [n for n in VIEWS if n not in UNREAD_BY_JAX])
def test_jax_reads_and_writes_the_same(name):
    jax = pytest.importorskip("jax")

    def run(m):
        def f(value):
            ref = m.new_ref(value)
            view = VIEWS[name](ref)
            if name in WRITTEN_BY_JAX:
                view[...] = view[...] * 2
            return view[...], ref[...]

        return m.jit(f)(filled())

    for ours, theirs in zip(run(calque), run(jax), strict=True):
        np.testing.assert_array_equal(ours, theirs)
