"""calque.core, extend.core and interpreters.partial_eval: programs and values as libraries look at
them."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.extend import core
from calque.interpreters import ad


def test_names_of_core() -> None:
    assert issubclass(calque.core.ShapedArray, calque.core.AbstractValue)
    closed = calque.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    (out,) = calque.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0)
    assert float(out) == pytest.approx(2 * np.sin(1))
    assert (
        calque.jit(lambda x: calque.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0])(1.0) == out
    )
    assert (calque.core.max_dim(2, 3), calque.core.min_dim(2, 3)) == (3, 2)

    @calque.jit
    def f(x: Any) -> Any:
        assert isinstance(x, calque.core.Tracer) and isinstance(
            core.find_top_trace([x]), calque.core.Trace
        )
        with calque.core.eval_context():
            n = int(jnp.arange(3).sum())
        with calque.core.ensure_compile_time_eval():
            n += int(jnp.ones(()))
        return x * n

    assert f(2.0) == 8
    with pytest.raises(NotImplementedError, match="propagate_source_info"):
        calque.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0, propagate_source_info=False)
    with pytest.raises(AttributeError):
        calque.core.no_such_name


def test_an_interpreter_of_programs() -> None:
    """As in JAX's tutorial: every equation is looked at and replaced."""
    closed = calque.make_jaxpr(lambda x: jnp.exp(jnp.tanh(x)))(1.0)
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr)
    env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, [2.0]))

    def read(a):
        return a.val if type(a) is core.Literal else env[a]

    for e in closed.jaxpr.eqns:
        assert isinstance(e, core.JaxprEqn) and isinstance(e.primitive, core.Primitive)
        out = e.primitive.bind(*map(read, e.invars), **e.params)
        env.update(zip(e.outvars, out if e.primitive.multiple_results else [out]))
    assert float(env[closed.jaxpr.outvars[0]]) == pytest.approx(np.exp(np.tanh(2)))
    assert core.jaxpr_as_fun(closed)(2.0)[0] == env[closed.jaxpr.outvars[0]]
    core.check_jaxpr(closed.jaxpr)


def test_new_equations() -> None:
    closed = calque.make_jaxpr(lambda x: x + 1)(1.0)
    (e,) = closed.jaxpr.eqns
    var = core.gensym()(e.outvars[0].aval)
    new = core.new_jaxpr_eqn(e.invars, [var], e.primitive, e.params, core.no_effects, e.source_info)
    jaxpr = core.Jaxpr([], closed.jaxpr.invars, [var], [new])
    assert core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))(2.0) == [3.0]
    with pytest.raises(ValueError, match="effects"):
        core.new_jaxpr_eqn(e.invars, [var], e.primitive, e.params, {core.Effect()})
    nested = calque.make_jaxpr(lambda x: calque.jit(jnp.sin)(x))(1.0)
    assert (
        len(list(core.subjaxprs(nested.jaxpr)))
        == len(list(core.jaxprs_in_params(nested.eqns[0].params)))
        == 1
    )


def test_types_and_values() -> None:
    aval = calque.core.ShapedArray((3, 4), np.dtype("float32"))
    assert core.mapped_aval(3, 0, aval).shape == (4,) and core.unmapped_aval(2, 1, aval).shape == (
        3,
        2,
        4,
    )
    assert core.mapped_aval(3, None, aval) is aval is core.unmapped_aval(3, None, aval)
    with pytest.raises(ValueError, match="size 5"):
        core.mapped_aval(5, 0, aval)
    with pytest.raises(ValueError, match="is on no mesh that has an axis 'y'"):
        core.unmapped_aval(2, 0, aval, "y")
    mesh = calque.sharding.AbstractMesh(
        (3, 2), ("x", "y"), axis_types=(calque.sharding.AxisType.Explicit,) * 2
    )
    spec = calque.sharding.PartitionSpec("x", None)
    placed = aval.update(sharding=calque.sharding.NamedSharding(mesh, spec))
    more = core.unmapped_aval(2, 1, placed, "y")
    assert (more.shape, tuple(more.sharding.spec)) == ((3, 2, 4), ("x", "y", None))
    assert core.mapped_aval(2, 1, more) is placed
    assert tuple(core.mapped_aval(3, 0, placed).sharding.spec) == (None,)
    assert (
        core.valid_jaxtype(1.0)
        and core.valid_jaxtype(jnp.ones(2))
        and not core.valid_jaxtype("text")
    )
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == calque.float0
    assert core.concrete_or_error(int, jnp.asarray(3)) == 3
    with pytest.raises(calque.errors.ConcretizationTypeError, match="the size"):
        calque.jit(lambda n: core.concrete_or_error(int, n, "the size is needed"))(3)
    assert core.call_impl(lambda x: x + 1, 2) == 3 and np.ndarray in core.array_types
    assert ad.zeros_like_aval(aval).shape == (3, 4) and ad.add_jaxvals(1.0, 2.0) == 3
    assert ad.instantiate_zeros(ad.Zero.from_primal_value(jnp.ones(2))).tolist() == [0, 0]


def test_derivatives_and_lanes_are_traces_of_their_own() -> None:
    """A library that keeps state from one trace to the other must see the difference."""
    state = core.get_opaque_trace_state
    outside, found = state(), []

    def look(x: Any) -> Any:
        inside = state()
        with calque.ensure_compile_time_eval():
            found.append((inside == outside, state() == outside))
        assert inside == state() and hash(inside) == hash(state())
        return jnp.sum(x * 2.0)

    x = jnp.ones(3)
    for run in (calque.grad(look), calque.vmap(look), calque.jit(look)):
        run(x)
    calque.jvp(look, (x,), (x,))
    calque.linearize(look, x)
    calque.vjp(look, x)
    assert found == [(False, False)] * 6
    assert state() == outside


def test_what_is_being_traced() -> None:
    outside = core.get_opaque_trace_state()
    found: list[Any] = []

    def look(x: Any) -> Any:
        found.append(
            (core.get_opaque_trace_state() == outside, core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
             core.unsafe_get_axis_names_DO_NOT_USE(), core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
             core.nonempty_axis_env_DO_NOT_USE())
        )  # fmt: skip
        with core.take_current_trace() as trace:
            assert int(jnp.arange(3).sum()) == 3
        with core.set_current_trace(trace):
            return x + 1

    look(1.0)
    calque.jit(look)(1.0)
    calque.vmap(look, axis_name="i")(jnp.ones(2))
    assert found == [
        (True, False, [], False, False),
        (False, True, [], False, False),
        (False, False, ["i"], True, True),
    ]


def test_dtypes_with_tangents_of_another_one_are_refused():
    with pytest.raises(NotImplementedError, match=r"int8 values has float32 tangents \(q8\)"):
        calque.experimental.primal_tangent_dtype("int8", "float32", "q8")
