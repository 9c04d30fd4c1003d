"""Avals, recording, the printed form, the verifier."""

import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.core.jaxprs import (
    DebugInfo,
    Eqn,
    Jaxpr,
    JaxprTypeError,
    Literal,
    Var,
    all_equations,
    check_jaxpr,
)
from calque.core.printing import letters
from calque.core.trace import eval_jaxpr, jaxpr_as_fun, trace_to_jaxpr, typeof

F32 = np.dtype("float32")


def test_avals_are_interned():
    a = ShapedArray((2, 3), F32)
    assert (
        a is ShapedArray([2, 3], F32)
        and a is ShapedArray((np.int64(2), 3), F32)
        and a is not ShapedArray((2, 3), F32, True)
    )
    assert pickle.loads(pickle.dumps(a)) is a
    assert (a.size, a.ndim, a.str_short(), repr(a)) == (
        6,
        2,
        "f32[2,3]",
        "ShapedArray(float32[2,3])",
    )
    with pytest.raises(AttributeError):
        a.shape = ()
    with pytest.raises(TypeError):
        ShapedArray((-1,), F32)


def test_types_of_values():
    assert repr(typeof(3)) == "ShapedArray(int32[], weak_type=True)"
    assert repr(typeof(True)) == "ShapedArray(bool[])"
    assert repr(typeof(np.float64(2))) == "ShapedArray(float32[])"
    assert repr(typeof(np.zeros((2, 0), "i8"))) == "ShapedArray(int32[2,0])"
    with pytest.raises(OverflowError, match="too large"):
        typeof(2**31)
    with pytest.raises(TypeError, match="not a valid calque type"):
        typeof("a")


def test_the_printed_form():
    j = calque.make_jaxpr(lambda x, y: (x * y + 1.0, 2))(jnp.ones(3), 2.0)
    assert (
        str(j) == "{ lambda ; a:f32[3] b:f32[]. let\n"
        "    c:f32[] = convert_element_type[new_dtype=float32 weak_type=False] b\n"
        "    d:f32[3] = mul a c\n"
        "    e:f32[3] = add d 1.0:f32[]\n"
        "  in (e, 2:i32[]) }"
    )
    assert [letters(i) for i in (0, 25, 26, 51, 52, 676)] == ["a", "z", "ba", "bz", "ca", "baa"]
    inner = calque.jit(lambda x: jnp.sin(x) + 1)
    assert "jaxpr={ lambda ; a:f32[]. let" in str(calque.make_jaxpr(lambda x: inner(x) * 2)(1.0))


def test_captured_arrays_are_constants_and_numbers_literals():
    big, small = jnp.arange(3), jnp.float32(2)
    j = calque.make_jaxpr(lambda x: x * small + big)(jnp.ones(3))
    assert str(j).startswith("{ lambda a:f32[] b:i32[3]; c:f32[3]. let") and "mul c a" in str(j)
    assert j.consts[0] is small and j.consts[1] is big
    for number in (2.0, np.float32(2)):
        j = calque.make_jaxpr(lambda x: x * number)(jnp.ones(3))
        assert "mul a 2.0:f32[]" in str(j) and not j.consts


def test_every_equation_knows_the_users_line():
    def f(x):
        return jnp.sin(x) + 1  # the line that is looked for

    e = calque.make_jaxpr(f)(1.0).jaxpr.eqns[0]
    assert (
        e.source.line == f.__code__.co_firstlineno + 1
        and e.source.function == "f"
        and e.source.file == __file__
    )


def test_programs_can_be_run_again():
    closed = calque.make_jaxpr(lambda x, y: (x - y, x * y))(3.0, 4.0)
    assert [float(v) for v in eval_jaxpr(closed.jaxpr, closed.consts, 3.0, 4.0)] == [-1.0, 12.0]
    assert [float(v) for v in calque.jit(jaxpr_as_fun(closed))(3.0, 4.0)] == [-1.0, 12.0]


def test_the_verifier_finds_what_is_wrong():
    closed = trace_to_jaxpr(lambda x: [jnp.sin(x) * 2], [ShapedArray((3,), F32)])
    jaxpr = closed.jaxpr
    check_jaxpr(jaxpr)
    with pytest.raises(JaxprTypeError, match="used before it is defined"):
        check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[::-1]))
    first = jaxpr.eqns[0]
    wrong = Eqn(first.primitive, first.invars, [Var(ShapedArray((4,), F32))], first.params)
    with pytest.raises(JaxprTypeError, match="its shape rule says"):
        check_jaxpr(jaxpr.replace(eqns=[wrong]))
    with pytest.raises(JaxprTypeError, match="not defined"):
        check_jaxpr(jaxpr.replace(outvars=[Var(ShapedArray((), F32))]))
    with pytest.raises(JaxprTypeError, match="bound twice"):
        check_jaxpr(jaxpr.replace(eqns=[first, first]))


def test_literals_keep_exact_values():
    j = calque.make_jaxpr(lambda x: (x + 0.1, x * -0.0, x + float("inf")))(jnp.float32(1))
    values = [a.val for e in j.eqns for a in e.invars if isinstance(a, Literal)]
    assert values[0] == np.float32(0.1) and np.signbit(values[1]) and np.isinf(values[2])


def test_leaks_are_reported():
    kept = []
    calque.jit(lambda x: kept.append(x) or x)(1.0)
    for use in (
        lambda: kept[0] + 1,
        lambda: calque.jit(lambda y: y + kept[0])(1.0),
        lambda: calque.make_jaxpr(lambda: kept[0])(),
    ):
        with pytest.raises(calque.errors.UnexpectedTracerError, match="unexpected tracer"):
            use()


def test_ten_thousand_equations():
    def f(x):
        for _ in range(10_000):
            x = x * 1.5
        return x

    assert len(calque.make_jaxpr(f)(1.0).jaxpr.eqns) == 10_000


def test_programs_with_and_without_constants_look_alike():
    import calque
    import calque.numpy as jnp

    table = jnp.arange(3.0)
    closed = calque.make_jaxpr(lambda x: (calque.debug.print("{}", x), x + table)[1])(1.0)
    for part in ("constvars", "invars", "outvars", "eqns"):
        assert getattr(closed, part) is getattr(closed.jaxpr, part)
    assert [a.str_short() for a in closed.jaxpr.in_avals] == [
        a.str_short() for a in closed.in_avals
    ]
    assert closed.jaxpr.out_avals == closed.out_avals and closed.out_avals[0].shape == (3,)
    assert [bool(e.effects) for e in closed.eqns].count(True) == 1 and closed.effects


def test_parts_are_replaced_by_name_and_unknown_parts_refused():
    jaxpr = calque.make_jaxpr(lambda x: x + 1.0)(2.0).jaxpr
    (e,) = jaxpr.eqns
    other = e.replace(params={"a": 1}, source_info=e.source)
    assert other.params == {"a": 1} and other.primitive is e.primitive and other.source is e.source
    assert jaxpr.replace(eqns=[], outvars=jaxpr.invars, effects=()).eqns == []
    for part in (e, jaxpr, calque.make_jaxpr(lambda x: x)(2.0)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'outvar'"):
            part.replace(outvar=[])


def test_all_equations_are_those_of_programs_inside_too():
    def f(x):
        return calque.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), calque.jit(jnp.cos)(x))

    closed = calque.make_jaxpr(f)(1.0)
    names = [e.primitive.name for e in all_equations(closed.jaxpr)]
    assert {"sin", "cos"} <= set(names) and not {"sin", "cos"} & {
        e.primitive.name for e in closed.jaxpr.eqns
    }
    assert len(names) > len(closed.jaxpr.eqns)


def test_a_whole_program_is_walked_through_once_for_all_that_is_asked_of_its_operations(
    monkeypatch,
):
    from calque.core import jaxprs

    walks = []
    found = jaxprs.all_equations
    monkeypatch.setattr(jaxprs, "all_equations", lambda j: walks.append(j) or found(j))
    traced = calque.jit(lambda x: jnp.sin(x) + calque.jit(jnp.cos)(x)).trace(jnp.ones(3))
    closed = traced.jaxpr
    assert {p.name for p in jaxprs.primitives_of(closed)} == {"sin", "add", "jit", "cos"}
    assert jaxprs.symbols_found_by(closed) is None
    assert sum(j is closed.jaxpr for j in walks) <= 1
    traced.lower().compile()
    assert sum(j is closed.jaxpr for j in walks) <= 1


def test_names_for_messages_stay_with_the_program():
    closed = calque.make_jaxpr(lambda x: x + 1)(2.0)
    jaxpr = closed.jaxpr
    assert closed.debug_info is jaxpr.debug_info and jaxpr.debug_info.arg_names is None
    info = DebugInfo("kept", None, ("x",), ("0",))
    named = jaxpr.replace(eqns=jaxpr.eqns, debug_info=info)
    assert named.debug_info == info == named.replace(outvars=jaxpr.outvars).debug_info
    made = Jaxpr([], jaxpr.invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, info)
    assert made.debug_info == info and str(made) == str(jaxpr)
