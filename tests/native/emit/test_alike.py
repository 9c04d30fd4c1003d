"""Loops that differ in numbers only share their code."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.code import diskcache
from calque.machine.records import replace
from calque.native.emit import alike, kernels, making
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Acc, For, Let, Store
from calque.native.scalars.expr import Buffer, const, ex, load, ref, var


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def moved(offset, size, kind="serial", factor=None):
    """out[i] = 2 * x[i + offset], or x[i * factor + offset]."""
    n = var(size)
    x, out = Buffer("x", (n,), "f32"), Buffer("out", (n,), "f32")
    i = var("i", n)
    at = i if factor is None else ex("mul", i, const(factor))
    value = ex("mul", load(x, (ex("add", at, const(offset)),)), const(2.0, "f32"))
    return (For(i, (Store(out, (i,), value),), kind=kind, width=8 if kind == "vector" else 1),)


def common(*bodies):
    return alike.common(bodies, [canonical(b) for b in bodies])


def in_groups(*bodies):
    return alike.in_groups(bodies, [canonical(b) for b in bodies])


def test_numbers_and_sizes_become_arguments():
    bodies = moved(16, "s100"), moved(48, "s100"), moved(48, "s200")
    made = common(*bodies)
    assert in_groups(*bodies) == [[0, 1, 2]]
    assert sorted(map(str, made.arguments[0])) == ["16", "s100"]
    assert sorted(map(str, made.arguments[1])) == ["48", "s100"]
    assert sorted(map(str, made.arguments[2])) == ["48", "s200"]
    fresh = {name: {a[k] for a in made.arguments} for k, name in enumerate(made.order.sizes)}
    powers = made.values({"s100": 100, "s200": 200})
    assert {powers[name] for name, given in fresh.items() if 16 in given} == {16}
    assert {powers[name] for name, given in fresh.items() if "s100" in given} == {100}


def test_what_all_have_stays_in_the_code():
    made = common(moved(16, "s100"), moved(16, "s200"))
    assert [len(a) for a in made.arguments] == [1, 1]
    assert "i64 16" in made.order.key


def test_numbers_that_are_not_positive_keep_their_sign():
    """A size is never negative, which index algebra relies on."""
    made = common(moved(-3, "s100"), moved(-5, "s100"))
    assert sorted(map(str, made.arguments[0])) == ["3", "s100"]
    assert "sub i64" in made.order.key
    assert common(moved(-3, "s100"), moved(5, "s100")) is None


def test_steps_of_vectors_are_part_of_the_code():
    """Every second element is read otherwise than every third one."""
    assert common(moved(1, "s100", "vector", 2), moved(1, "s100", "vector", 3)) is None
    assert common(moved(1, "s100", "serial", 2), moved(1, "s100", "serial", 3)) is not None
    assert not in_groups(moved(1, "s9", "vector", 2), moved(1, "s9", "vector", 3))


def test_other_loops_are_not_alike():
    plain = moved(16, "s100")
    (loop,) = plain
    (store,) = loop.body
    named = (For(loop.var, (Let("v", store.value), Store(store.buf, store.idx, ref("v", "f32")))),)
    summed = (For(loop.var, loop.body, (Acc("a", "sum", store.value, order="sequential"),)),)
    for other in (named, summed, (loop, loop), moved(16, "s100", "vector")):
        assert common(plain, other) is None
        assert not in_groups(plain, other)
    twice = ex("mul", store.value, const(3.0, "f32"))
    assert common(plain, (For(loop.var, (Store(store.buf, store.idx, twice),)),)) is None


def products(a, b, c):
    """The same loops, once over two equal sizes."""
    return jnp.tanh(a @ b), jnp.tanh(a @ c)


@pytest.fixture
def no_disk(monkeypatch):
    monkeypatch.setenv("CALQUE_CACHE", "off")
    diskcache.reload()
    yield
    monkeypatch.undo()
    diskcache.reload()


def compiled(long, monkeypatch):
    """Results, and the codes of their kernels, where keys of this length are long."""
    monkeypatch.setattr(making, "_LONG", long)
    calque.clear_caches()
    args = normal(96, 600), normal(600, 96), normal(600, 64)
    made = calque.jit(lambda *args: products(*args)).lower(*args).compile()
    codes = {c.symbol for c in kernels.known()}
    return calque.tree_util.tree_leaves(made(*args)), codes


def test_products_share_their_code_and_keep_their_bits(no_disk, monkeypatch):
    shared, few = compiled(1, monkeypatch)
    alone, many = compiled(1 << 30, monkeypatch)
    assert len(few - many) < len(many - few)
    for a, b in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_brought_near_is_part_of_a_loop():
    def bringing(offset, *ahead):
        (loop,) = moved(16, "s100")
        x = next(iter(loop.body[0].value.bufs))
        at = ex("min", ex("add", loop.var, const(offset)), ex("sub", loop.extent, const(1)))
        return (replace(loop, ahead=(load(x, (at,)),) if ahead else ()),)

    near, far, without = bringing(1, 1), bringing(200, 1), bringing(1)
    assert in_groups(near, far, without) == [[0, 1]]
    made = common(near, far)
    assert ["200" in map(str, a) for a in made.arguments] == [False, True]
