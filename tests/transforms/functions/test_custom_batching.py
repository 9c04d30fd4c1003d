import numpy as np
import pytest

import calque.numpy as jnp
from calque.custom_batching import custom_vmap, sequential_vmap
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.loops import scan
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, primitives_of, verified

X = np.array([0.4, -0.3, 0.8], np.float32)


def sine(calls=None):
    """sin; its rule adds one, so that one can see it."""
    f = custom_vmap(lambda x: jnp.sin(x))

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        if calls is not None:
            calls.append((axis_size, in_batched))
        return jnp.sin(x) * 1 + 1, in_batched[0]

    return f


def test_the_rule_is_for_vmap_alone():
    calls = []
    f = sine(calls)
    close(f(X), np.sin(X))
    close(jit(f)(X), np.sin(X))
    assert not calls
    close([vmap(f)(X), jit(vmap(f))(X), vmap(jit(f))(X)], [np.sin(X) + 1] * 3)
    assert calls == [(3, [True])] * 3
    assert primitives_of(verified(f, X)) == ["custom_vmap_call"]


def test_arguments_results_and_what_is_batched():
    f = custom_vmap(lambda p, y: {"s": p["a"] + y, "p": p["b"] * 2})
    seen = []

    @f.def_vmap
    def rule(axis_size, in_batched, p, y):
        seen.append(in_batched)
        return {"s": p["a"] + y, "p": p["b"] * 2}, {"s": True, "p": False}

    out = vmap(f, ({"a": 1, "b": None}, None), {"s": 0, "p": None})(
        {"a": np.ones((2, 3), "f"), "b": np.float32(3)}, 1.0
    )
    assert seen == [[{"a": True, "b": False}, False]]
    close(out, {"s": np.full((3, 2), 2, "f"), "p": np.float32(6)})
    close(f({"a": 1.0, "b": 2.0}, y=1.0), {"s": np.float32(2), "p": np.float32(4)})


def test_nested():
    f = sine()
    x = np.stack([X, X + 1])
    close(
        vmap(vmap(f))(x), np.sin(x) + 1
    )  # the rule is asked once: what it does is mapped as usual
    g = custom_vmap(lambda x: f(x) * 2)
    g.def_vmap(lambda size, batched, x: (f(x) * 3, True))
    close(vmap(g)(X), np.sin(X) * 3)
    close(vmap(vmap(g))(x), (np.sin(x) + 1) * 3)
    close(scan(lambda c, row: (c, vmap(f)(row)), 0.0, x)[1], np.sin(x) + 1)


def test_derivatives():
    f, t = sine(), np.full(3, 2, np.float32)
    close(jvp(f, (X,), (t,)), (np.sin(X), 2 * np.cos(X)))
    close(jvp(vmap(f), (X,), (t,)), (np.sin(X) + 1, 2 * np.cos(X)))
    close(vmap(lambda x, t: jvp(f, (x,), (t,)))(X, t), (np.sin(X) + 1, 2 * np.cos(X)))
    close(
        vmap(lambda x, t: jvp(f, (x,), (t,)), (None, 0))(X[0], t),
        (np.full(3, np.sin(X[0]) + 1), 2 * np.cos(X[[0] * 3])),
    )
    close([grad(f)(X[0]), grad(jit(f))(X[0]), jit(grad(f))(X[0])], [np.cos(X[0])] * 3)
    close(
        [vmap(grad(f))(X), grad(lambda x: vmap(f)(x).sum())(X), jit(vmap(grad(jit(f))))(X)],
        [np.cos(X)] * 3,
    )
    close(vmap(grad(grad(f)))(X), -np.sin(X))


def test_captured_values():
    def outer(y, x):
        f = custom_vmap(lambda x: x * y)
        f.def_vmap(lambda size, batched, x: (x * y, batched[0]))
        return f(x)

    close(jit(lambda y, x: vmap(lambda x: outer(y, x))(x))(2.0, X), 2 * X)
    close(grad(outer)(2.0, X[0]), X[0])
    with pytest.raises(ValueError, match="captures is batched"):
        vmap(outer)(X, X)


def test_what_is_refused():
    f = custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="No batching rule defined"):
        f(1.0)
    for result, error, message in [
        (lambda x: (x, (True,)), ValueError, "batching specification"),
        (lambda x: ([x], [True]), ValueError, "does not match that of original"),
        (lambda x: x, TypeError, "must return a pair"),
        (lambda x: (x[1:], True), ValueError, "must return a value of shape"),
    ]:
        f.def_vmap(lambda size, batched, x: result(x))
        with pytest.raises(error, match=message):
            vmap(f)(np.ones((3, 2), "f"))


def test_one_after_the_other():
    f = sequential_vmap(lambda x, y: {"z": jnp.sin(x) + y})
    x = np.stack([X, X + 1])
    close(vmap(f, (0, None))(X, 1.0), {"z": np.sin(X) + 1})
    close(jit(vmap(vmap(f)))(x, x), {"z": np.sin(x) + x})
    assert primitives_of(verified(vmap(f), X, X)) == ["scan"]
    close(vmap(grad(lambda x: f(x, 1.0)["z"]))(X), np.cos(X))
    close(grad(lambda x: vmap(f)(x, x)["z"].sum())(X), np.cos(X) + 1)


@pytest.mark.peer
def test_like_jax():
    jax = pytest.importorskip("jax")

    def programs(vmap, jvp, custom_vmap, sequential_vmap, jnp):
        f = custom_vmap(lambda x, y: (x * jnp.sin(y), y.sum()))

        @f.def_vmap
        def rule(axis_size, in_batched, x, y):
            y = y if in_batched[1] else jnp.broadcast_to(y, (axis_size, *y.shape))
            x = x if in_batched[0] else jnp.broadcast_to(x, (axis_size, *x.shape))
            return (2 * x * jnp.sin(y), y.sum(1)), (True, True)

        m = np.arange(6, dtype=np.float32).reshape(2, 3)
        yield f(m, m)
        yield vmap(f)(m, m)
        yield vmap(f, (None, 1))(m[:, 0], m)
        yield vmap(f, (1, None), (1, 0))(m, m[:, 0])
        yield vmap(lambda x, t: jvp(f, (x, x), (t, t)))(m, m + 1)
        yield jvp(vmap(f), (m, m), (m, m))
        yield vmap(sequential_vmap(lambda x, y: x @ y), (0, None))(m, m[0])

    ours = programs(vmap, jvp, custom_vmap, sequential_vmap, jnp)
    theirs = programs(
        jax.vmap,
        jax.jvp,
        jax.custom_batching.custom_vmap,
        jax.custom_batching.sequential_vmap,
        jax.numpy,
    )
    for a, b in zip(ours, theirs, strict=True):
        close(a, jax.tree.map(np.asarray, b), 1e-5, 1e-6)


def test_rules_of_operands_that_are_not_batched():
    """Where every tangent is batched and no primal, the rule sees what it always sees."""
    seen = []
    f = custom_vmap(lambda x: jnp.sin(x))

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        seen.append(in_batched)
        return jnp.cos(x), in_batched[0]

    out, tangents = vmap(lambda t: jvp(f, (0.5,), (t,)), out_axes=(None, 0))(X)
    assert seen == [[False]]
    close(out, np.cos(0.5))
    close(tangents, -np.sin(0.5) * X)
    _, tangents = vmap(lambda x: jvp(f, (x,), (2.0,)))(X)
    close(tangents, -np.sin(X) * 2)
