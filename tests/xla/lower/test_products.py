"""Products on XLA: what a dot and a convolution say of their numbers."""

from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.lax import DotAlgorithm, DotAlgorithmPreset, Precision
from calque.xla.lower.products import _places, algorithm, precisions
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

rng = np.random.default_rng(0)
a = rng.integers(-4, 5, (2, 3, 4)).astype(np.float32)
b = rng.integers(-4, 5, (2, 4, 5)).astype(np.float32)
BATCHED = (((2,), (1,)), ((0,), (0,)))


def test_each_operand_has_its_precision() -> None:
    assert precisions(None) == ("DEFAULT", "DEFAULT")
    assert precisions((Precision.HIGHEST, Precision.HIGH)) == ("HIGHEST", "HIGH")
    assert precisions((None, Precision.HIGHEST)) == ("DEFAULT", "HIGHEST")
    assert precisions(DotAlgorithmPreset.F32_F32_F32) == ("DEFAULT", "DEFAULT")
    text = text_of(lambda a, b: jnp.matmul(a, b, precision="highest"), a, b)
    assert "precision = [HIGHEST, HIGHEST]" in text


@pytest.mark.parametrize(
    ("preset", "types", "products"),
    [
        ("F32_F32_F32", ("f32", "f32"), 1),
        ("F64_F64_F64", ("f64", "f64"), 1),
        ("BF16_BF16_F32_X6", ("bf16", "f32"), 6),
        ("TF32_TF32_F32_X3", ("tf32", "f32"), 3),
    ],
)
def test_algorithms(preset: str, types: tuple[str, str], products: int) -> None:
    text = algorithm(DotAlgorithmPreset[preset])
    assert f"lhs_precision_type = {types[0]}, rhs_precision_type = {types[0]}" in text
    assert f"accumulation_type = {types[1]}" in text
    assert f"num_primitive_operations = {products}" in text


def test_what_names_no_algorithm() -> None:
    assert algorithm(None) == algorithm((Precision.HIGH, None)) == ""
    assert algorithm(DotAlgorithmPreset.DEFAULT) == ""
    own = DotAlgorithm(np.dtype("float16"), np.dtype("float16"), np.dtype("float32"), 2, 3, 4, True)
    text = algorithm(own)
    assert "lhs_component_count = 2, rhs_component_count = 3" in text
    assert "allow_imprecise_accumulation = true" in text


@needs_jaxlib
def test_mlir_takes_algorithms() -> None:
    (found,) = on_both(lambda a, b: lax.dot(a, b, precision="F32_F32_F32"), a[0], b[0])
    np.testing.assert_array_equal(found, a[0] @ b[0])


@needs_jaxlib
def test_dimensions_of_batches_stand_first() -> None:
    def products(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, BATCHED), lax.dot_general(a, b, (((0,), (0,)), ((), ())))

    batched, other = on_both(products, a, b)
    np.testing.assert_array_equal(batched, a @ b)
    np.testing.assert_array_equal(other, np.tensordot(a, b, (0, 0)))
    text = text_of(products, a, b)
    assert "batching_dims = [0] x [0], contracting_dims = [2] x [1]" in text


@needs_jaxlib
def test_types_that_differ_meet_in_the_type_of_the_result() -> None:
    def mixed(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, BATCHED, preferred_element_type=np.float32)

    (found,) = on_both(mixed, a.astype(np.int8), b.astype(np.float32))
    np.testing.assert_array_equal(found, a @ b)
    (wide,) = on_both(
        lambda a, b: lax.dot_general(a, b, BATCHED, preferred_element_type=np.int32),
        (30 * a).astype(np.int8),
        (30 * b).astype(np.int8),
    )
    np.testing.assert_array_equal(wide, (30 * a).astype(int) @ (30 * b).astype(int))


@needs_jaxlib
def test_packed_integers_are_multiplied_as_bytes() -> None:
    def product(a: Any, b: Any) -> Any:
        return lax.dot(a.astype(jnp.int4), b.astype(jnp.int4), preferred_element_type=jnp.int4)

    x, y = np.int8([[1, -2], [3, 0]]), np.int8([[2, 1], [1, -2]])
    (found,) = on_both(lambda a, b: product(a, b).astype(np.int8), x, y)
    np.testing.assert_array_equal(found, x @ y)
    assert "(tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi8>" in text_of(product, x, y)


def test_what_each_dimension_of_an_array_is() -> None:
    assert _places((0, 3, 1, 2), "bf") == "[b, 0, 1, f]"
    assert _places((3, 2, 0, 1), "oi") == "[0, 1, i, o]"
    assert _places((0, 1), "bf") == "[b, f]"


@needs_jaxlib
@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
def test_convolutions(layout: tuple[str, str, str]) -> None:
    image = rng.integers(-3, 4, (2, 4, 5, 6)).astype(np.float32)
    kernel = rng.integers(-3, 4, (6, 2, 3, 2)).astype(np.float32)
    turned = [
        np.transpose(x, [plain.index(c) for c in spec])
        for x, plain, spec in ((image, "NCHW", layout[0]), (kernel, "OIHW", layout[1]))
    ]

    def convolved(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(
            x, k, (2, 1), [(1, 2), (0, 1)], (1, 2), (2, 1), layout, feature_group_count=2
        )

    (found,) = on_both(convolved, *turned)
    plain = jax.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), [(1, 2), (0, 1)], (1, 2), (2, 1), feature_group_count=2
        )
    )(image, kernel)
    back = np.transpose(found, [layout[2].index(c) for c in "NCHW"])
    np.testing.assert_array_equal(back, np.asarray(plain))


def test_one_operation_each() -> None:
    image = np.ones((1, 1, 4, 4), np.float32)
    found = operations(text_of(lambda x: lax.conv(x, x, (1, 1), "VALID"), image))
    assert found["convolution"] == 1
    assert "lhs_dilate = [1, 1]" in text_of(lambda x: lax.conv(x, x, (1, 1), "VALID"), image)
