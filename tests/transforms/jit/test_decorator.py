"""What `jit` and the other transformations take and refuse; compiler options; reprs."""

import copy
import functools
import pickle

import numpy as np
import pytest

import calque as jax
from calque import lax
from calque.machine.call import functions as callpath


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap, jax.make_jaxpr, jax.checkpoint])
def test_what_is_no_function_is_refused(transform):
    def gen(x):
        yield x

    for bad, message in [
        (3, "Expected a callable value"),
        (gen, "Expected a function, got a generator function"),
        (staticmethod(abs), "staticmethod arguments are not supported"),
    ]:
        with pytest.raises(TypeError, match=message):
            transform(bad)


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
def test_names_that_cannot_be_given_by_name_are_refused(option):
    def f(a, /, b, *rest, **others):
        pass

    jax.jit(f, **{option: ("b", "anything")})
    for name in ("a", "rest"):
        with pytest.raises(ValueError, match="invalid argnames"):
            jax.jit(f, **{option: name})


def test_names_need_a_signature():
    class Nameless:
        __signature__ = property(lambda self: 1 / 0)

        def __call__(self, *args):
            return args[0]

    with pytest.raises((ValueError, ZeroDivisionError)):
        jax.jit(Nameless(), donate_argnames="a")


def test_positions_and_names_that_are_both_given_are_taken_as_they_are():
    def f(x, y):
        return isinstance(x, jax.core.Tracer), isinstance(y, jax.core.Tracer)

    g = jax.jit(lambda x, y: np.array(f(x, y)), static_argnums=(1,), static_argnames="x")
    assert g(2, 3).tolist() == [True, False]
    assert g(2, y=3).tolist() == [True, True]
    assert g(x=2, y=3).tolist() == [False, True]


def test_machine_code_does_not_serve_another_axis():
    size = jax.jit(lambda: lax.axis_size("i"))
    for n in (2, 3, 2):
        assert int(jax.vmap(size, axis_name="i", axis_size=n, out_axes=None)()) == n
    assert callpath.entry_count(size) == 0


def test_what_a_jitted_function_shows():
    def f(x):
        return x

    f.note = 4
    assert jax.jit(f).note == 4 and repr(jax.jit(f)) == f"<PjitFunction of {f!r}>"

    class Silent:
        def __call__(self):
            pass

        def __repr__(self):
            raise ValueError("no repr")

    assert repr(jax.jit(Silent())) == "<PjitFunction>"
    again = jax.jit(functools.partial(jax.jit(f)))
    assert again(3) == 3


def test_masked_arrays_are_refused():
    masked = np.ma.array([1, 2], mask=[True, False])
    with pytest.raises(ValueError, match="numpy masked arrays are not supported"):
        jax.jit(lambda x: x)(masked)


def by_name(x):
    return x + 1


jitted_by_name = jax.jit(by_name)
named = jax.jit(functools.wraps(by_name)(lambda x: x + 2))
named.__qualname__ = "named"


def test_pickles_hold_a_name_or_the_function():
    assert pickle.loads(pickle.dumps(named)) is named
    other = pickle.loads(pickle.dumps(jitted_by_name))  # its name leads to the plain function
    assert other is not jitted_by_name and other(1.0) == 2.0 and other.__name__ == "by_name"
    static = jax.jit(by_name, static_argnums=0, inline=True)
    again = pickle.loads(pickle.dumps(static))
    assert again(3) == 4 and again.trace(3).jaxpr.in_avals == []
    assert copy.copy(static) is static and copy.deepcopy(static) is static


def test_libraries_find_the_name_of_the_function():
    def f(x):
        return x

    named = functools.partial(f)
    named.__name__ = "named"
    for given, name in ((f, "f"), (functools.partial(functools.partial(f)), "f"), (named, "named")):
        assert jax.jit(given).__getstate__()["function_name"] == name
    assert jax.jit(lambda: 1).__getstate__()["function_name"] == "<lambda>"
    assert jax.numpy.sin.__getstate__()["function_name"] == "sin"


def test_traced_values_are_not_pickled():
    with pytest.raises(jax.errors.ConcretizationTypeError, match="__reduce__"):
        jax.jit(pickle.dumps)(0)
