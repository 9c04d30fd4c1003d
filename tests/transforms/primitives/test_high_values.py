"""Changing values above arrays, seen by the traces that touch them."""

import gc

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.trace import HIGH_TYPES
from calque.experimental import cur_qdd, hijax
from calque.transforms.primitives import high_values


class Box:
    """One array that can be replaced."""

    __slots__ = ("inside",)

    def cur_qdd(self):
        return calque.typeof(self.inside)

    def get(self):
        return get_p.bind(self)

    def set(self, x):
        set_p.bind(self, x)


class BoxType(hijax.MutableHiType):
    def __hash__(self):
        return hash(BoxType)

    def __eq__(self, other):
        return isinstance(other, BoxType)

    def read_loval(self, state, box):
        return [box.inside]

    def new_from_loval(self, state, x):
        box = Box()
        box.inside = x
        return box

    def update_from_loval(self, state, box, x):
        box.inside = x


class _New(hijax.HiPrimitive):
    def to_lojax(self, x):
        return BoxType().new_from_loval(None, x)


class _Get(hijax.HiPrimitive):
    def to_lojax(self, box):
        return box.inside


class _Set(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box, x):
        box.inside = x
        return []


new_p, get_p, set_p = _New("new_box"), _Get("get_box"), _Set("set_box")


@pytest.fixture(autouse=True)
def registered():
    hijax.register_hitype(Box, lambda b: BoxType())
    yield
    del HIGH_TYPES[Box]


def test_a_value_that_a_program_makes_is_seen_by_loops_in_it():
    @calque.jit
    def f(x):
        box = new_p.bind(x)
        lax.fori_loop(0, 3, lambda i, _: box.set(box.get() * 2), None)
        return box.get() + 1

    assert f(jnp.float32(1.0)) == 9.0 and f(jnp.float32(2.0)) == 17.0
    assert calque.grad(f)(1.0) == 8.0


def test_an_argument_is_seen_by_loops_in_the_function():
    @calque.jit
    def f(box):
        def step(carry, x):
            box.set(box.get() + x)
            return carry, None

        lax.scan(step, None, jnp.arange(4.0))

    box = new_p.bind(jnp.float32(1.0))
    f(box)
    f(box)
    assert box.get() == 13.0


def test_a_function_closes_over_one_value_and_takes_another():
    held = new_p.bind(jnp.float32(1.0))

    @calque.jit
    def f(box):
        held.set(held.get() + box.get())
        box.set(held.get())

    box = new_p.bind(jnp.float32(2.0))
    f(box)
    f(box)
    assert box.get() == 6.0 and held.get() == 6.0


def test_another_type_of_what_is_inside_has_a_program_of_its_own():
    traces = []

    @calque.jit
    def f(box):
        traces.append(cur_qdd(box))
        box.set(box.get() * 2)

    for x in (jnp.float32(1.0), jnp.ones(3, int), jnp.float32(4.0)):
        box = new_p.bind(x)
        f(box)
        np.testing.assert_array_equal(box.get(), 2 * np.asarray(x))
        assert box.get().dtype == x.dtype
    assert len(traces) == 2


def test_results_above_arrays_in_containers():
    @calque.jit
    def f(x):
        return {"box": new_p.bind(x * 2), "x": x}

    held = new_p.bind(jnp.float32(0.0))
    out = calque.jit(lambda b, x: (f(x), b))(held, 3.0)
    assert isinstance(out[0]["box"], Box) and out[0]["box"].get() == 6.0 and out[1] is held


def test_values_that_nobody_holds_are_forgotten():
    def step(x):
        return new_p.bind(x).get() * 2

    for _ in range(4 * high_values._MANY):
        calque.grad(step)(1.0)
    gc.collect()
    assert len(high_values._known) <= high_values._MANY
