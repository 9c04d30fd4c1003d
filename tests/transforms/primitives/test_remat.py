import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import scan
from calque.transforms.functions.remat import (
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    saved_residuals,
)
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.remat_policies import checkpoint_policies
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.array([0.4, -0.3, 0.8])
A = np.arange(9.0).reshape(3, 3) / 9
P = checkpoint_policies


def layer(x, w):
    return jnp.sin(checkpoint_name(jnp.sin(x), "a") @ w) * x


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


def kept(f, *args):
    return [text for _, text in saved_residuals(f, *args)]


def test_what_is_kept():
    g = checkpoint(jit(lambda x: jnp.sin(jnp.sin(x) @ A)))
    assert kept(g, X) == ["from the argument x"]
    assert len(kept(lambda x: jnp.sin(jnp.sin(x) @ A), X)) > 1
    assert any(
        "dot_general" in t
        for t in kept(checkpoint(lambda x: jnp.sin(jnp.sin(x) @ A), policy=P.dots_saveable), X)
    )
    names = kept(checkpoint(lambda x: layer(x, A), policy=P.save_only_these_names("a")), X)
    assert (
        len(names) == 2
        and names[0] == "from the argument x"
        and names[1].startswith("named 'a' from")
    )


def test_print_saved_residuals(capsys):
    def f(theta):
        return jnp.sin(jnp.sin(theta))

    print_saved_residuals(checkpoint(f), 1.0)
    assert capsys.readouterr().out == "f32[] from the argument theta\n"


def test_the_backward_pass_is_one_recomputation():
    closed = verified(
        grad(lambda x: checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()), X.astype("f")
    )
    calls = [e.params["differentiated"] for e in closed.eqns if e.primitive.name == "remat2"]
    assert calls == [False, True]
    inner = [e for e in closed.eqns if e.primitive.name == "remat2"][-1].params
    assert inner["prevent_cse"] and inner["policy"] is None
    assert [e.primitive.name for e in inner["jaxpr"].eqns].count(
        "sin"
    ) == 1  # the outer sine is not needed again


@pytest.mark.parametrize("order", [1, 2, 3])
def test_little_is_kept_at_any_order(order):
    """Of a checkpointed loop within a loop, a derivative of any order keeps values of each outer
    round, none of each inner one."""
    inner = checkpoint(lambda c: scan(lambda c, _: (jnp.sin(c), None), c, length=20)[0])

    def f(x):
        return scan(lambda c, _: (inner(c), None), x, length=10)[0]

    for _ in range(order):
        f = grad(f)
    assert max(v.aval.size for e in make_jaxpr(f)(0.5).eqns for v in e.outvars) <= 10


def test_static_arguments():
    f = checkpoint(lambda x, n: x**n if n > 2 else -x, static_argnums=(1,))
    close(grad(f)(2.0, 3), 12.0)
    g = checkpoint(lambda x, *, kind: x * 2 if kind == "double" else x, static_argnames=("kind",))
    close(grad(g)(2.0, kind="double"), 2.0)


def test_batched():
    close(
        vmap(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)))))(X.astype("f")),
        (np.cos(np.sin(X)) * np.cos(X)).astype("f"),
        1e-6,
    )


def test_bad_arguments():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        checkpoint(lambda x: x, concrete=True)
    with pytest.raises(TypeError, match="Expected a callable"):
        checkpoint(3)


def test_answers_of_policies():
    from calque.ad_checkpoint import Offloadable, Recompute, Saveable

    def f(x):
        return jnp.sin(jnp.sin(x))

    answers = {
        "save": Saveable,
        "again": Recompute,
        "elsewhere": Offloadable("device", "pinned_host"),
    }
    kept = {}
    for name, answer in answers.items():
        g = checkpoint(
            f, policy=lambda prim, *_, a=answer, **__: a if prim.name in ("sin", "cos") else False
        )
        kept[name] = len(saved_residuals(g, np.float32(0.3)))
        close(grad(g)(0.3), grad(f)(0.3))
    assert kept["save"] == kept["elsewhere"] > kept["again"]
