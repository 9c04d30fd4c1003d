"""cond and switch for users: arguments, weak types, errors."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import tree_util
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.branches import cond, switch
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_older_form_and_operand():
    assert float(cond(True, 3.0, lambda x: x, 4.0, lambda x: x * 2)) == 3.0
    assert float(cond(False, 3.0, lambda x: x, 4.0, lambda x: x * 2)) == 8.0
    assert float(cond(True, lambda x: x + 1, lambda x: x, operand=3.0)) == 4.0
    assert float(cond(False, lambda _: 1.0, lambda _: 2.0, operand=None)) == 2.0


def test_switch_clamps():
    f = jit(lambda i: switch(i, [lambda: 10, lambda: 20, lambda: 30]))
    assert [int(f(i)) for i in (0, 1, 2, 99, -5)] == [10, 20, 30, 30, 10]
    assert int(switch(0, [lambda: 5])) == 5


def test_weak_types_give_way():
    out = cond(True, lambda: 1.0, lambda: jnp.float32(2.0))
    assert out.dtype == np.float32 and not out.aval.weak_type


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: cond(True, lambda: 1, lambda: 1.0),
            TypeError,
            (
                r"true_fun has type int32\[\] but the corresponding output of false_fun has type"
                r" float32\[\], so the dtypes"
            ),
        ),
        (
            lambda: cond(True, lambda: {"a": jnp.ones(2)}, lambda: {"a": jnp.ones(3)}),
            TypeError,
            r"true_fun at path \['a'\].*shapes do not match",
        ),
        (lambda: cond(True, lambda: (1, 2), lambda: 1), TypeError, "same pytree structure"),
        (
            lambda: cond(jnp.ones(2), lambda: 1, lambda: 2),
            TypeError,
            r"Pred must be a scalar, got .* of shape \(2,\)",
        ),
        (
            lambda: cond(1j, lambda: 1, lambda: 2),
            TypeError,
            "either boolean or number, got complex64",
        ),
        (
            lambda: cond("a", lambda: 1, lambda: 2),
            TypeError,
            "must be a scalar, got a of type <class 'str'>",
        ),
        (lambda: cond(True, 1, 2), TypeError, "should be callable"),
        (lambda: switch(0, []), ValueError, "Empty branch sequence"),
        (lambda: switch(0.5, [lambda: 1, lambda: 2]), TypeError, "Index type must be an integer"),
        (lambda: switch(0, [lambda: 1, lambda: 2.0]), TypeError, "branch1 has type float32"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match="(?s)" + text):
        call()


def test_branches_are_compared_with_the_first():
    def array(_):
        return {"a": jnp.ones(1)}

    with pytest.raises(TypeError, match=r"branch 0 output at path \['a'\] is a pytree leaf but"):
        switch(1, [array, lambda _: {"a": (1.0, 2.0)}], 1.0)
    with pytest.raises(TypeError, match=r"branch 0 at path \['a'\] has type float32\[1\] but"):
        switch(1, [array, lambda _: {"a": 1.0}], 1.0)


def test_operands_may_be_callable():
    """As long as the first argument after the predicate is, it is a branch."""

    class Callable:
        def __init__(self, x):
            self.x = x

        def __call__(self):
            raise AssertionError("an operand is not called")

    tree_util.register_pytree_node(Callable, lambda c: ((c.x,), None), lambda _, x: Callable(*x))
    f = lambda a, b: a + b.x  # noqa: E731
    assert cond(True, f, f, 3, Callable(4)) == 7
    assert cond(False, lambda a, b: b.x, lambda a, b: a.x + b.x, Callable(3), Callable(4)) == 7


def test_a_function_of_several_branches_is_traced_once():
    times = []

    def g(x):
        times.append(x)
        return x * 2 + scale

    scale = jnp.arange(3.0)
    f = jit(lambda i, x: switch(i, [g, lambda x: x, g], x))
    for i, wanted in enumerate(([2, 3, 4], [1, 1, 1], [2, 3, 4])):
        assert f(i, jnp.ones(3)).tolist() == wanted
    assert len(times) == 1
    slope = grad(lambda x: cond(True, g, g, x).sum())(jnp.ones(3))
    assert slope.tolist() == [2, 2, 2] and len(times) == 2


def test_numbers_of_branches_beyond_32_bits_are_the_last_one():
    f = jit(lambda i: switch(i, [lambda: 0, lambda: 1]))
    assert [int(f(v)) for v in (np.uint32(2**32 - 1), np.uint8(200), np.int8(-3))] == [1, 1, 0]
    with calque.enable_x64(True):
        assert [int(f(v)) for v in (np.int64(2**40), np.int64(-(2**40)))] == [1, 0]
