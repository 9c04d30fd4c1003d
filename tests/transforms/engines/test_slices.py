"""Parts of programs: what is dead, what depends on what, constants as arguments."""

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.trace import eval_jaxpr
from calque.transforms.engines import slices


def program(f, *args):
    return calque.make_jaxpr(f)(*args)


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def test_dead_code_goes():
    closed = program(lambda x: (jnp.sin(x), jnp.cos(x) * 2, jnp.tan(x))[:2], 1.0)
    assert names(slices.without_dead_code(closed.jaxpr)) == ["sin", "cos", "mul"]
    assert names(slices.without_dead_code(closed.jaxpr, (True, False))) == ["sin"]
    assert len(slices.without_dead_code(closed.jaxpr, (True, False)).outvars) == 1


def test_effects_are_not_dead():
    def f(x):
        calque.debug.print("{}", x * 3)
        jnp.cos(x)
        return x

    closed = program(f, 1.0)
    left = names(slices.without_dead_code(closed.jaxpr))
    assert "mul" in left and "cos" not in left and slices.jaxpr_has_effect(closed.jaxpr)
    quiet = slices.without_dead_code(slices.silent(closed).jaxpr)
    assert names(quiet) == [] and not slices.jaxpr_has_effect(quiet)


def test_dead_results_of_loops_and_branches():
    def f(x):
        a, b = lax.fori_loop(0, 3, lambda i, c: (jnp.sin(c[0]), jnp.cos(c[1])), (x, x))
        return lax.cond(x > 0, lambda: (a, b), lambda: (x, x))[0]

    text = str(slices.without_dead_code(program(f, 1.0).jaxpr))
    assert "sin" in text and "cos" not in text


def test_which_inputs_are_read():
    closed = program(lambda x, y, z: (jnp.sin(y), z), 1.0, 2.0, 3.0)
    assert slices.used_inputs(closed.jaxpr) == [False, True, True]


def test_which_results_depend():
    closed = program(lambda x, y: (jnp.sin(x), x + y, 3.0), 1.0, 2.0)
    assert slices.dependent_results(closed, (True, False)) == (True, True, False)
    assert slices.dependent_results(closed, (False, True)) == (False, True, False)
    assert slices.dependent_results(closed, (False, False)) == (False, False, False)


def test_dependence_goes_through_rounds():
    def f(x, y, z):
        return lax.fori_loop(0, 3, lambda i, c: (c[0] + c[1], c[1] * 2, c[2]), (x, y, z))

    loop = program(f, 1.0, 2.0, 3.0)
    assert slices.dependent_results(loop, (True, False, False)) == (True, False, False)
    assert slices.dependent_results(loop, (False, True, False)) == (True, True, False)


def test_constants_as_arguments():
    k, m = jnp.arange(3.0), jnp.ones(3)
    closed = program(lambda x: (x * k, x + m), k)
    hoisted, values = slices.hoist_all(closed)
    assert not hoisted.consts and len(values) == 2
    outs = eval_jaxpr(hoisted.jaxpr, [], *values, k)
    np.testing.assert_array_equal(outs[0], k * k)
    one, values = slices.hoisted(closed, lambda c: c is m)
    assert values == [m] and [c is k for c in one.consts] == [True]
    assert len(slices.pruned(closed, (True, False)).consts) == 1


def test_equations_before_and_after():
    closed = program(lambda x, y: jnp.sin(x) * jnp.cos(y), 1.0, 2.0)
    before, after, _ = slices.dependents(closed.jaxpr, (False, True))
    assert [e.primitive.name for e in before] == ["sin"]
    assert [e.primitive.name for e in after] == ["cos", "mul"]
