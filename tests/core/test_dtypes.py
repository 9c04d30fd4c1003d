"""Canonical dtypes and the promotion lattice, against JAX where it is installed."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import calque
from calque.core import dtypes
from calque.core.dtypes import TypePromotionError, as_dtype, canonicalize, promote, short_name


def test_64_bit_types_are_narrowed_unless_enabled():
    assert (
        canonicalize(np.float64) == np.float32
        and canonicalize(int) == np.int32
        and canonicalize("complex128") == np.complex64
    )
    with calque.config.override("calque_enable_x64", True):
        assert canonicalize(np.float64) == np.float64 and canonicalize(int) == np.int64
    assert canonicalize(float) == np.float32


def test_names():
    assert [short_name(as_dtype(d)) for d in ("bool", "int8", "uint32", "bfloat16", "float16",
    "complex64", "float8_e4m3fn")] == [
        "bool", "i8", "u32", "bf16", "f16", "c64", "f8_e4m3fn",
    ]  # fmt: skip


@pytest.mark.parametrize("bad", ["U5", object, "datetime64[s]", "nonsense", 3.5])
def test_what_is_no_dtype_is_refused(bad):
    with pytest.raises(TypeError):
        as_dtype(bad)


def test_byte_order_does_not_matter():
    assert as_dtype(">f4") == np.float32 and as_dtype(">f4").isnative


def test_promotion_follows_weak_types():
    f32, f16, i8, i32 = map(np.dtype, ("float32", "float16", "int8", "int32"))
    weak_float, weak_int = (np.dtype("float64"), True), (np.dtype("int64"), True)
    assert promote(((f16, False), weak_float)) == (f16, False)
    assert promote(((i8, False), weak_int)) == (i8, False)
    assert promote(((i8, False), weak_float)) == (f32, True)
    assert promote(((i32, False), (f16, False))) == (f16, False)
    with pytest.raises(TypePromotionError, match="no available implicit dtype promotion path"):
        promote(((np.dtype(ml_dtypes.float8_e4m3fn), False), (f32, False)))


def test_strict_promotion():
    strict = calque.config.override("calque_numpy_dtype_promotion", "strict")
    with strict, pytest.raises(TypePromotionError, match="strict"):
        promote(((np.dtype("int8"), False), (np.dtype("float32"), False)))


@pytest.mark.peer
@pytest.mark.parametrize("x64", [False, True])
def test_the_lattice_is_that_of_jax(x64):
    jax = pytest.importorskip("jax")
    kinds = [(d, False) for d in dtypes.ALL if d.itemsize > 0] + [
        (np.dtype(t), True) for t in ("int64", "float64", "complex128")
    ]
    kinds = [k for k in kinds if "2" not in k[0].name[-2:] or k[0].itemsize > 1]
    kinds = [k for k in kinds if not k[0].name.startswith("float6")]  # XLA has no such arrays
    python = {"int64": 1, "float64": 1.0, "complex128": 1j}
    jax.config.update("jax_enable_x64", x64)
    try:
        with calque.config.override("calque_enable_x64", x64):
            for a, b in itertools.combinations_with_replacement(kinds, 2):
                if not x64 and any(
                    not w and d.itemsize == 8 * (1 + (d.kind == "c")) for d, w in (a, b)
                ):
                    continue
                operands = [python[d.name] if w else jax.numpy.zeros((), d) for d, w in (a, b)]
                try:
                    want = jax.numpy.result_type(*operands)
                except (ValueError, TypeError):
                    want = None
                try:
                    got = promote((a, b))[0] if not (a[1] and b[1]) else None
                except TypePromotionError:
                    got = "refused"
                if got is not None:
                    assert got == (want if want is not None else "refused"), (a, b, want)
    finally:
        jax.config.update("jax_enable_x64", False)
