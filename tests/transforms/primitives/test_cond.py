import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.branches import cond, switch
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])


def test_derivatives_through_both_branches():
    def f(x, y):
        return cond(x.sum() > 0, lambda x: jnp.sin(x) * y, lambda x: x * x * x + y, x)

    check(f, X, 0.7)
    check(f, -X, 0.7)


def test_branches_with_different_residuals():
    def f(x):
        return switch(
            2,
            [lambda x: x, lambda x: jnp.exp(jnp.sin(x)), lambda x: jnp.sin(x) * jnp.cos(x) * x],
            x,
        )

    check(f, X)


def test_captured_values_are_differentiated():
    w = np.array([1.0, 2.0, 3.0])
    check(lambda x, c: cond(c > 0, lambda: (x * w).sum() * c, lambda: c * c), X, 0.5)


def test_nested():
    def f(x):
        return cond(x > 0, lambda x: cond(x > 0.5, jnp.sin, jnp.cos, x) * x, lambda x: -x, x)

    for v in (0.7, 0.3, -0.2):
        check(f, v, batched=False)


def test_each_lane_has_its_own_predicate():
    def f(x):
        return cond(x > 0, lambda x: jnp.log(x), lambda x: x * x, x)

    xs = np.array([0.5, -0.5, 2.0], np.float32)
    close(vmap(f)(xs), np.where(xs > 0, np.log(np.abs(xs)), xs * xs), 1e-6)
    # log of a negative number in a lane that does not take it must not spoil the gradient
    close(vmap(grad(f))(xs), np.where(xs > 0, 1 / xs, 2 * xs), 1e-6)
    close(grad(lambda x: vmap(f)(x).sum())(xs), np.where(xs > 0, 1 / xs, 2 * xs), 1e-6)


def test_switch_by_lane():
    branches = [lambda x: x, lambda x: 2 * x, lambda x: x * x]
    i, xs = np.array([2, 0, 1, 7]), np.array([3.0, 4.0, 5.0, 6.0], np.float32)
    close(vmap(lambda i, x: switch(i, branches, x))(i, xs), np.float32([9, 4, 10, 36]))


def test_shared_predicate_stays_a_cond():
    f = vmap(lambda p, x: cond(p, jnp.sin, jnp.cos, x), in_axes=(None, 0))
    assert primitives_of(verified(f, True, X))[-1] == "cond"
    close(f(True, X.astype("f")), np.sin(X.astype("f")))


def test_printed_form():
    text = " ".join(
        str(make_jaxpr(lambda x: cond(x > 0, lambda x: x, lambda x: -x, x))(1.0)).split()
    )
    assert (
        "d:f32[] = cond[ branches=( { lambda ; e:f32[]. let f:f32[] = neg e in (f,) } { lambda ;"
        " g:f32[]. let in (g,) } ) ] c a" in text
    )


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
        (lambda: switch(0, [lambda: 1, lambda: 2.0]), TypeError, "branch 1 has type float32"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match="(?s)" + text):
        call()
