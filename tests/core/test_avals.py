"""Avals: interned, immutable, and forgotten when nobody holds them."""

import copy
import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import avals
from calque.core.avals import ShapedArray, nbytes
from calque.core.dtypes import float0
from calque.core.symbols import Symbols

F, I = np.dtype("float32"), np.dtype("int32")


def test_equal_avals_are_one_object() -> None:
    a = ShapedArray((2, 3), F)
    assert a is ShapedArray([2, 3], F) is ShapedArray((2, 3), np.dtype(np.float32))
    assert a is pickle.loads(pickle.dumps(a)) is copy.deepcopy(a)
    assert (
        len({a, ShapedArray((2, 3), F, True), ShapedArray((3, 2), F), ShapedArray((2, 3), I)}) == 4
    )


def test_dtypes_as_users_write_them() -> None:
    for dtype in (bool, np.bool_, "bool", np.dtype(bool)):
        assert ShapedArray((2,), dtype) is ShapedArray((2,), np.dtype(bool))
    assert ShapedArray((), float).dtype == np.float64 and ShapedArray((), "i4").dtype == np.int32
    assert ShapedArray((), "bfloat16").str_short() == "bf16[]"


def test_attributes() -> None:
    a = ShapedArray((2, 3), F, True)
    assert (a.shape, a.dtype, a.weak_type, a.ndim, a.size) == ((2, 3), F, True, 2, 6)
    assert a.strip_weak_type() is ShapedArray((2, 3), F) is a.strip_weak_type().strip_weak_type()
    assert a.update(shape=(4,)) is ShapedArray((4,), F, True)
    assert a.str_short() == "f32[2,3]" and repr(a).startswith("ShapedArray(")
    assert str(a) == f"{a}" == "~float32[2,3]" and str(a.strip_weak_type()) == "float32[2,3]"
    with pytest.raises(AttributeError):
        a.shape = (1,)  # type: ignore[misc]


def test_tangents() -> None:
    assert ShapedArray((2,), I).to_tangent_aval() is ShapedArray((2,), float0)
    assert ShapedArray((2,), F).to_tangent_aval() is ShapedArray((2,), F)


def test_bytes() -> None:
    assert (
        nbytes(ShapedArray((2, 3), F)) == 24 and nbytes(ShapedArray((), np.dtype("complex64"))) == 8
    )
    (n,) = Symbols((5,)).sizes()
    assert nbytes(ShapedArray((n, 2), np.dtype("int8"))) == 10


def test_what_nobody_holds_is_forgotten() -> None:
    kept = ShapedArray((987, 1), F)
    for k in range(avals._LIMIT + 10):
        ShapedArray((987, 2, k), F)
    assert len(avals._interned) < avals._LIMIT and ShapedArray((987, 1), F) is kept
    holder = [ShapedArray((987, 3), F)]
    key = ((987, 4), F, False)
    ShapedArray(*key)
    assert key in avals._interned
    avals._trim()
    assert ShapedArray((987, 1), F) is kept and ShapedArray((987, 3), F) is holder[0]
    assert key not in avals._interned


def test_unknown_parts_of_a_type_are_refused():
    aval = ShapedArray((2, 3), np.dtype("float32"))
    assert aval.update(shape=(2,), weak_type=True) is ShapedArray((2,), np.dtype("float32"), True)
    assert aval.update() is aval
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtypes'"):
        aval.update(dtypes=np.dtype("int32"))


def test_sizes_whose_bytes_cannot_be_counted_are_refused_where_they_are_traced():
    for shape in ((2**62,), (2**40, 2**40), (0, 2**64)):
        with pytest.raises(MemoryError, match="more than a process can address"):
            calque.jit(lambda shape=shape: jnp.sum(jnp.zeros(shape)))()
        with pytest.raises(MemoryError, match="more than a process can address"):
            jnp.reshape(jnp.zeros(0), (0, 2**63))
    large = calque.ShapeDtypeStruct((2**40, 2**10), np.float32)
    assert calque.eval_shape(lambda x: x + 1, large).shape == (2**40, 2**10)
