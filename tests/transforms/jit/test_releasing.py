"""What is given back when functions, and what they captured, are gone."""

import copy
import functools
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import calque
import calque.numpy as jnp
from calque.transforms.jit import identity

Gone = list[weakref.ref[Any]]


class Model:
    """An object of the user, which functions read."""

    def __init__(self) -> None:
        self.w = jnp.zeros(1000) + 2
        self.step: Any = None

    def go(self, x: Any) -> Any:
        return x * self.w


def closure_over_array() -> Gone:
    big = jnp.zeros(1000) + 1
    f = calque.jit(lambda y: y + big)
    f(1.0), f(1.0)
    return [weakref.ref(big)]


def closure_over_object() -> Gone:
    m = Model()
    f = calque.jit(lambda y: m.go(y))
    f(1.0), f(1.0)
    return [weakref.ref(m), weakref.ref(m.w)]


def bound_method() -> Gone:
    m = Model()
    f = calque.jit(m.go)
    f(1.0), f(1.0)
    return [weakref.ref(m), weakref.ref(m.w)]


def object_with_its_own_function() -> Gone:
    m = Model()
    m.step = calque.jit(lambda y: m.go(y))
    m.step(1.0), m.step(1.0)
    return [weakref.ref(m), weakref.ref(m.w)]


def object_with_its_own_method() -> Gone:
    m = Model()
    m.step = calque.jit(m.go)
    m.step(1.0), m.step(1.0)
    return [weakref.ref(m), weakref.ref(m.w)]


def gradient() -> Gone:
    big = jnp.zeros(1000) + 1
    f = calque.jit(calque.grad(lambda y: (y * big).sum()))
    f(1.0), f(1.0)
    return [weakref.ref(big)]


def function_in_a_function() -> Gone:
    big = jnp.zeros(1000) + 1
    g = calque.jit(lambda y: y + big)
    f = calque.jit(lambda y: g(y) * 2)
    f(1.0), f(1.0)
    return [weakref.ref(big)]


def static_argument() -> Gone:
    m = Model()
    f = calque.jit(lambda x, n: x + n.w, static_argnums=1)
    f(1.0, m), f(1.0, m)
    return [weakref.ref(m)]


def eager() -> Gone:
    big = jnp.zeros(1000) + 1
    calque.lax.fori_loop(0, 3, lambda i, x: x + big, jnp.zeros(1000))
    calque.vmap(lambda x: x + big)(jnp.zeros((3, 1000)))
    calque.grad(lambda x: (x * big).sum())(jnp.ones(1000))
    return [weakref.ref(big)]


KINDS = [
    closure_over_array,
    closure_over_object,
    bound_method,
    object_with_its_own_function,
    object_with_its_own_method,
    gradient,
    function_in_a_function,
    static_argument,
    eager,
]


def others(count: int) -> None:
    """So many functions that capture an array of their own."""
    for _ in range(count):
        a = jnp.zeros(3)
        calque.jit(lambda y, a=a: y + a)(1.0)
        calque.jit(lambda y: y + a)(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_functions_captured_goes_with_them(kind: Callable[[], Gone]) -> None:
    gone = kind()
    others(identity._CAPTURING)
    gc.collect()
    assert [r() is None for r in gone] == [True] * len(gone)


def test_forgetting_programs_frees_what_they_captured() -> None:
    gone = closure_over_object()
    calque.clear_caches()
    gc.collect()
    assert all(r() is None for r in gone)


def test_functions_that_captured_much_are_not_kept() -> None:
    def make() -> Gone:
        big = jnp.zeros(identity._CAPTURED_BYTES // 4 + 1)
        f = calque.jit(lambda y: (y + big)[0])
        f(1.0), f(1.0)
        return [weakref.ref(big)]

    (gone,) = make()
    gc.collect()
    assert gone() is None


VALUE: Any = None


def test_captured_values_that_were_replaced_go() -> None:
    global VALUE
    f = calque.jit(lambda y: y + VALUE, on_stale="retrace")
    values = []
    for k in range(20):
        VALUE = jnp.zeros(100) + k
        values.append(weakref.ref(VALUE))
        assert float(f(1.0)[0]) == float(f(1.0)[0]) == k + 1.0
    gc.collect()
    assert sum(r() is not None for r in values) <= 6
    VALUE = None


def test_values_that_come_back_find_their_programs() -> None:
    global VALUE
    f = calque.jit(lambda y: y * VALUE, on_stale="retrace")
    first, second = jnp.zeros(3) + 1, jnp.zeros(3) + 2
    for value in (first, second):
        VALUE = value
        f(1.0)
    traces = calque.stats()["traces"]
    for value in (first, second) * 5:
        VALUE = value
        assert float(f(1.0)[0]) == float(value[0])
    assert calque.stats()["traces"] == traces
    VALUE = None


def test_a_function_keeps_its_programs_while_it_lives() -> None:
    scale = jnp.zeros(3) + 3

    def f(x: Any) -> Any:
        return x * scale

    calque.jit(f)(1.0)
    traces = calque.stats()["traces"]
    others(identity._CAPTURING)
    made = calque.stats()["traces"]
    assert made > traces
    calque.jit(f)(1.0)
    assert calque.stats()["traces"] == made


def test_a_wrapper_that_took_the_attributes_is_another_function() -> None:
    def f(x: float) -> Any:
        return x + 1

    assert float(calque.jit(f)(1.0)) == 2.0

    @functools.wraps(f)
    def g(x: float) -> Any:
        return f(x) * 10

    assert float(calque.jit(g)(1.0)) == 20.0 and float(calque.jit(f)(1.0)) == 2.0
    own = f.__dict__[identity._ATTRIBUTE]
    assert pickle.loads(pickle.dumps(own)).caches == {} == copy.copy(own).caches


def compiled(n: int) -> None:
    def f(x: Any) -> Any:
        for b in range(8):
            x = jnp.sin(x) + 1 if n >> b & 1 else x * 2 - jnp.abs(x)
        return x

    calque.jit(f)(jnp.arange(10.0))


def test_the_code_of_dropped_functions_is_given_back() -> None:
    for n in range(60):
        compiled(n)
    full = calque.stats()["bytes_of_code"]
    calque.clear_caches()
    gc.collect()
    empty = calque.stats()["bytes_of_code"]
    assert full - empty >= 60 * 4096
    for _ in range(2):  # and taken again for the next ones
        for n in range(60):
            compiled(n)
        assert calque.stats()["bytes_of_code"] <= full
        calque.clear_caches()
        gc.collect()
        assert calque.stats()["bytes_of_code"] <= empty
