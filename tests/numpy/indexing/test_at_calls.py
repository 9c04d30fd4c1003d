"""Eager updates and reads by `x.at[...]` that machine code has learned."""

import warnings

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.machine.call import functions as callpath
from calque.numpy.calls import cached
from calque.numpy.indexing import at_calls
from calque.numpy.indexing.at import Updates
from calque.ops import scatter_functions as scatters

needs_learning = pytest.mark.skipif(
    not callpath.LEARNS, reason="without machine code every call asks Python"
)
X = np.arange(24.0, dtype=np.float32).reshape(4, 6)
SCATTERS = {
    "set": scatters.scatter,
    "add": scatters.scatter_add,
    "subtract": scatters.scatter_sub,
    "multiply": scatters.scatter_mul,
    "min": scatters.scatter_min,
    "max": scatters.scatter_max,
}
INDICES = {
    "a place": (2,),
    "before the end": -1,
    "two places": (1, -2),
    "far places": (7, 2),
    "an array": (jnp.array([0, 2, 2]),),
    "short and outside": jnp.array([3, -1, 9, -9], jnp.int8),
    "arrays": (jnp.array([[0], [1]]), jnp.array([1, 5])),
    "a slice": slice(1, 3),
    "steps backwards": (slice(None, None, -2), 3),
    "all but one axis": (..., 0),
    "a new axis": (None, 1, slice(2, None)),
    "everything": (),
    "mixed": (jnp.array([1, 0]), slice(0, 4, 2)),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("does", SCATTERS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64], ids=str)
def test_what_is_learned_gives_what_python_gives(does, name, dtype, monkeypatch):
    monkeypatch.setattr(cached, "OFTEN", 2)
    index = INDICES[name]
    for k in range(7):
        x = jnp.asarray((X + k).astype(dtype))
        got = getattr(x.at[index], does)(3)
        wanted = Updates(x, index)._update(SCATTERS[does], 3, False, False, None)
        assert got.dtype == wanted.dtype and got.weak_type == wanted.weak_type
        assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
        read = x.at[index].get()
        assert np.asarray(read).tobytes() == np.asarray(x[index]).tobytes()


@needs_learning
def test_places_differ_from_call_to_call(monkeypatch):
    """All of them, and values, are served by the same program."""
    monkeypatch.setattr(cached, "OFTEN", 2)
    taught = []
    teach = cached.Teacher.teach
    monkeypatch.setattr(
        cached.Teacher, "teach", lambda self, *a: taught.append(1) or teach(self, *a)
    )
    x = jnp.asarray(X[0, :5])
    for k in range(-12, 12):
        wanted = X[0, :5].copy()
        if -5 <= k < 5:
            wanted[k] += k / 2
        assert np.array_equal(x.at[k].add(k / 2), wanted)
    assert len(taught) < 8


def test_what_is_not_learned():
    x = jnp.asarray(X)
    assert at_calls.call_of(x, (jnp.array([True] * 4),)) is None  # how many is not known
    assert at_calls.call_of(x, ([0, 1],)) is None
    assert at_calls.call_of(x, 2**31) is None
    assert at_calls.call_of(jnp.zeros((0, 3)), 1) is None
    assert at_calls.call_of(calque.random.key(0)[None], 0) is None
    assert at_calls.call_of(X, 0) is None
    assert not at_calls.suits(jnp.arange(3), 1.5)
    assert not at_calls.suits(jnp.arange(3), True)
    assert not at_calls.suits(jnp.arange(3, dtype=jnp.uint32), 2**32 - 1)
    assert not at_calls.suits(x, jnp.arange(3))


def test_an_index_is_what_it_was():
    i = jnp.array([1, 2])
    for index in ((3, None, ..., slice(1, None, -2), i), (), (slice(None),), (i, 0, i)):
        call = at_calls.call_of(jnp.zeros((2,) * 8), index)
        assert at_calls.index_of(*call) == index


def test_refusals_and_warnings_come_each_time(monkeypatch):
    monkeypatch.setattr(cached, "OFTEN", 2)
    x = jnp.arange(3)
    for _ in range(6):
        with pytest.raises(ValueError, match="Incompatible shapes"):
            jnp.asarray(X).at[0].set(jnp.ones(4))
        with pytest.raises(IndexError):
            x.at[0, 1].set(5)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x.at[1].set(1.5)
        assert any("incompatible types" in str(w.message) for w in found)


def test_traced_updates_are_recorded():
    x = jnp.asarray(X)
    program = calque.make_jaxpr(lambda v: x.at[jnp.array([1, 2])].add(v))(1.0)
    assert "scatter-add" in str(program)
    slope = calque.grad(lambda v: (x.at[1, 2].multiply(v) ** 2).sum())(2.0)
    assert slope == 2 * 2.0 * X[1, 2] ** 2


def test_checked_places_are_still_checked(monkeypatch):
    monkeypatch.setattr(cached, "OFTEN", 2)
    x, i = jnp.asarray(X), jnp.array([9])
    for _ in range(5):
        x.at[i].add(1.0)
    with config.override("debug_index", True):
        for _ in range(4):
            with pytest.raises(IndexError):
                x.at[i].add(1.0)
