"""Rules of differentiation of a library's own primitives."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.extend.core import Primitive
from calque.interpreters import ad, batching

X = np.array([0.5, -1.0, 2.0], np.float32)
_numbers = itertools.count()


def _name(base: str) -> str:
    return f"{base}_{next(_numbers)}"


def core_aval(shape: Any, dtype: Any) -> Any:
    return calque.core.ShapedArray(shape, dtype)


def test_linear_and_bilinear_primitives() -> None:
    scale = Primitive(_name("scale"))
    scale.def_impl(lambda x, *, by: x * by)
    scale.def_abstract_eval(lambda x, *, by: x)
    ad.deflinear(scale, lambda ct, *, by: [scale.bind(ct, by=by)])
    np.testing.assert_allclose(calque.grad(lambda x: scale.bind(x, by=3.0).sum())(X), [3, 3, 3])
    outer = Primitive(_name("outer"))
    outer.def_impl(lambda x, y: x[:, None] * y[None, :])
    outer.def_abstract_eval(lambda x, y: core_aval((*x.shape, *y.shape), x.dtype))
    ad.defbilinear(outer, lambda ct, x, y: ct @ y, lambda ct, x, y: ct.T @ x)
    weights = jnp.arange(6.0).reshape(3, 2)

    def f(x, y):
        return (outer.bind(x, y) * weights).sum()

    by_x, by_y = calque.grad(f, (0, 1))(jnp.asarray(X), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(by_x, weights @ np.array([1.0, 2.0]))
    np.testing.assert_allclose(by_y, weights.T @ X)
    log = Primitive(_name("log"))
    log.def_impl(jnp.log)
    log.def_abstract_eval(lambda x: x)
    ad.defjvp2(log, lambda t, out, x: t * jnp.exp(-out))
    assert float(calque.grad(log.bind)(2.0)) == pytest.approx(0.5)
    assert ad.get_primitive_transpose(scale) is ad.primitive_transposes[scale]


def test_several_results() -> None:
    p = Primitive(_name("sincos"))
    p.multiple_results = True
    p.def_impl(lambda x: [jnp.sin(x), jnp.cos(x)])
    p.def_abstract_eval(lambda x: [x, x])
    ad.defjvp(p, lambda t, x: [t * jnp.cos(x), -t * jnp.sin(x)])
    batching.defvectorized(p)
    for f in (p.bind, calque.jit(p.bind), calque.vmap(p.bind)):
        a, b = f(X)
        np.testing.assert_allclose(a, np.sin(X), rtol=1e-5)
        np.testing.assert_allclose(b, np.cos(X), rtol=1e-5)
    slope = calque.grad(lambda x: sum(v.sum() for v in p.bind(x)))(jnp.asarray(X))
    np.testing.assert_allclose(slope, np.cos(X) - np.sin(X), rtol=1e-5)


def own(impl: Any, several: bool = False) -> Any:
    p = Primitive(_name("own"))
    p.multiple_results = several
    p.def_impl(impl)
    p.def_abstract_eval(lambda x, *rest, **params: [x, x] if several else x)
    return p


def test_operands_without_a_derivative() -> None:
    p = own(lambda x, n: x**n)
    ad.defjvp(p, lambda t, x, n: t * n * x ** (n - 1), None)
    assert float(calque.grad(p.bind)(2.0, 3.0)) == 12
    assert float(calque.grad(p.bind, 1)(2.0, 3.0)) == 0
    value, tangent = calque.jvp(lambda n: p.bind(2.0, n), (3.0,), (1.0,))
    assert float(value) == 8 and float(tangent) == 0


def test_rules_are_asked_for_tangents_that_are_there() -> None:
    asked = []
    p = own(lambda x, y: x * y)
    ad.defjvp(
        p,
        lambda t, x, y: asked.append("x") or t * y,
        lambda t, x, y: asked.append("y") or t * x,
    )
    calque.grad(p.bind)(2.0, 3.0)
    assert asked == ["x"]
    assert float(calque.grad(lambda v: p.bind(v, v))(3.0)) == 6


def test_linear_rules_with_operands() -> None:
    p = own(lambda x, *, by: x * by)
    seen = []
    ad.deflinear2(p, lambda ct, x, *, by: (seen.append(ad.is_undefined_primal(x)), [ct * by])[1])
    assert float(calque.grad(lambda x: p.bind(x, by=4.0))(1.0)) == 4 and seen == [True]
    (back,) = calque.linear_transpose(lambda x: p.bind(x, by=4.0), 1.0)(2.0)
    assert float(back) == 8
    assert float(calque.grad(lambda x: p.bind(3.0, by=2.0) * x)(1.0)) == 6


def test_zeros_and_what_stands_for_operands() -> None:
    zero = ad.Zero.from_primal_value(jnp.ones(3, int))
    assert zero.aval.dtype == calque.float0 and type(zero) is ad.Zero
    assert ad.Zero.from_primal_value(jnp.ones(2)).instantiate().tolist() == [0, 0]
    x = jnp.ones(2)
    assert ad.add_tangents(ad.Zero(calque.typeof(x)), x) is x
    assert ad.instantiate_zeros(x) is x
    undefined = ad.UndefinedPrimal(calque.typeof(jnp.ones(3, int)))
    assert ad.UndefinedPrimal.from_primal_value(undefined).aval.dtype == calque.float0
    names = [e.primitive.name for e in calque.make_jaxpr(ad.add_jaxvals)(1.0, 2.0).eqns]
    assert names == ["add_any"]


def test_what_works_on_containers_of_jax_is_refused() -> None:
    for call, words in (
        (lambda: ad.jvp(None, (), ()), "use calque.jvp"),
        (lambda: ad.linearize(None, ()), "use calque.linearize"),
        (lambda: ad.get_primitive_transpose(own(jnp.sin)), "Transpose rule"),
    ):
        with pytest.raises(NotImplementedError, match=words):
            call()


# Names that engines and wrappers of rules have for what they are given by position.
ODD = ("prim", "primitive", "args", "dims", "primals", "tangents", "cts", "ctx", "f", "avals")


def _odd() -> Any:
    """A sine whose parameters are called like arguments of the engines."""
    sine, slope = Primitive("odd_sine"), Primitive("odd_slope")
    sine.def_impl(lambda x, /, **params: jnp.sin(x) * params["primals"])
    slope.def_impl(lambda t, x, /, **params: t * jnp.cos(x) * params["cts"])
    sine.def_abstract_eval(lambda x, /, **_: x)
    slope.def_abstract_eval(lambda t, x, /, **_: x)
    batching.primitive_batchers[sine] = lambda xs, ds, /, **params: (
        sine.bind(*xs, **params), ds[0],
    )  # fmt: skip
    ad.primitive_jvps[sine] = lambda xs, ts, /, **params: (
        sine.bind(*xs, **params), slope.bind(ts[0], xs[0], **params),
    )  # fmt: skip
    ad.primitive_transposes[slope] = lambda ct, _, x, /, **params: [
        slope.bind(ct, x, **params), None,
    ]  # fmt: skip
    return lambda x: sine.bind(x, **dict.fromkeys(ODD, 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f, calque.jit, calque.vmap,
        lambda f: lambda x: calque.jvp(f, (x,), (x,))[0],
        lambda f: lambda x: calque.lax.scan(lambda c, _: (f(x), None), x, None, length=2)[0],
        lambda f: calque.checkpoint(f, policy=calque.checkpoint_policies.nothing_saveable),
    ],
)  # fmt: skip
def test_parameters_may_be_called_as_anything(change: Any) -> None:
    x = jnp.arange(3.0)
    np.testing.assert_allclose(change(_odd())(x), np.sin(x), rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("policy", ["nothing_saveable", "everything_saveable", "dots_saveable"])
def test_parameters_of_checkpointed_primitives_may_be_called_as_anything(
    policy: str, jit: bool
) -> None:
    kept = calque.checkpoint(_odd(), policy=getattr(calque.checkpoint_policies, policy))
    slope = calque.grad(lambda x: kept(x).sum())
    x = jnp.arange(3.0)
    np.testing.assert_allclose((calque.jit(slope) if jit else slope)(x), np.cos(x), rtol=1e-6)
