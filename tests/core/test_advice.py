"""Notes of errors: what helps whoever made the mistake."""

import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax, random
from calque.core.advice import advise


def notes(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    found = getattr(caught.value, "__notes__", [])
    return [n for n in found if "For simplicity" not in n]


X = jnp.ones((2, 3))


def test_a_keyword_that_is_nearly_one():
    (note,) = notes(lambda: jnp.sum(X, axes=1))
    assert note.startswith("Did you mean axis? sum takes (a, axis=None, dtype=None")
    (note,) = notes(lambda: X.mean(keepdim=True))
    assert note.startswith("Did you mean keepdims? mean takes (a, ")
    (note,) = notes(lambda: jnp.zeros(3, dtyp=int))
    assert note.startswith("Did you mean dtype? zeros takes (shape, dtype=None")


def test_a_keyword_that_is_like_none_and_arguments_that_are_missing():
    (note,) = notes(lambda: jnp.array([3, 1]).sort(inplace=True))
    assert note.startswith("sort takes (a, axis=-1")
    (note,) = notes(lambda: random.permutation(10))
    assert note.startswith("permutation takes (key, x, axis=0")


def test_what_control_flow_calls_its_functions_with():
    (note,) = notes(lambda: lax.scan(lambda c: (c, c), 0.0, X))
    assert note.startswith(
        "scan calls its function with two arguments, the carry and a slice of xs"
    )
    assert note.endswith("takes (c)") and "test_advice.py:" in note
    (note,) = notes(lambda: jax.lax.while_loop(lambda x: x < 3, lambda: 3, 0))
    assert note.startswith("while_loop calls both its functions with one argument")


def test_functions_of_the_user():
    def step(params, batch):
        return params

    for call in (
        lambda: jax.jit(step)(1.0),
        lambda: jax.grad(step)(1.0),
        lambda: jax.vmap(step)(X),
    ):
        (note,) = notes(call)
        assert "test_advice.py:" in note and note.endswith("takes (params, batch)")


def test_a_function_that_the_user_calls_is_not_ours_to_explain():
    def inner(a):
        return a

    assert notes(lambda: jax.jit(lambda x: inner(x, x))(1.0)) == []


def test_axes():
    assert notes(lambda: jnp.sum(X, axis=2)) == [
        "The array of jnp.sum has 2 dimensions: its axes are 0 to 1, or -2 to -1"
    ]
    assert notes(lambda: X[0].max(axis=1)) == [
        "The array of X[0].max has one dimension: its axis is 0"
    ]
    assert notes(lambda: jnp.sum(3.0, axis=0)) == [
        "The array of jnp.sum is a number: it has no axes"
    ]
    assert notes(lambda: jax.jit(lambda x: jnp.flip(x, 7))(X)) == [
        "The array of jnp.flip has 2 dimensions: its axes are 0 to 1, or -2 to -1"
    ]


def test_lines_that_cannot_be_read():
    given = {"jnp": jnp, "X": X}
    with pytest.raises(ValueError) as caught:
        exec("jnp.sum(X, axis=2)", given)
    assert "The array has 2 dimensions" in caught.value.__notes__[0]


def test_callbacks_whose_type_was_forgotten():
    (note,) = notes(lambda: jax.pure_callback(lambda x: x, X))
    assert "pure_callback(f, jax.ShapeDtypeStruct(shape, dtype), x)" in note


def test_one_note_and_no_other_errors():
    error = ValueError("axis 2 is out of bounds for array of dimension 2")
    advise(error)  # nobody has raised it
    assert not hasattr(error, "__notes__")
    advise(KeyError("x"))
