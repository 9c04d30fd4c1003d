import pytest

import calque
import calque.numpy as jnp
from calque.core import source


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


def test_transformations_are_named():
    vmapped = ["vmap(outer)", "vmap(outer)/inner", "vmap()"]
    assert names(calque.vmap(layered), jnp.ones(2)) == vmapped
    forward = {"jvp(outer)", "jvp(outer)/inner", "jvp()"}
    back = {"transpose(jvp(outer))", "transpose(jvp(outer))/inner", "transpose(jvp())"}
    assert set(names(calque.grad(layered), 1.0)) == forward | back
    assert set(names(lambda x: calque.jvp(layered, (x,), (x,)), 1.0)) == forward
    assert set(names(lambda x: calque.linear_transpose(layered_linear, x)(x), 1.0)) == {
        "transpose(outer)"
    }
    nested = names(calque.named_scope("here")(calque.vmap(calque.vmap(layered))), jnp.ones((2, 2)))
    assert nested[1] == "here/vmap(vmap(outer))/inner"
    with calque.named_scope("around"):
        assert "around/transpose(jvp(outer))" in names(calque.grad(layered), 1.0)
    assert names(jnp.sin, 1.0) == [""]


def layered_linear(x):
    with calque.named_scope("outer"):
        return x * 2


def test_programs_in_programs_are_named_by_themselves():
    def scanned(x):
        def body(c, _):
            with calque.named_scope("body"):
                return jnp.sin(c), None

        return calque.lax.scan(body, x, length=3)[0]

    closed = calque.make_jaxpr(calque.grad(scanned))(1.0)
    scans = [e for e in closed.eqns if e.primitive.name == "scan"]
    stacks = [e.source_info.name_stack for e in scans]
    assert stacks == ["jvp()", "transpose(jvp())"]
    inside = {q.source_info.name_stack for e in scans for q in e.params["jaxpr"].eqns}
    assert "body" in inside and not any(s.startswith("jvp(body)") for s in inside)


def test_lowered_text_has_the_names():
    text = calque.jit(calque.grad(layered)).lower(1.0).as_text(debug_info=True)
    assert "/jvp(outer)/inner/cos" in text and "/transpose(jvp(outer))/mul" in text


def test_nothing_is_named_where_nothing_is_recorded():
    seen = []

    def f(x):
        seen.append(source.scopes())
        return jnp.sin(x)

    calque.grad(f)(1.0), calque.vmap(f)(jnp.ones(2))
    assert seen == [(), ()]


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
