"""Reads that are the value stored before."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.loops.tree import Store
from calque.native.scalars.expr import Buffer, const, ex, load, select, var
from calque.native.schedule.forwarding import StoreForwarding


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("method", ["multiply", "add", "max"])
def test_an_element_that_is_updated_from_itself_is_read_again(place: int, method: str) -> None:
    """before: t[2] = t[2] * 3; y = t[0] + t[1] + t[2]      not: y = t[0] + t[1] + t[2] * 3, where t
    has been written"""
    x = np.array([1.0, 2.0, 3.0], np.float32)

    def f(x: Any) -> Any:
        v = getattr(x.at[place], method)(3.5)
        return v.sum(-1, keepdims=True) + 0 * v

    np.testing.assert_array_equal(np.asarray(calque.jit(f)(x)), np.asarray(f(jnp.asarray(x))))
    a, b = Buffer("a", (const(3),), "f32"), Buffer("b", (const(3),), "f32")
    two = const(2)
    own = Store(a, (two,), ex("mul", load(a, (two,)), load(a, (const(1),))))
    other = Store(a, (two,), load(a, (const(1),)))
    use = Store(b, (two,), load(a, (two,)))
    for first, read in ((own, two), (other, const(1))):
        _, after = StoreForwarding(frozenset((a,))).body((first, use))
        assert isinstance(after, Store) and after.value is load(a, (read,))


def test_what_is_read_under_a_guard_is_0_elsewhere() -> None:
    """before: t[i] = i; y[i] = t[i] if i < 2      after: y[i] = i if i < 2 else 0"""
    i = var("i", 5)
    t, y = Buffer("t", (const(5),), "i64"), Buffer("y", (const(5),), "i64")
    early = ex("lt", i, const(2))
    inside = ex("lt", load(t, (i,)), const(7))  # a guard that reads, too
    for guard, want in ((early, early), (inside, ex("lt", i, const(7)))):
        body = (Store(t, (i,), i), Store(y, (i,), load(t, (i,), guard)))
        _, after = StoreForwarding(frozenset((t,))).body(body)
        assert isinstance(after, Store) and after.value is select(want, i, const(0))
