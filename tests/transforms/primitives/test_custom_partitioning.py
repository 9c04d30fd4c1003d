"""The primitive of functions with rules for how they are split: whoever does not ask these runs the
function, and derivatives and lanes are those of the function."""

import numpy as np

import calque
import calque.numpy as jnp
from calque.core import reference
from calque.experimental.custom_partitioning import custom_partitioning


def squares():
    f = custom_partitioning(lambda x, y: (x * x, {"p": x * y}))
    f.def_partition(lambda *a: a, sharding_rule="i, i -> i, i")
    return f


X, Y = jnp.arange(3.0), jnp.ones(3)


def names(f, *args):
    return [e.primitive.name for e in calque.make_jaxpr(f)(*args).eqns]


def test_the_equation_means_its_program():
    f = squares()
    closed = calque.make_jaxpr(f)(X, Y)
    assert [e.primitive.name for e in closed.eqns] == ["custom_partitioning"]
    assert [x.tolist() for x in reference.run(closed, X, Y)] == [[0, 1, 4], [0, 1, 2]]
    assert [x.tolist() for x in calque.tree.leaves(calque.jit(f)(X, Y))] == [[0, 1, 4], [0, 1, 2]]
    assert [x.tolist() for x in calque.tree.leaves(f(X, Y))] == [[0, 1, 4], [0, 1, 2]]
    assert "custom_partitioning" not in names(lambda x: x + 1, X)


def test_derivatives_and_lanes_are_those_of_the_function():
    f = squares()
    first = lambda x: f(x, Y)[0].sum()  # noqa: E731
    assert calque.grad(first)(X).tolist() == [0, 2, 4]
    assert calque.jit(calque.grad(first))(X).tolist() == [0, 2, 4]
    _, tangents = calque.jvp(f, (X, Y), (Y, X))
    assert tangents[0].tolist() == [0, 2, 4] and tangents[1]["p"].tolist() == [1, 2, 5]
    rows = calque.vmap(f, in_axes=(0, None))(np.ones((2, 3), np.float32), X)
    assert rows[1]["p"].tolist() == [[0, 1, 2]] * 2
    assert "custom_partitioning" not in names(calque.vmap(f), X, Y)
    twice = custom_partitioning(lambda x: 2 * x)
    twice.def_partition(lambda *a: a, sharding_rule="i -> i")
    (back,) = calque.linear_transpose(twice, X)(Y)
    assert back.tolist() == [2, 2, 2]


def test_where_nobody_reads_its_results_it_is_dead():
    f = squares()
    closed = calque.make_jaxpr(calque.jit(lambda x: (f(x, Y), x)[1]))(X)
    assert calque.jit(lambda x: (f(x, Y), x)[1])(X).tolist() == X.tolist()
    assert len(closed.eqns) == 1
