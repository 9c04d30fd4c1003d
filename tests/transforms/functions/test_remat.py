import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import scan
from calque.transforms.functions.remat import (
    checkpoint,
    print_saved_residuals,
)
from calque.transforms.primitives.remat_policies import checkpoint_policies
from tests.transforms.functions.shared import layer
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])
A = np.arange(9.0).reshape(3, 3) / 9
P = checkpoint_policies


POLICIES = {
    "none": None,
    "everything": P.everything_saveable,
    "nothing": P.nothing_saveable,
    "dots": P.dots_saveable,
    "plain dots": P.checkpoint_dots_with_no_batch_dims,
    "names": P.save_only_these_names("a"),
    "other names": P.save_any_names_but_these("a"),
    "all but names": P.save_anything_except_these_names("a"),
    "both": P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("a")),
}


@pytest.mark.parametrize("name", POLICIES)
def test_derivatives_do_not_change(name):
    check(checkpoint(layer, policy=POLICIES[name]), X, A)


def test_nested_and_in_loops():
    f = checkpoint(lambda x: jnp.sin(checkpoint(lambda y: jnp.exp(jnp.sin(y)))(x)))
    check(f, X)
    check(lambda c: scan(checkpoint(lambda c, _: (f(c) * c, c)), c, None, length=3), X)
    check(checkpoint(lambda c: scan(lambda c, _: (jnp.sin(c) * c, c), c, None, length=3)[0]), X)


def test_print_saved_residuals(capsys):
    def f(theta):
        return jnp.sin(jnp.sin(theta))

    print_saved_residuals(checkpoint(f), 1.0)
    assert capsys.readouterr().out == "f32[] from the argument theta\n"


def test_static_arguments():
    f = checkpoint(lambda x, n: x**n if n > 2 else -x, static_argnums=(1,))
    close(grad(f)(2.0, 3), 12.0)
    g = checkpoint(lambda x, *, kind: x * 2 if kind == "double" else x, static_argnames=("kind",))
    close(grad(g)(2.0, kind="double"), 2.0)


def test_bad_arguments():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        checkpoint(lambda x: x, concrete=True)
    with pytest.raises(TypeError, match="Expected a callable"):
        checkpoint(3)


def test_functions_are_staged_once():
    """Also where each derivative asks for them, as long as what they captured is the same."""
    traces, scale = [], 2.0

    @checkpoint
    def f(x, n=1):
        traces.append(n)
        return jnp.sin(x) * scale

    for _ in range(3):
        value, slope = f(0.5), grad(f)(0.5)
    assert len(traces) == 1
    close(slope, 2 * np.cos(0.5))
    scale = 3.0
    assert f(0.5) == value * 1.5 and len(traces) == 2
    close(jnp.stack([f(x) for x in jnp.arange(2.0)]), 3 * np.sin(np.arange(2)))
    assert len(traces) == 3  # of another type


def test_arguments_may_say_one_by_one_what_is_kept_apart():
    f = checkpoint(lambda w, x: jnp.sin(w @ x).sum(), prevent_cse=(False, {"x": True}))
    close(grad(f)(jnp.eye(2), jnp.ones(2)), np.cos(np.ones((2, 2))))
