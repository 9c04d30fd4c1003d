"""Constants as text, and back by MLIR."""

from typing import Any

import numpy as np
import pytest

from calque.core.dtypes import bfloat16
from calque.xla.text.constants import dense
from calque.xla.text.types import Tensor
from tests.xla.mlir import needs_jaxlib, printed


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.float32(1), "dense<1.000000e+00>"),
        (np.float32(0.7), "dense<0.699999988>"),
        (np.float32(-np.inf), "dense<0xFF800000>"),
        (np.float32([-0.0, 0.0]), "dense<[-0.000000e+00, 0.000000e+00]>"),
        (np.zeros((2, 0), np.int32), "dense<>"),
        (np.array([[True, False]]), "dense<[[true, false]]>"),
        (np.complex64(1 + 2j), "dense<(1.000000e+00,2.000000e+00)>"),
        (np.uint64(2**64 - 1), "dense<18446744073709551615>"),
        (np.float64(1e300), "dense<1.000000e+300>"),
    ],
)
def test_known_texts(x: Any, text: str) -> None:
    assert dense(np.asarray(x)) == text


@needs_jaxlib
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_of_all_sizes_are_printed_as_mlir_prints_them(dtype: str) -> None:
    kind = bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = (rng.standard_normal(90) * 10.0 ** rng.integers(-12, 12, 90)).astype(kind)
    t = Tensor(x.shape, kind)
    text = (
        "module @m {\n  func.func public @main() -> " + str(t) + " {\n"
        f"    %cst = stablehlo.constant {dense(x)} : {t}\n    return %cst : {t}\n  }}\n}}"
    )
    assert printed(text).strip() == text
