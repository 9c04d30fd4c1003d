"""The types of StableHLO as text."""

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque.core.avals import ShapedArray
from calque.core.dtypes import bfloat16, float0
from calque.core.trace import typeof
from calque.xla.text.types import TOKEN, Tensor, element_name, signature, type_of
from tests.xla.mlir import needs_jaxlib, printed

F32 = np.dtype("float32")


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("bool", "i1"),
        ("int8", "i8"),
        ("int64", "i64"),
        ("uint8", "ui8"),
        ("uint64", "ui64"),
        ("float16", "f16"),
        (bfloat16, "bf16"),
        ("float64", "f64"),
        ("complex64", "complex<f32>"),
        ("complex128", "complex<f64>"),
    ],
)
def test_names_of_elements(dtype: Any, name: str) -> None:
    assert element_name(np.dtype(dtype)) == name


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e4m3b11fnuz", "float4_e2m1fn"])
@needs_jaxlib
def test_small_elements_are_types_of_mlir(dtype: str) -> None:
    t = Tensor((2, 3), np.dtype(getattr(jax.numpy, dtype)))
    text = f"func.func @main(%a: {t}) -> {t} {{ return %a : {t} }}"
    assert str(t) in printed(text)


@pytest.mark.parametrize("dtype", ["datetime64[s]", "object", "U3"])
def test_elements_that_xla_has_not(dtype: str) -> None:
    with pytest.raises(TypeError, match="XLA has no arrays of"):
        element_name(np.dtype(dtype))


def test_sizes_stand_ahead_of_the_element() -> None:
    assert str(Tensor((), F32)) == "tensor<f32>"
    assert str(Tensor((2, 0, 3), F32)) == "tensor<2x0x3xf32>"
    t = Tensor((2, 3), F32)
    assert t.ndim == 2
    assert t.with_dtype("int8") == Tensor((2, 3), np.dtype("int8"))
    assert t.with_shape([4]) == Tensor((4,), F32) and hash(t.with_shape([2, 3])) == hash(t)


def test_keys_are_words_and_float0_are_booleans() -> None:
    assert type_of(typeof(jax.random.split(jax.random.key(0), 3))) == Tensor(
        (3, 2), np.dtype("uint32")
    )
    assert type_of(typeof(jax.random.key(0, impl="rbg"))).shape == (4,)
    assert str(type_of(ShapedArray((2,), float0))) == "tensor<2xi1>"


def test_sizes_that_are_not_known_are_refused_with_the_remedy() -> None:
    closed = jax.make_jaxpr(jax.jit(lambda x: x[x > 0]))(np.ones(4, np.float32))
    with pytest.raises(TypeError, match=r"an array of type f32\[.*`size=`"):
        type_of(closed.out_avals[0])


def test_several_results_stand_in_brackets() -> None:
    a, b = Tensor((), F32), Tensor((2,), np.dtype(bool))
    assert signature([], []) == "() -> ()"
    assert signature([a], [b]) == "(tensor<f32>) -> tensor<2xi1>"
    assert signature([TOKEN, a], [TOKEN, b]) == (
        "(!stablehlo.token, tensor<f32>) -> (!stablehlo.token, tensor<2xi1>)"
    )
