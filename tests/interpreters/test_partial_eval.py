"""Programs recorded and pruned."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.extend import core
from calque.interpreters import partial_eval


def test_pruning() -> None:
    closed = calque.make_jaxpr(lambda x, y, z: (x + 1, jnp.sin(y), x * z))(1.0, 2.0, 3.0)
    jaxpr, used = partial_eval.dce_jaxpr(closed.jaxpr, [False, True, False])
    assert used == [False, True, False] and len(jaxpr.eqns) == len(jaxpr.invars) == 1
    jaxpr, used = partial_eval.dce_jaxpr(
        closed.jaxpr, [True, False, False], instantiate=[False, True, False]
    )
    assert used == [True, True, False] and len(jaxpr.invars) == 2
    a, b = jnp.ones(3), jnp.arange(3.0)
    with_consts = calque.make_jaxpr(lambda x: (x + a, x * b))(jnp.ones(3))
    jaxpr, consts, used = partial_eval.dce_jaxpr_consts(with_consts.jaxpr, [False, True])
    assert sum(consts) == 1 and used == [True] and len(jaxpr.constvars) == 1
    avals = [calque.typeof(jnp.ones(3))]
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_dynamic(lambda x: [x + a], avals)
    assert outs == avals and len(consts) == 1 and len(jaxpr.eqns) == 1
    assert (
        partial_eval.PartialVal.known(3).is_known()
        and partial_eval.PartialVal.unknown(avals[0]).get_aval() is avals[0]
    )


def test_what_is_known_is_computed_and_the_rest_recorded() -> None:
    seen = []

    def f(x, y):
        seen.append(float(y))  # known, though something is recorded
        return [x * y, jnp.sin(y), 3.0, calque.jit(lambda a: a + y)(x)]

    known, unknown = partial_eval.PartialVal.known, partial_eval.PartialVal.unknown
    aval = calque.typeof(jnp.ones(2))
    given = [unknown(aval), known(jnp.float32(2.0))]
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(f, given)
    assert seen == [2.0] and [o.is_known() for o in outs] == [False, True, True, False]
    assert outs[0].get_aval() == aval and float(outs[1].get_known()) == np.sin(np.float32(2.0))
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul", "jit"] and len(jaxpr.invars) == 1
    product, moved = core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, consts))(jnp.ones(2))
    assert product.tolist() == [2.0, 2.0] and moved.tolist() == [3.0, 3.0]
    jaxpr, outs, _ = partial_eval.trace_to_jaxpr_nounits(f, given, instantiate=True)
    assert not any(o.is_known() for o in outs) and len(jaxpr.outvars) == 4


def test_partial_values() -> None:
    known, unknown = partial_eval.PartialVal.known(3), partial_eval.PartialVal.unknown("type")
    assert known.is_known() and known.get_known() == 3 and known.get_aval() is None
    assert not unknown.is_known() and unknown.get_known() is None and unknown.get_aval() == "type"
    assert known == (None, 3) and tuple(unknown) == ("type", None)


@pytest.mark.parametrize("closed", [False, True])
def test_calls_are_pruned(closed) -> None:
    body = calque.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 2.0)
    (e,) = calque.make_jaxpr(calque.jit(lambda a, b: (a + 1, b + 1)))(1.0, 2.0).eqns
    e = e.replace(params={"call_jaxpr": body if closed else body.jaxpr})
    rule = partial_eval.dce_jaxpr_closed_call_rule if closed else partial_eval.dce_jaxpr_call_rule
    used, new = rule([False, True], e)
    inner = new.params["call_jaxpr"]
    assert used == [False, True] and new.invars == e.invars[1:] and new.outvars == e.outvars[1:]
    assert [q.primitive.name for q in (inner.jaxpr if closed else inner).eqns] == ["cos"]
    assert rule([False, False], e) == ([False, False], None)


def test_recording_with_fewer_arguments_and_without_dead_code() -> None:
    avals = [calque.typeof(jnp.ones(3)), calque.typeof(1.0)]

    def f(x):
        jnp.cos(x)
        return [jnp.sin(x)]

    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_dynamic(f, avals, keep_inputs=[True, False])
    assert len(jaxpr.invars) == 2 and len(jaxpr.eqns) == 2 and consts == []
    jaxpr, _, _ = partial_eval.trace_to_jaxpr_dynamic(
        f, avals, keep_inputs=[True, False], auto_dce=True
    )
    assert len(jaxpr.eqns) == 1 and outs == avals[:1]
    with pytest.raises(NotImplementedError, match="lower=True"):
        partial_eval.trace_to_jaxpr_dynamic(f, avals, lower=True)
