"""Modules as bytes, and as computations of XLA."""

from calque.xla import mlir
from tests.xla.mlir import needs_jaxlib


@needs_jaxlib
def test_modules_go_through_bytes() -> None:
    text = (
        "module @m {\n  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {\n"
        "    %0 = stablehlo.sine %arg0 : tensor<3xf32>\n    return %0 : tensor<3xf32>\n  }\n}\n"
    )
    assert "stablehlo.sine" in mlir.portable_text(mlir.portable(text))


@needs_jaxlib
def test_text_becomes_a_computation() -> None:
    text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    assert "HloModule" in mlir.computation(text).as_hlo_text()
