"""Functions of trees as functions of leaves, and the arguments that messages name."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import pytrees
from calque.transforms.engines.trees import (
    FlatFunction,
    argument_name,
    arrays,
    check_results,
    name_of,
    wrapping,
)


def f(params, x):
    return {"out": params["w"] * x}, "aux"


def test_names_of_functions():
    class Model:
        def __call__(self, x):
            return x

    assert name_of(f) == "f" and name_of(functools.partial(f, 1)) == "f"
    assert "Model" in name_of(Model()) and name_of(lambda: 0) == "<lambda>"


def test_what_is_made_of_a_function_looks_like_it():
    def g(x):
        """Adds up."""

    g.tag = 3
    made = wrapping(lambda x: x, g, "Gradient of g.")
    assert made.__name__ == "g" and made.__qualname__ == g.__qualname__ and made.__wrapped__ is g
    assert made.__doc__ == "Gradient of g.\n\nOriginal documentation:\n\nAdds up."
    assert made.tag == 3
    assert wrapping(lambda: 0, g).__doc__ == "Adds up."
    g.__doc__ = "long " * 50_000
    assert wrapping(lambda: 0, g, "Short.").__doc__ == "Short."


@pytest.mark.parametrize(
    "transform",
    ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "vmap", "jit", "checkpoint", "pmap",
     "custom_jvp", "custom_vjp", "named_call"],
)  # fmt: skip
def test_transformed_functions_keep_their_name(transform):
    class Model:
        def __call__(self, x):
            return x

    make = getattr(calque, transform)
    assert make(f).__name__ == "f" and make(lambda x: x).__name__ == "<lambda>"
    assert make(functools.partial(f, 1)).__name__ == "f" and make(Model()).__name__ == "Model"


def test_what_is_made_of_a_jitted_function_is_not_that_one():
    doubled = calque.jit(lambda x: x * 2.0)
    mapped = calque.vmap(doubled)
    assert not hasattr(mapped, "_function")
    traced = calque.jit(mapped).trace(jnp.ones((3, 4)))
    assert traced.jaxpr.in_avals[0].shape == (3, 4)


def test_flat_functions_remember_their_trees():
    leaves, tree = pytrees.flatten(
        ({"w": 2.0}, 3.0),
    )
    flat = FlatFunction(f, pytrees.structure((({"w": 2.0}, 3.0), {})), has_aux=True)
    assert [float(v) for v in flat(*leaves)] == [6] and flat.aux == "aux" and flat.__name__ == "f"
    assert pytrees.unflatten(flat.out_tree, [1]) == {"out": 1} and tree.num_leaves == 2


def test_an_auxiliary_result_is_one_of_a_pair():
    flat = FlatFunction(lambda x: x, pytrees.structure(((1.0,), {})), has_aux=True)
    with pytest.raises(TypeError, match=r"pair|tuple"):
        flat(1.0)


def test_arguments_that_are_no_arrays_are_named():
    args = ({"w": [1.0, "text"]}, 2.0)
    with pytest.raises(TypeError, match=r"params\['w'\]\[1\]"):
        arrays(pytrees.leaves((args, {})), "jit", f, args, {})
    good = arrays([1.0, np.ones(2), jnp.ones(1)], "jit", f, (), {})
    assert [type(x).__name__ for x in good][1:] == ["Array", "Array"] or good[1].shape == (2,)
    assert argument_name(f, ({"w": [1.0, 2.0]}, 3.0), {}, 1) == "params['w'][1]"
    assert argument_name(f, ({"w": [1.0]},), {"x": 3.0}, 1) == "x"


def test_results_that_are_no_arrays_are_named():
    out = {"a": 1.0, "b": [object()]}
    with pytest.raises(TypeError, match=r"\['b'\]\[0\]"):
        check_results(pytrees.leaves(out), out, f)
    assert [float(v) for v in check_results([1, 2.0], (1, 2.0), f)] == [1, 2]
