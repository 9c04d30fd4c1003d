import numpy as np
import pytest

import calque
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


def test_what_is_kept_is_listed_in_the_order_of_the_program(capsys):
    def outer(w, b, x):
        def layer(v):
            return jnp.sin(w @ v)

        return layer(layer(x)) * b

    print_saved_residuals(outer, jnp.ones((2, 2)), jnp.float32(3.0), jnp.ones(2))
    lines = capsys.readouterr().out.splitlines()
    kinds = [line.split(" from ")[0] for line in lines]
    assert kinds[:3] == ["f32[2,2]", "f32[]", "f32[2]"]
    assert [line.rsplit(" ", 1)[1] for line in lines[:3]] == ["w", "b", "x"]
    assert kinds[3:] == [f"f32[2] output of {p}" for p in ("sin", "cos", "sin", "cos")]
    column, function = lines[3].rsplit(":", 1)[1].split(" ")
    assert column == "19" and function.endswith("<locals>.outer.<locals>.layer)")


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
    w, d = jnp.eye(2), {"x": jnp.ones(2), "y": jnp.zeros(2)}
    apart = (False, {"x": True, "y": False})
    f = checkpoint(lambda w, d: jnp.sin(w @ d["x"] * scale + d["y"]).sum(), prevent_cse=apart)
    scale = jnp.ones(2)
    close(grad(f)(w, d), np.cos(np.ones((2, 2))))
    close(calque.hessian(f)(w, d), calque.hessian(checkpoint(f.__wrapped__))(w, d))
    said = [apart_in(g, w, d) for g in (f, grad(f), calque.vmap(f, (0, None)))]
    assert said[0] == [(False, True, False)] and said[2] == [(False, True, False)]
    assert said[1][-1][-1] is True  # cotangents are kept apart
    capturing = grad(lambda s: checkpoint(lambda w: (w * s).sum(), prevent_cse=(True,))(w))
    close(capturing(2.0), 2.0)
    static = checkpoint(lambda n, w, x: x @ w, prevent_cse=(False, True), static_argnums=0)
    assert apart_in(lambda w, x: static("n", w, x), w, w) == [(False, True)]
    assert apart_in(lambda w, x: static("n", w, x=x), w, w) == [(False, True)]


def apart_in(f, *args):
    eqns = calque.make_jaxpr(f)(*args).eqns
    return [e.params["prevent_cse"] for e in eqns if e.primitive.name == "remat2"]


@pytest.mark.parametrize("given", [None, "yes", {"x": True}, (True, 1)])
def test_what_is_kept_apart_is_said_by_bools(given):
    with pytest.raises(TypeError, match="prevent_cse must"):
        checkpoint(jnp.sin, prevent_cse=given)
