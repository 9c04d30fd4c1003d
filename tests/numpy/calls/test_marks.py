"""Which library functions machine code serves: their definitions say so."""

from typing import Any

import pytest

import calque.numpy as jnp
from calque.core.arrays import ArrayImpl
from calque.machine.call import functions as callpath
from calque.numpy.calls import cached
from calque.numpy.calls.cached import Teacher, with_call_path
from calque.numpy.calls.marks import (
    is_python_only,
    is_seldom_taught,
    python_only,
    seldom_taught,
)


def f(x):
    return x + 1


f.__module__ = "calque.numpy.somewhere"


def teacher_of(function: Any) -> Teacher:
    miss = function._miss
    teacher: Teacher = getattr(miss, "__wrapped__", miss).__self__
    return teacher


def test_functions_of_the_library_have_call_paths() -> None:
    assert type(with_call_path("f", f)) is callpath.Jitted
    assert with_call_path("_f", f) is f and with_call_path("int8", int) is int
    assert with_call_path("f", callpath.is_fraction) is callpath.is_fraction


def test_those_of_python_have_none() -> None:
    @python_only
    def g(x):
        return x

    g.__module__ = "calque.numpy.somewhere"
    assert is_python_only(g) and not is_seldom_taught(g) and with_call_path("g", g) is g


@pytest.mark.parametrize(
    "name",
    ["array", "asarray", "shape", "ndim", "unique", "nonzero", "power", "pow", "float_power"]
    + ["result_type", "save", "vectorize", "einsum_path", "from_dlpack", "broadcast_shapes"],
)
def test_functions_of_python(name: str) -> None:
    assert type(getattr(jnp, name)) is not callpath.Jitted


@pytest.mark.parametrize("name", ["sum", "exp", "sort", "zeros", "where", "linspace", "conj"])
def test_served_functions(name: str) -> None:
    assert type(getattr(jnp, name)) is callpath.Jitted
    assert teacher_of(getattr(jnp, name)).seldom == (name in ("zeros", "linspace"))


def test_methods() -> None:
    """As functions of the namespace; what is Python's own is a plain method."""
    for name in ("sum", "sort", "ptp", "conjugate", "astype", "reshape", "copy"):
        assert type(getattr(ArrayImpl, name)) is callpath.Jitted, name
    assert type(ArrayImpl.T.fget) is callpath.Jitted
    for name in ("nonzero", "view", "tolist", "__len__", "__iter__"):
        assert type(getattr(ArrayImpl, name)) is not callpath.Jitted, name
    x = jnp.array([3.0, 1.0, 2.0])
    for _ in range(3):
        assert x.sort().tolist() == [1, 2, 3] and x.ptp().tolist() == 2
        assert x.searchsorted(jnp.array([2.5])).tolist() == [3]


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
def test_what_is_seldom_taught_is_taught_after_many_calls() -> None:
    @seldom_taught
    def made(n):
        return jnp.ones((n,))

    asked = []

    def counted(n):
        asked.append(n)
        return made(n)

    function = cached.cached(seldom_taught(counted))
    assert teacher_of(function).seldom
    for _ in range(3 * cached.TURNS):
        assert function(2).shape == (2,)
    assert cached.TURNS < len(asked) <= cached.TURNS + 4 and callpath.entry_count(function) == 1
