"""Mutable arrays: where their values live, and functions that are staged around them."""

import gc
import weakref

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ref import new_ref
from calque.transforms.primitives.refs import (
    AbstractRef,
    RefTouched,
    any_alive,
    refs_among,
    store,
    store_all,
    threaded,
    touched,
    touched_by,
    value_of,
    values_of,
    with_values_for_refs,
)

ONE = calque.typeof(jnp.float32(1))


def test_types_of_refs():
    a = AbstractRef(ONE)
    assert a == AbstractRef(ONE) and hash(a) == hash(AbstractRef(ONE))
    assert a != AbstractRef(ONE, kind="other")
    r = new_ref(jnp.ones((2, 3)))
    assert calque.typeof(r) == AbstractRef(calque.typeof(jnp.ones((2, 3))))
    assert repr(calque.typeof(r)) == "Ref{float32[2,3]}"


def test_which_refs_a_function_touches():
    a, b, c = (new_ref(jnp.float32(k)) for k in range(3))

    def f(x):
        own = new_ref(x)
        own[...] = own[...] + b[...]
        a[...] = own[...]
        return own[...]

    assert set(touched([(f, [ONE])])) == {a, b}
    assert [float(r[...]) for r in (a, b, c)] == [0, 1, 2]  # a trial leaves no trace
    assert touched([(lambda x: c[...] * jnp.ones(3) @ jnp.ones(2), [ONE])]) == [c]  # it ends there
    error = RefTouched("first")
    with pytest.raises(RefTouched, match="first"):
        touched_by(error, [(jnp.sin, (1.0,))])
    assert touched_by(error, [(lambda x: c[...] + x, (1.0,))]) == [c]


def test_values_go_in_and_come_back():
    r = new_ref(jnp.float32(1))

    def f(x):
        r[...] = r[...] * 2 + x
        return r[...] + 100

    inner = threaded(f, [r])
    assert inner.__name__ == "f" and inner.refs == [r]
    (last,), out = inner([jnp.float32(5)], 1.0)
    assert (float(last), float(out), float(r[...])) == (11, 111, 1)
    values, out = calque.jit(inner)(values_of([r]), 3.0)
    store_all([r], values)
    assert (float(r[...]), float(out)) == (5, 105)
    with pytest.raises(KeyError):
        threaded(lambda: {}["lost"], [r])([jnp.float32(9)])
    assert float(r[...]) == 5  # also when the function fails


def test_refs_among_arguments():
    r, s = new_ref(1.0), new_ref(2.0)
    assert refs_among([1, r, "x", s], "f") == [1, 3]
    with pytest.raises(ValueError, match="f was given the same Ref twice"):
        refs_among([r, s, r], "f")
    tree = calque.tree.structure(((0, 0), {}))
    f = with_values_for_refs(lambda r, x: r.__setitem__(..., x) or x + 1, tree, [0])
    values, out = f(jnp.float32(1), jnp.float32(7))
    assert ([float(v) for v in values], float(out)) == ([7], 8)


def test_values_of_other_levels_are_refused():
    r = new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match="every lane would write"):
        calque.vmap(lambda x: store(r, x * jnp.ones(3)))(jnp.arange(2.0))
    with pytest.raises(ValueError, match="differentiated or batched value"):
        calque.grad(lambda x: (store(r, x * jnp.ones(3)), x)[1])(1.0)
    assert value_of(r).tolist() == [0, 0, 0]


@pytest.mark.parametrize("how", ["scan", "while", "fori", "cond", "switch", "jit of all"])
def test_control_flow_carries_refs_from_outside(how):
    """As the same loop written in Python."""
    r, seen = new_ref(jnp.float32(1)), new_ref(jnp.zeros(4))

    def touch(i, c):
        r[...] = r[...] * 2 + c
        seen[i] = r[...]
        return c + 1

    def run(c):
        if how == "scan":
            return lax.scan(lambda c, i: (touch(i, c), None), c, jnp.arange(4))[0]
        if how == "while":
            return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, touch(*s)), (0, c))[1]
        if how == "fori":
            return lax.fori_loop(0, 4, touch, c)
        for i in range(4):
            if how == "switch":
                c = lax.switch(1, [lambda c: c, lambda c, i=i: touch(i, c)], c)
            else:
                c = lax.cond(c > -1, lambda c, i=i: touch(i, c), lambda c: c, c)
        return c

    out = (calque.jit(run) if how == "jit of all" else run)(jnp.float32(0.5))
    value, c, want = 1.0, 0.5, []
    for _ in range(4):
        value = value * 2 + c
        want.append(value)
        c += 1
    assert float(out) == c and float(r[...]) == value and seen[...].tolist() == want


def test_a_function_that_closes_over_a_ref_is_refused_where_nothing_carries_it():
    r = new_ref(jnp.float32(1))
    with pytest.raises(RefTouched, match=r"type Ref\{float32\[\]\}.*pass ref\[\.\.\.\]"):
        calque.eval_shape(lambda x: x + r[...], 1.0)


def test_indexes():
    r = new_ref(jnp.arange(6.0).reshape(2, 3))
    assert np.asarray(r[..., 1]).tolist() == [1, 4] and np.asarray(r[None]).shape == (2, 3)
    for bad in (2, (0, 3), (..., -4), (None, 2)):
        with pytest.raises(ValueError, match="Out of bound indexer"):
            r[bad]
    with pytest.raises(TypeError, match="unsized"):
        len(new_ref(1.0))


def test_refs_that_nobody_holds_are_forgotten():
    kept = new_ref(jnp.ones(2))
    place = weakref.ref(kept)
    assert any_alive()
    calque.jit(lambda r: r.__setitem__(0, 1.0))(kept)
    del kept
    gc.collect()
    assert place() is None


def test_lanes_read_what_they_may_not_write():
    """A Ref from outside within vmap, also where jit and loops give its value back unchanged."""
    r = new_ref(jnp.arange(3.0))
    rows = jnp.arange(2.0)
    reads = {
        "plain": lambda x: x + r[1],
        "jit": calque.jit(lambda x: x + r[1]),
        "scan": lambda x: lax.scan(lambda c, _: (c + r[1], None), x, length=1)[0],
        "while": lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, s[1] + r[1]),
                                          (0, x))[1],
        "cond": lambda x: lax.cond(x > -1, lambda: x + r[1], lambda: x),
    }  # fmt: skip
    for name, read in reads.items():
        np.testing.assert_array_equal(calque.vmap(read)(rows), [1, 2], err_msg=name)

    def write(x):
        r[0] = 5.0
        return x

    writes = {
        "plain": write,
        "jit": calque.jit(write),
        "scan": lambda x: lax.scan(lambda c, _: (write(c), None), x, length=1)[0],
        "cond": lambda x: lax.cond(True, write, lambda x: x, x),
    }
    for once in (False, True):
        for name, lane in writes.items():
            if once:
                lane(jnp.float32(1))  # traced before, outside of vmap
                r[0] = 0.0
            with pytest.raises(ValueError, match="every lane would write"):
                calque.vmap(lane)(rows)
            assert r[...].tolist() == [0, 1, 2], name
    own = calque.vmap(lambda s: s.__setitem__(0, 5.0) or s[0])(new_ref(jnp.zeros((2, 3))))
    assert own.tolist() == [5, 5]


def test_the_address_of_what_a_ref_holds():
    r = new_ref(jnp.arange(4.0))
    assert r.unsafe_buffer_pointer() == r[...].unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="no address"):
        calque.jit(lambda y: y.unsafe_buffer_pointer())(r)
