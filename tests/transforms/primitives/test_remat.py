"""The primitive remat2: what of it is recomputed, and how often."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.passes.inline import inline_calls
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.loops import scan
from calque.transforms.functions.remat import (
    checkpoint,
)
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([0.4, -0.3, 0.8])


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


def test_batched():
    close(
        vmap(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)))))(X.astype("f")),
        (np.cos(np.sin(X)) * np.cos(X)).astype("f"),
        1e-6,
    )


def test_backward_rules_that_are_not_linear_stay_whole():
    f = calque.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.clip(ct, -1, 1) * jnp.cos(x),))
    for g in (
        lambda x: (10 * checkpoint(f)(x)).sum(),
        lambda x: scan(lambda c, a: (c, 10 * checkpoint(f)(a)), 0.0, x)[1].sum(),
        lambda x: (10 * vmap(checkpoint(f))(x)).sum(),
    ):
        close(grad(g)(X), np.cos(X))


def test_linear_maps_of_users_are_worked_out_in_forward_mode():
    x = X.astype("f")
    f = calque.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    f_jvp = calque.linearize(checkpoint(f), x)[1]
    close(f_jvp(x), x * np.cos(x))
    close(calque.jvp(checkpoint(f), (x,), (x,))[1], x * np.cos(x))
    close(calque.hessian(lambda x: checkpoint(f)(x[0]) ** 2)(x)[0, 0], 2 * np.cos(2 * x[0]))
    compiled = inline_calls(make_jaxpr(f_jvp)(x))
    assert [e.primitive.name for e in compiled.eqns] == ["optimization_barrier", "cos", "mul"]


def test_the_second_computation_has_a_name_and_its_operations_have_theirs():
    @checkpoint
    def f(x):
        with calque.named_scope("inside"):
            return jnp.sin(jnp.sin(x))

    for closed in (
        make_jaxpr(lambda x, t: calque.jvp(grad(f), (x,), (t,)))(1.0, 1.0),
        make_jaxpr(calque.vjp(f, 1.0)[1])(1.0),
    ):
        for e in closed.eqns:
            if e.primitive.name == "remat2" and e.params["differentiated"]:
                assert e.source_info.scopes[-1] == "rematted_computation"
                names = [q.source_info.name_stack for q in e.params["jaxpr"].eqns]
                assert names and set(names) == {"inside"}


def test_what_is_kept_is_logged(caplog):
    def f(x):
        return jnp.cos(jnp.sin(x).sum())

    def said(**options):
        caplog.clear()
        with caplog.at_level("DEBUG", "calque"):
            grad(checkpoint(f, **options))(X.astype("f"))
        return "\n".join(r.message for r in caplog.records if "remat-decorated" in r.message)

    inputs, made = (
        "remat-decorated function saving inputs with shapes:\n  f32[3]",
        "intermediates:",
    )
    assert said() == inputs
    everything = said(policy=lambda *_, **__: True)
    assert "inputs" not in everything and f"function saving these {made}" in everything
    assert " cos " in everything and " sin " in everything and "test_remat.py" in everything
    one = said(policy=lambda p, *_, **__: str(p) == "cos")
    assert one.startswith(inputs) and f"\nand saving these {made}\n" in one
    assert "f32[3] output of cos from" in one and " sin " not in one


def test_effects_are_not_rematerialised():
    """A second computation would do again what a callback did."""
    seen = []

    def noted(x):
        return calque.experimental.io_callback(lambda v: (seen.append(v), v)[1], x, x)

    @checkpoint
    def direct(x, y):
        noted(y)
        return jnp.sin(x)

    @checkpoint
    def within(x, y):
        return jnp.sin(x * calque.lax.cond(y > 0, noted, lambda v: v, y))

    for f in (direct, within):
        f(2.0, 3.0)
        assert len(seen) == 1
        seen.clear()
        for _ in range(2):
            with pytest.raises(NotImplementedError, match=r"Effects not supported .*test_remat.py"):
                grad(f)(2.0, 3.0)
        assert not seen
    shown = checkpoint(lambda x: (calque.debug.callback(seen.append, x), x * x)[1])
    assert grad(shown)(3.0) == 6
