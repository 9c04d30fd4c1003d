import pytest

import calque
import calque.numpy as jnp


def names(fun, *args):
    return [e.source_info.name_stack for e in calque.make_jaxpr(fun)(*args).eqns]


def layered(x):
    with calque.named_scope("outer"):
        y = jnp.sin(x)
        with calque.named_scope("inner"):
            y = jnp.cos(y)
    return jnp.exp(y)


def test_scopes_nest():
    assert names(layered, 1.0) == ["outer", "outer/inner", ""]
    assert names(calque.vmap(layered), jnp.ones(2)) == ["outer", "outer/inner", ""]
    assert set(names(calque.grad(layered), 1.0)) == {"outer", "outer/inner", ""}


def test_calls_and_decorators():
    assert names(calque.named_call(jnp.sin, name="wave"), 1.0) == ["wave"]

    def wavy(x):
        return jnp.sin(x)

    assert names(calque.named_call(wavy), 1.0) == ["wavy"]
    assert names(calque.named_scope("deco")(wavy), 1.0) == ["deco"]
    assert float(calque.jit(calque.named_call(wavy))(0.0)) == 0.0

    @calque.named_scope("again")
    def twice(x, n=2):
        return twice(jnp.sin(x), n - 1) if n else x

    assert names(twice, 1.0) == ["again", "again/again"]
    assert names(calque.profiler.annotate_function(wavy, "marked"), 1.0) == ["marked"]


def test_scopes_end_with_errors():
    with pytest.raises(ZeroDivisionError), calque.named_scope("broken"):
        raise ZeroDivisionError
    assert names(jnp.sin, 1.0) == [""]


def test_names_are_strings():
    with pytest.raises(TypeError, match="must be a string"):
        calque.named_scope(3)
    with pytest.raises(TypeError, match="must be a string"):
        calque.named_call(jnp.sin, name=3)
    with pytest.raises(TypeError, match="Expected a callable"):
        calque.named_call(3)
