"""Arguments that derivatives are taken in, and the look of functions that give derivatives."""

import pytest

import calque
from calque import numpy as jnp
from calque.transforms.functions.differentiated import check_argnums, partial_function


def f(x, y, z=0):
    """Adds up."""
    return x + 10 * y + 100 * z


def test_argnums_are_ints_or_tuples():
    assert check_argnums(2) == 2 and check_argnums([0, 1]) == (0, 1)
    with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints"):
        check_argnums("xy")


def test_a_function_of_the_chosen_arguments():
    wanted, partial, chosen = partial_function(f, (-1, 0), (1, 2), {"z": 3}, "grad")
    assert wanted == (1, 0) and chosen == ((2, 1),)
    assert partial((5, 4)) == 4 + 50 + 300
    with pytest.raises(TypeError, match="requires at least 3 positional arguments"):
        partial_function(f, 2, (1, 2), {}, "grad")


@pytest.mark.parametrize(
    ("fun", "x", "message"),
    [
        (lambda x: x, 1, "requires real- or complex-valued inputs"),
        (lambda x: x, 1j, "requires real-valued outputs"),
        (lambda x: (x, x), 1.0, "Output of .* was a container"),
        (lambda x: jnp.stack([x, x]), 1.0, r"had shape: \(2,\)"),
        (jnp.int32, 1.0, "functions with integer outputs, use calque.vjp"),
    ],
)
def test_types_that_have_no_gradient(fun, x, message):
    with pytest.raises(TypeError, match=message):
        calque.grad(fun)(x)
