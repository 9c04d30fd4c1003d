"""The program as rows."""

import calque as jax
import calque.numpy as jnp
from calque.explaining.equations import assigned, equation_rows


def f(x):
    y = jnp.sin(x)
    first, second = y, jnp.cos(y)

    def body(c, row):
        total = c + row
        return total, total * 2

    last, rows = jax.lax.scan(body, x[0], second)
    return last + rows.sum() + first[0]


def rows():
    return equation_rows(jax.make_jaxpr(f)(jnp.ones(5)).jaxpr)


def test_variables_are_named_as_in_jax_and_as_the_user_names_them():
    shown = rows()
    assert shown[0].text == "inputs a:f32[5]" and shown[-1].text.startswith("results ")
    (sine,) = [r for r in shown if " sin " in r.text]
    assert sine.text == "b:f32[5] = sin a" and sine.variable == "y"
    assert sine.source.line == f.__code__.co_firstlineno + 1


def test_programs_inside_are_indented():
    shown = rows()
    k = next(i for i, r in enumerate(shown) if "= scan " in r.text)
    assert shown[k].depth == 0 and shown[k].text.endswith(":")
    assert shown[k + 1].depth == 1 and shown[k + 1].text.startswith("lambda ")
    inner = shown[k + 2]
    assert inner.depth == 2 and "add" in inner.text and inner.variable == "total"
    assert any(r.text.startswith("in (") and r.depth == 2 for r in shown)


def test_called_programs_are_named():
    def g(x):
        z = jax.jit(jnp.sin)(x) + 1
        return z

    shown = equation_rows(jax.make_jaxpr(g)(1.0).jaxpr)
    assert any("= jit[sin] a:" in r.text for r in shown)
    assert [r.variable for r in shown if "add" in r.text] == ["z"]


def test_no_variable_where_nothing_is_assigned():
    def g(x):
        return jnp.sin(x)

    (e,) = jax.make_jaxpr(g)(1.0).eqns
    assert assigned(e.source, {}) == ""


def test_variables_of_several_steps_in_one_line():
    # fmt: off
    def g(x):
        y = jnp.sin(x); return y + jnp.cos(y)  # noqa: E702
    # fmt: on

    def h(x):
        first = second = jnp.sin(x)
        return first + second

    assert [assigned(e.source, {}) for e in jax.make_jaxpr(g)(1.0).eqns] == ["y", "", ""]
    assert [assigned(e.source, {}) for e in jax.make_jaxpr(h)(1.0).eqns] == ["first", ""]
