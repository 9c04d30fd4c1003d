"""What all rules share: constants, zeros, operands, batching helpers."""

import ml_dtypes
import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.primitives import REGISTRY, NotApplicable, Zero
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops import common as C
from tests.ops.helpers import run, same, x64

F32 = ShapedArray((2,), np.dtype("float32"))


def test_constants_have_the_type_of_what_they_are_for():
    for dtype in ("float32", "float16", ml_dtypes.bfloat16, "int8", "complex64", bool):
        x = C.const(np.zeros(2, dtype), 1)
        assert x.dtype == np.dtype(dtype) and x.shape == () and x == 1
    assert C.const(1.0, 2) == 2.0 and type(C.const(1.0, 2)) is float
    with x64():
        assert C.const(np.zeros(2), 0.1) == 0.1


def test_equal_constants_are_one_object_and_signed_zeros_differ():
    f = np.dtype("float32")
    assert C.scalar_of(f, 2.0) is C.scalar_of(f, 2.0)
    assert np.signbit(C.scalar_of(f, -0.0)) and not np.signbit(C.scalar_of(f, 0.0))
    c = np.dtype("complex64")
    assert np.signbit(C.scalar_of(c, complex(1, -0.0)).imag) and not np.signbit(
        C.scalar_of(c, complex(1, 0.0)).imag
    )
    with pytest.raises(ValueError, match="read-only"):
        C.scalar_of(f, 2.0)[...] = 3


def test_zeros_and_tangents():
    assert C.tangent_aval(F32) is F32
    t = C.zero_like(np.ones(2, np.int32))
    assert type(t) is Zero and t.aval.dtype.itemsize == 0
    assert C.add_tangents(t, 3) == 3 == C.add_tangents(3, t)
    same(
        run(lambda x: C.instantiate(Zero(typeof(x))), np.ones(2, np.float32))[0],
        np.zeros(2, np.float32),
    )


def test_operands():
    assert C.operand(np.float64(1)).dtype == np.float32
    assert [type(x) for x in C.operands("add", 1.0, 2.0)] == [float, float]
    with pytest.raises(TypeError, match="same dtypes"):
        C.operands("add", 1, 2.0)
    with pytest.raises(TypeError, match="is not a valid calque type"):
        C.operand([1, 2])
    words = (
        r"argument to add as a JAX value.*<class 'numpy.ndarray'> .* to add at position 1\. .*<U1"
    )
    with pytest.raises(TypeError, match=words):
        lax.add(1.0, np.array("a"))
    with pytest.raises(
        TypeError, match=r"lax.f requires arguments to have the same dtypes, got float32, int32"
    ):
        C.operands("f", np.ones(2, np.float32), np.ones(2, np.int32))


def test_what_was_accepted_is_remembered_for_each_dtype():
    for _ in range(2):
        assert C.quick_scalar("f", 2, ShapedArray((), np.dtype("int8"))).dtype == np.int8
        assert C.quick_scalar("f", 2, F32).dtype == np.float32
        with pytest.raises(TypeError, match="same dtypes"):
            C.quick_scalar("f", 2.0, ShapedArray((), np.dtype("int8")))


def test_batching_helpers():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(run(lambda v: C.move(v, 1, 0), x)[0], x.T)
    same(run(lambda v: C.repeated(v, 4, 1), x)[0], np.repeat(x[:, None], 4, 1))
    same(run(lambda v: C.front(v, None, 2), x)[0], np.stack([x, x]))
    same(run(lambda v: C.expanded(v, 4), x)[0], x[..., None, None])
    out = trace_to_jaxpr(
        lambda a, b: C.aligned([a, b], [0, None])[0], [F32, ShapedArray((), np.dtype("float32"))]
    )
    assert not out.eqns


def test_axes():
    assert C.axis_in("f", -1, 3) == 2
    with pytest.raises(ValueError, match="f: axis 3 is out of bounds for array of dimension 3"):
        C.axis_in("f", 3, 3)


def test_every_rule_is_there_or_says_why_not():
    for name, prim in REGISTRY.items():
        for rule in ("meaning", "shape", "jvp", "transpose", "batch"):
            found = getattr(prim, rule)
            assert callable(found), name
            assert not isinstance(found, NotApplicable) or len(found.reason) > 10, name


def test_tangents_of_integers_take_no_part():
    nothing = np.zeros((), float0)
    with pytest.raises(TypeError, match="float0s do not support any operations by design"):
        lax.add(nothing, jnp.zeros(()))
    with pytest.raises(TypeError, match="float0s do not support any operations by design"):
        jnp.zeros(()) + nothing
