"""The registry of primitives, and what rules say."""

import copy
import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, UndefinedPrimal, Zero, do

F = ShapedArray((2,), np.dtype("float32"))


@pytest.fixture
def doubled():
    none = NotApplicable("a test has no derivative")
    p = Primitive(
        "test_doubled",
        meaning=lambda x, *, times: x * times,
        shape=lambda x, *, times: x,
        jvp=none,
        transpose=none,
        batch=none,
        defaults={"times": 2},
    )
    yield p
    del REGISTRY["test_doubled"]


def test_primitives_are_known_by_name(doubled):
    assert REGISTRY["test_doubled"] is doubled and repr(doubled) == "test_doubled"
    assert pickle.loads(pickle.dumps(doubled)) is doubled is copy.deepcopy(doubled)
    assert do["test_doubled"](np.ones(2, np.float32), times=3).tolist() == [3, 3]


def test_rules_that_do_not_exist_say_why(doubled):
    with pytest.raises(NotImplementedError, match="a test has no derivative"):
        doubled.jvp((1.0,), (1.0,), times=2)


def test_every_primitive_has_its_rules():
    for name, p in REGISTRY.items():
        assert p.name == name
        for rule in (p.meaning, p.shape, p.jvp, p.transpose, p.batch):
            assert callable(rule), name
        for reason in (
            r.reason for r in (p.jvp, p.transpose, p.batch) if isinstance(r, NotApplicable)
        ):
            assert len(reason) > 10, name


def test_values_that_stand_for_others():
    assert Zero(F).aval is F and "f32[2]" in repr(Zero(F)).replace("float32", "f32")
    assert UndefinedPrimal(F).aval is F and "UndefinedPrimal" in repr(UndefinedPrimal(F))


def test_what_runs_for_arrays_can_be_watched():
    seen = []
    plain = lax.sin_p.impl
    x = jnp.float32(0.5)
    f = calque.jit(jnp.sin)
    for _ in range(3):  # machine code has learned both
        expected, compiled = lax.sin(x), f(x)
    lax.sin_p.def_impl(lambda x, **params: seen.append(x) or plain(x, **params))
    try:
        assert lax.sin(x) == expected and len(seen) == 1
        assert f(x) == compiled and len(seen) == 1  # a compiled program is what it is
        again = calque.checkpoint(lambda x: lax.sin(lax.sin(x)))
        calque.grad(again)(x)
        assert len(seen) == 1 + 2 + 1  # the value, and once more what the derivative reads
    finally:
        lax.sin_p.def_impl(plain)
    assert lax.sin(x) == expected and len(seen) == 4


def test_calls_are_found_by_their_parameter():
    """Libraries that walk through equations ask each primitive whether it takes functions."""

    def f(x):
        return calque.jit(jnp.sin)(x) + calque.checkpoint(jnp.cos)(x)

    eqns = calque.make_jaxpr(f)(1.0).eqns
    assert [e.primitive.name for e in eqns if "jaxpr" in e.params] == ["jit", "remat2"]
    assert not any(e.primitive.call_primitive or e.primitive.map_primitive for e in eqns)
