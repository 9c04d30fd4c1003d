"""Functions whose source is shown, and their lines."""

import functools

import calque as jax
import calque.numpy as jnp
from calque.explaining import links
from calque.explaining.links import Links, code_of


def helper(x):
    return jnp.sin(x)


def outer(x):
    y = helper(x)
    return (lambda v: v * 2)(y)


def linked(fun, *args):
    return Links(fun, jax.make_jaxpr(fun)(*args).jaxpr)


def test_every_function_that_was_traced_is_shown_once():
    found = linked(outer, 1.0)
    assert [s.name for s in found.functions] == ["outer", "helper"]
    assert found.functions[0].lines[0] == "def outer(x):"
    line = helper.__code__.co_firstlineno + 1
    assert found.mark(__file__, line) == {f"0:{line}"} and found.mark("elsewhere.py", 3) == set()


def test_functions_in_programs_inside_are_found():
    def body(c, x):
        return helper(c), x

    def scanned(x):
        return jax.lax.scan(body, 1.0, x)

    assert {s.name for s in linked(scanned, jnp.ones(3)).functions} == {"scanned", "body", "helper"}


def test_wrappers_are_looked_through():
    class Model:
        def __call__(self, x):
            return x

    assert code_of(functools.partial(outer)) is outer.__code__
    assert code_of(jax.jit(outer)) is outer.__code__
    assert code_of(Model()) is Model.__call__.__code__
    assert code_of(jnp.sin) is None and code_of(3) is None


def test_too_many_functions_are_counted(monkeypatch):
    monkeypatch.setattr(links, "MOST_SHOWN", 1)
    found = linked(outer, 1.0)
    assert len(found.functions) == 1 and found.left_out == 1


def test_functions_without_source():
    space = {"jnp": jnp}
    exec("def made(x):\n    return jnp.sin(x)", space)
    assert linked(space["made"], 1.0).functions == []
