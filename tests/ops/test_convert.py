"""Conversions between types, and the identities with a purpose."""

import ml_dtypes
import numpy as np
import pytest

import calque
from calque.core.avals import ShapedArray
from calque.core.dtypes import COMPLEX, FLOATS, SIGNED, UNSIGNED
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import trace_to_jaxpr
from calque.ops import convert as C
from tests.ops.helpers import (
    call,
    check_batch,
    check_fun_jvp,
    check_jvp,
    check_peer,
    check_transpose,
    forward,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

ALL = [
    np.dtype(bool),
    *(d for d in (*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX) if d.name != "float8_e8m0fnu"),
]
COMMON = [
    np.dtype(d)
    for d in (
        "bool",
        "int8",
        "uint8",
        "int32",
        "uint32",
        "float16",
        "float32",
        "complex64",
        ml_dtypes.bfloat16,
    )
]
X = values("float64", (2, 4))


def to(x, dtype):
    return call(
        C.convert_element_type_p, x, new_dtype=np.dtype(dtype), weak_type=False, sharding=None
    )[0]


@pytest.mark.parametrize("old", ALL, ids=str)
def test_small_numbers_survive(old):
    with x64():
        x = np.array([0, 1]).astype(old)
        for new in ALL:
            out = to(x, new)
            assert out.dtype == new
            assert out.astype(np.complex128).tolist() == [0, 1]
            assert to(x[:0], new).shape == (0,) and to(x[0], new).shape == ()


def test_floats_saturate():
    x = np.array([np.nan, np.inf, -np.inf, 300.7, -300.7, 3e9, -1.0], np.float32)
    same(to(x, "int8"), np.array([0, 127, -128, 127, -128, 127, -1], np.int8))
    same(to(x, "uint8"), np.array([0, 255, 0, 255, 0, 255, 0], np.uint8))
    same(to(x, "int32"), np.array([0, 2**31 - 1, -(2**31), 300, -300, 2**31 - 1, -1], np.int32))
    same(to(x, "uint32"), np.array([0, 2**32 - 1, 0, 300, 0, 3000000000, 0], np.uint32))
    same(to(x, bool), np.ones(7, bool))
    with x64():
        y = np.array([1e19, -1e19, 2.0**63, 1e25, -0.9])
        same(to(y, "int64"), np.array([2**63 - 1, -(2**63), 2**63 - 1, 2**63 - 1, 0]))
        same(to(y, "uint64"), np.array([10**19, 0, 2**63, 2**64 - 1, 0], np.uint64))
    assert to(np.array([9.0, -9.0, np.nan], np.float32), ml_dtypes.int4).astype(int).tolist() == [
        7,
        -8,
        0,
    ]


def test_integers_wrap():
    same(to(np.array([300, -1, 128], np.int32), "int8"), np.array([44, -1, -128], np.int8))
    same(to(np.array([-1], np.int8), "uint32"), np.array([2**32 - 1], np.uint32))
    assert to(np.array([9, -9], np.int32), ml_dtypes.int4).astype(int).tolist() == [-7, 7]


def test_complex_to_real_takes_the_real_part():
    z = np.array([1 + 2j, 0 + 1j, 0], np.complex64)
    same(to(z, "float32"), np.array([1, 0, 0], np.float32))
    same(to(z, bool), np.array([True, True, False]))
    with pytest.warns(np.exceptions.ComplexWarning):
        run(lambda v: C.convert_element_type(v, np.float32), z)


def test_convert_rules():
    f64, c128 = np.dtype("float64"), np.dtype("complex128")
    same_kind = {"weak_type": False, "sharding": None}
    check_jvp(C.convert_element_type_p, X, new_dtype=c128, **same_kind)
    check_jvp(C.convert_element_type_p, X, new_dtype=np.dtype("int32"), **same_kind)
    check_batch(C.convert_element_type_p, X, new_dtype=np.dtype("int32"), **same_kind)
    check_transpose(C.convert_element_type_p, X, new_dtype=c128, **same_kind)
    check_transpose(C.convert_element_type_p, X + 1j, new_dtype=f64, **same_kind)


def test_integers_get_no_tangents():
    def fun(x):
        _, (t,) = forward(lambda v: C.convert_element_type(v, np.int32))([x], [x])
        assert type(t) is Zero and t.aval.dtype.itemsize == 0
        return x

    run(fun, X.astype(np.float32))


def test_what_is_that_type_already_stays():
    aval = ShapedArray((2,), np.dtype("float32"))
    assert not trace_to_jaxpr(lambda x: [C.convert_element_type(x, np.float32)], [aval]).eqns
    assert (
        len(
            trace_to_jaxpr(
                lambda x: [C.convert_element_type(x, np.float32)], [aval.update(weak_type=True)]
            ).eqns
        )
        == 1
    )


# ---------------------------------------------------------------- bitcast_convert_type


def cast(x, dtype):
    return call(C.bitcast_convert_type_p, x, new_dtype=np.dtype(dtype))[0]


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64", ml_dtypes.bfloat16],
)
def test_bitcasts_are_views(dtype):
    with x64():
        for old in ("float32", "int32", "float64", "uint8", ml_dtypes.bfloat16):
            x = values(old, (2, 3, 8))
            ratio = np.dtype(dtype).itemsize / x.itemsize
            if ratio <= 1:
                want = x[..., None].view(dtype) if ratio < 1 else x.view(dtype)
                same(cast(x, dtype), want)
                same(cast(x[:0], dtype), want[:0])
                same(cast(x[0, 0, 0], dtype), want[0, 0, 0])
            else:
                y = np.ascontiguousarray(x[..., : int(ratio)])
                same(cast(y, dtype), y.view(dtype)[..., 0])


def test_bitcast_rules_and_checks():
    x = values("float32", (2, 2))
    for new in ("int8", "int32", "int64"):
        check_batch(C.bitcast_convert_type_p, x, new_dtype=np.dtype(new))
    check_jvp(C.bitcast_convert_type_p, X, new_dtype=np.dtype("int64"))
    with pytest.raises(TypeError, match=r"does not support bool or complex.*view"):
        traced(lambda v: C.bitcast_convert_type(v, np.int8), x > 0)
    with pytest.raises(ValueError, match=r"3 \* 16 != 32"):
        traced(lambda v: C.bitcast_convert_type(v, np.int32), np.ones((2, 3), np.float16))


# ---------------------------------------------------------------- identities


def test_copies():
    for prim in (C.copy_p, C.stop_gradient_p):
        for dtype in ("float32", "int8", bool, "complex64"):
            same(call(prim, values(dtype, (2, 3)))[0], values(dtype, (2, 3)))
        check_batch(prim, X)
    check_jvp(C.copy_p, X)
    check_transpose(C.copy_p, X)


def test_stop_gradient():
    with x64():

        def fun(x):
            _, (t,) = forward(lambda v: [C.stop_gradient({"a": v})["a"]])([x], [x])
            assert type(t) is Zero
            return x

        run(fun, X)


def test_optimization_barrier():
    a, b = call(C.optimization_barrier_p, X, X > 0)
    same(a, X)
    same(b, X > 0)
    check_fun_jvp(lambda x: C.optimization_barrier((x, x)), X)
    check_batch(C.optimization_barrier_p, X, X[0])
    check_transpose(C.optimization_barrier_p, X, X[0], linear=(0, 1))
    assert C.optimization_barrier_p.transpose(
        [None, None], X, UndefinedPrimal(ShapedArray((), np.dtype("float32")))
    ) == [None, None]


@pytest.mark.peer
@pytest.mark.parametrize("old", COMMON, ids=str)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_peer(old):
    x = specials(old)
    for new in COMMON:
        if not (old.kind == "c" and new.kind != "c"):
            check_peer("convert_element_type", x, new_dtype=new)
        if old.kind not in "bc" and new.kind not in "bc" and new.itemsize <= old.itemsize:
            check_peer("bitcast_convert_type", x, new_dtype=new)


@pytest.mark.parametrize(
    ("values", "old", "new", "bits"),
    [
        ([0x12345678], "uint32", "uint4", [[8, 7, 6, 5, 4, 3, 2, 1]]),
        ([-3], "int8", "int4", [[-3, -1]]),
        ([[1, 2], [-3, 0]], "int4", "int8", [0x21, 0x0D]),
        ([[1, -2], [1, 0]], "int2", "int4", [-7, 1]),
        ([-3], "int4", "int2", [[1, -1]]),
        ([[0.5, 1.0]], "float4_e2m1fn", "uint8", [0x21]),
    ],
)
def test_the_bits_of_types_that_share_a_byte_are_regrouped_from_the_low_end(values, old, new, bits):
    x = np.asarray(values).astype(old)
    wanted = np.asarray(bits).astype(new)
    for run_it in (C.bitcast_convert_type, traced_and_run):
        out = np.asarray(run_it(x, new))
        assert out.dtype == wanted.dtype
        assert out.astype("int64").tolist() == wanted.astype("int64").tolist()
    back = np.asarray(C.bitcast_convert_type(wanted, old))
    assert back.astype("float32").tolist() == x.astype("float32").tolist()


def traced_and_run(x, new):
    return calque.jit(lambda v: C.bitcast_convert_type(v, new))(x)


def test_bits_that_do_not_fill_an_element_are_refused():
    with pytest.raises(ValueError, match="the last dimension must hold one new element"):
        C.bitcast_convert_type(np.zeros((3,), "int4"), "int8")


def test_conversions_and_broadcasts_that_change_nothing_are_no_equations():
    x = np.arange(3, dtype=np.float32)

    def converted():
        return C.convert_element_type(C.convert_element_type(x, np.float32), np.float32)

    assert calque.make_jaxpr(converted)().jaxpr.eqns == []
    assert calque.make_jaxpr(lambda: calque.lax.broadcast(np.float32(3), ()))().jaxpr.eqns == []
    assert calque.jit(converted)().tolist() == [0, 1, 2]
    given = calque.make_jaxpr(lambda v: calque.lax.broadcast(v, ()))(x)
    assert given.jaxpr.eqns == []
    x[0] = 5
    assert np.asarray(
        calque.jit(lambda: C.convert_element_type(x, np.float32).at[1].set(0.0))()
    ).tolist() == [5, 0, 2]
