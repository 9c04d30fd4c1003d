"""custom_vjp for users: arguments and rules, and what is wrong with them."""

import functools

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import jaxpr_as_fun
from calque.transforms.engines.slices import without_dead_code
from calque.transforms.engines.zeros import SymbolicZero
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.custom_vjp import (
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import make_jaxpr
from tests.transforms.programs import check, close, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_rules_with_python_control_flow():
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct if x > 0 else -ct,))
    assert float(grad(f)(3.0)) == 1.0 and float(grad(f)(-3.0)) == -1.0


def test_nondiff_arguments_and_trees():
    @functools.partial(custom_vjp, nondiff_argnums=(0, 2))
    def apply(f, p, n):
        return f(p["x"]) * n

    apply.defvjp(lambda f, p, n: (apply(f, p, n), p), lambda f, n, r, ct: ({"x": ct * n * 10},))
    close(grad(apply, argnums=1)(jnp.sin, {"x": 1.0}, 2), {"x": 20.0})


def test_none_stands_for_zeros():
    f = custom_vjp(lambda x, p: x)
    f.defvjp(lambda x, p: (x, None), lambda r, ct: (ct, None))
    close(
        grad(f, argnums=(0, 1))(1.0, {"a": 2.0, "b": np.ones(2, np.float32)}),
        (1.0, {"a": 0.0, "b": np.zeros(2, np.float32)}),
    )


def test_symbolic_zeros():
    seen = []
    f = custom_vjp(lambda x, y: (x, y))

    def fwd(x, y):
        assert isinstance(x, CustomVJPPrimal)
        seen.append((x.perturbed, y.perturbed))
        return custom_vjp_primal_tree_values((x, y)), None

    def bwd(_, ct):
        seen.append(tuple(type(c) is SymbolicZero for c in ct))
        return ct

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    close(grad(lambda x: f(x, 2.0)[0])(1.0), 1.0)
    assert seen == [(True, False), (False, True)]


@pytest.mark.parametrize(
    "rules, error, text",
    [
        (None, AttributeError, "No VJP defined for custom_vjp function f using defvjp"),
        ((lambda x, y: x, lambda r, ct: (ct, ct)), TypeError, "fwd rule .* must produce a pair"),
        ((lambda x, y: (x, 1), lambda r, ct: ct), TypeError, "same container"),
        ((lambda x, y: (x, 1), lambda r, ct: (ct,)), TypeError, "same container"),
        (
            (lambda x, y: (x, 1), lambda r, ct: (ct, jnp.ones(3))),
            ValueError,
            r"at output\[1\] .* float32\[3\]",
        ),
    ],
)
def test_bad_rules(rules, error, text):
    def f(x, y):
        return x

    g = custom_vjp(f)
    if rules is not None:
        g.defvjp(*rules)
    with pytest.raises(error, match=r"(?s)" + text):
        grad(g)(1.0, 2.0)


def test_cotangents_that_are_numbers():
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (1,))
    assert float(grad(f)(3.0)) == 1.0
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: ("one",))
    with pytest.raises(
        TypeError, match=r"returned a value of type <class 'str'> at output component \[0\]"
    ):
        grad(f)(3.0)


def test_forward_rules_give_the_results_of_the_function():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (jnp.zeros(3), None), lambda _, ct: (ct.sum(),))
    with pytest.raises(TypeError, match=r"(?s)rule <lambda>.*float32\[3\]\nwhile.*float32\[\]"):
        grad(lambda x: scan(lambda c, _: (f(c), None), x, None, length=1)[0])(jnp.float32(1))


def test_unused_results_are_not_computed():
    f = custom_vjp(lambda x: (jnp.sin(x), jnp.cos(x)))
    f.defvjp(lambda x: (f(x), x), lambda x, cts: (2 * cts[0] + 3 * cts[1],))
    pruned = without_dead_code(make_jaxpr(lambda x: f(x)[1])(1.0).jaxpr)
    (call,) = [e for e in pruned.eqns if e.primitive.name == "custom_vjp_call"]
    assert [e.primitive.name for e in call.params["call_jaxpr"].eqns] == ["cos"]
    assert grad(lambda x: jaxpr_as_fun(ClosedJaxpr(pruned, []))(x)[0])(1.0) == 3.0


def test_checks_of_cotangents_can_be_left_out():
    f = custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, jnp.zeros(3)))
    with pytest.raises(ValueError, match="the shapes do not match"):
        grad(lambda y: f(1.0, y))(jnp.ones(4))
    with config.override("calque_disable_bwd_checks", True):
        assert grad(lambda y: f(1.0, y))(jnp.ones(4)).shape == (3,)


def test_numbers_stay_numbers_where_the_function_runs_at_once():
    f = calque.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (3 * ct,))
    assert type(f(1.5)) is float and f(1.5) == 3.0
    assert calque.grad(f)(1.5) == 3.0 and isinstance(f(calque.numpy.ones(2)), calque.Array)


def test_cotangents_inside_a_map_vary_as_the_arguments_do():
    m = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    P = calque.sharding.PartitionSpec
    rules = [
        (lambda _, ct: (calque.lax.pcast(ct, "x", to="varying"),), False),
        (lambda _, ct: (ct * 3,), True),
    ]
    for rule, fits in rules:
        f = calque.custom_vjp(lambda v: v * 2)
        f.defvjp(lambda v: (v * 2, None), rule)
        mapped = calque.shard_map(f, mesh=m, in_specs=P(), out_specs=P())

        def loss(v, mapped=mapped):
            return mapped(v).sum()

        if fits:
            assert calque.grad(loss)(jnp.ones(2)).tolist() == [3, 3]
        else:
            with pytest.raises(ValueError, match="must produce an output with the same type as"):
                calque.grad(loss)(jnp.ones(2))


def _with_cotangents_of(dtype):
    f = calque.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct.astype(dtype),))
    return f


def test_cotangents_of_another_precision_arrive_as_they_are():
    f, x = _with_cotangents_of(jnp.float32), jnp.arange(4, dtype=jnp.bfloat16)
    for g in (f, calque.jit(f), calque.checkpoint(f), calque.vmap(f)):
        assert calque.grad(lambda x, g=g: g(x).sum())(x).dtype == jnp.float32
    (ct,) = calque.vjp(lambda x: f(x[x.argsort()]), x)[1](x)
    assert ct.dtype == jnp.float32 and ct.tolist() == [0, 1, 2, 3]


def test_operations_get_cotangents_of_their_own_precision():
    f, x = _with_cotangents_of(jnp.float32), jnp.arange(1, 5, dtype=jnp.bfloat16)
    for g in (
        lambda x: f(jnp.sin(x)).sum(),
        lambda x: (f(x) * x).sum(),
        lambda x: scan(lambda c, a: (f(c) * a, f(a)), x[0], x)[0],
        lambda x: calque.lax.cond(True, f, lambda x: x, x).sum(),
        lambda x: calque.lax.fori_loop(0, 2, lambda i, y: f(y), x).sum(),
    ):
        ct = calque.grad(g)(x)
        assert ct.dtype == jnp.bfloat16
        close(ct.astype("f"), calque.grad(g)(x.astype("f")), 2e-2)
    out, tangent = calque.jvp(f, (x,), (x,))
    assert out.dtype == tangent.dtype == jnp.bfloat16


def test_the_function_runs_in_place_of_a_forward_rule_that_is_rematerialised():
    f = custom_vjp(lambda x: jnp.tan(x))  # the rule gives something else, so that one can tell
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.cos(x) * ct,), optimize_remat=True)
    value, slope = calque.value_and_grad(f)(1.0), np.cos(1.0)
    close(value, (np.sin(1.0), slope), 1e-6)
    for g in (f, lambda x: calque.jit(f)(x), lambda x: calque.vmap(f)(x[None])[0]):
        both = calque.value_and_grad(calque.checkpoint(g))
        close(both(jnp.float32(1)), (np.tan(1.0), slope), 1e-6)
        close(calque.jit(both)(jnp.float32(1)), (np.tan(1.0), slope), 1e-6)
    captured = calque.grad(lambda y: calque.checkpoint(lambda x: f(x) * y)(1.0))(2.0)
    close(captured, np.tan(1.0), 1e-6)


def test_cotangents_of_arguments_that_vary_do_so_too():
    """One that is the same for all members says so itself."""
    mesh = calque.make_mesh((calque.device_count(),), ("x",))
    P = calque.P
    for rule, fits in (
        (lambda _, ct: (calque.lax.psum(ct, "x"),), False),
        (lambda v, ct: (jnp.zeros(v.shape),), False),
        (lambda v, ct: (jnp.zeros_like(v),), True),
        (lambda v, ct: (None,), True),
    ):
        f = calque.custom_vjp(lambda v: calque.lax.psum(v.sum(), "x"))
        f.defvjp(lambda v, f=f: (f(v), v), rule)
        for mapped in (
            g := calque.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P()),
            calque.jit(g),
        ):
            if fits:
                assert calque.grad(mapped)(jnp.ones(calque.device_count())).shape
            else:
                with pytest.raises(ValueError, match="must produce an output with the same type"):
                    calque.grad(mapped)(jnp.ones(calque.device_count()))


def test_closures_over_traced_values_are_refused_where_the_flag_asks_for_it():
    def scaled(x):
        @calque.custom_vjp
        def f(y):
            return x * y

        f.defvjp(lambda y: (f(y), None), lambda _, ct: (3 * ct,))
        return f

    def lanes(x):
        return scaled(x)(2.0)

    assert calque.vmap(lanes)(jnp.arange(3.0)).tolist() == [0, 2, 4]
    before = calque.config.calque_custom_vjp3
    calque.config.update("jax_custom_vjp3", True)
    try:
        assert calque.grad(scaled(5.0))(2.0) == 3
        assert calque.jit(lambda x: calque.grad(scaled(x))(2.0))(5.0) == 3
        with pytest.raises(calque.errors.UnexpectedTracerError, match="f can't close over"):
            calque.vmap(lanes)(jnp.arange(3.0))
        with pytest.raises(calque.errors.UnexpectedTracerError, match="Pass it as an argument"):
            calque.vmap(lambda x: calque.grad(scaled(x))(2.0))(jnp.arange(3.0))
    finally:
        calque.config.update("jax_custom_vjp3", before)


def _with_state(seen):
    """A step whose backward rule gives the next state as the cotangent of the state, and what
    drops the step's own cotangent."""
    step, dropped = calque.custom_vjp(lambda x, state: x * 2), calque.custom_vjp(lambda x, y: x * y)

    def backward(state, ct):
        seen.append(ct)
        return None, state + 5

    step.defvjp(lambda x, state: (x * 2, state), backward)
    dropped.defvjp(lambda x, y: (x * y, x), lambda x, ct: (None, ct * x))
    return step, dropped


def _through(how, step):
    return {
        "plain": lambda x, state: step(x, state),
        "jit": calque.jit(lambda x, state: step(x, state)),
        "checkpoint": calque.checkpoint(lambda x, state: step(x, state)),
        "cond": lambda x, state: lax.cond(x > 0, step, lambda x, state: x * state, x, state),
        "scan": lambda x, state: lax.scan(lambda c, _: (step(c, state), 0), x, None, length=1)[0],
        "vmap": lambda x, state: calque.vmap(step)(x[None], state[None])[0],
    }[how]


@pytest.mark.parametrize("how", ["plain", "jit", "checkpoint", "cond", "scan", "vmap"])
def test_the_rule_of_a_call_that_the_result_depends_on_runs_though_no_cotangent_arrives(how):
    seen = []
    step, dropped = _with_state(seen)
    through = _through(how, step)
    slopes = calque.grad(lambda x, state: dropped(through(x, state), x), (0, 1))
    for f in (slopes, calque.jit(slopes)):
        assert [float(g) for g in f(jnp.array(2.0), jnp.array(3.0))] == [4, 8]
    assert seen  # by jit of jit once for both


def test_the_rule_of_a_call_whose_result_is_not_used_does_not_run():
    seen = []
    step, _ = _with_state(seen)

    def unused(x, state):
        step(x, state)
        return x + lax.stop_gradient(step(x, state))

    assert [float(g) for g in calque.grad(unused, (0, 1))(2.0, 3.0)] == [1, 0] and seen == []
