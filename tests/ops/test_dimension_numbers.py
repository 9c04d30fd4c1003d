"""Parameters that name dimensions, modes and precisions."""

import pickle

import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import DOT_ALGORITHMS, config
from calque.ops.dimension_numbers import (
    DotAlgorithm,
    DotAlgorithmPreset,
    FftType,
    GatherDimensionNumbers,
    GatherScatterMode,
    Precision,
    canonical_precision,
    preferred_dtype,
)

HIGH, HIGHEST, DEFAULT = Precision.HIGH, Precision.HIGHEST, Precision.DEFAULT


@pytest.mark.parametrize(
    "given, want",
    [
        ("clip", GatherScatterMode.CLIP),
        ("fill", GatherScatterMode.FILL_OR_DROP),
        ("drop", GatherScatterMode.FILL_OR_DROP),
        (None, GatherScatterMode.FILL_OR_DROP),
        ("promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS),
        (GatherScatterMode.ONE_HOT, GatherScatterMode.ONE_HOT),
    ],
)
def test_modes_by_name(given, want):
    assert GatherScatterMode.from_any(given) is want


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match='Unknown gather mode "wrap"'):
        GatherScatterMode.from_any("wrap")


@pytest.mark.parametrize(
    "given, want",
    [
        (HIGH, (HIGH, HIGH)),
        ("highest", (HIGHEST, HIGHEST)),
        ("float32", (HIGHEST, HIGHEST)),
        ("tensorfloat32", (HIGH, HIGH)),
        (("bfloat16", "bfloat16_3x"), (DEFAULT, HIGH)),
        ([HIGH, None], (HIGH, DEFAULT)),
        ("BF16_BF16_F32_X3", DotAlgorithmPreset.BF16_BF16_F32_X3),
        (DotAlgorithmPreset.ANY_F8_ANY_F8_F32, DotAlgorithmPreset.ANY_F8_ANY_F8_F32),
        (DotAlgorithm("f", "f", "f"), DotAlgorithm("f", "f", "f")),
        (None, None),
    ],
)
def test_precisions(given, want):
    assert canonical_precision(given) == want


@pytest.mark.parametrize("bad", ["exact", 3, (HIGH,), (HIGH, HIGH, HIGH), ("exact", HIGH)])
def test_what_is_no_precision(bad):
    with pytest.raises(ValueError, match="Precision argument must be None, one of"):
        canonical_precision(bad)


def test_the_configured_precision_is_for_those_that_say_none():
    with config.override("default_matmul_precision", "high"):
        assert canonical_precision(None) == (HIGH, HIGH)
        assert canonical_precision("highest") == (HIGHEST, HIGHEST)


def test_printed_forms_and_pickles():
    assert repr(HIGH) == "Precision.HIGH" and str(HIGH) == "HIGH"
    preset = DotAlgorithmPreset.F32_F32_F32
    assert repr(preset) == "DotAlgorithmPreset.F32_F32_F32" and f"{preset}" == "F32_F32_F32"
    for x in (HIGH, preset, GatherScatterMode.CLIP, FftType.IRFFT):
        assert pickle.loads(pickle.dumps(x)) is x
    assert GatherDimensionNumbers((0,), (), (1,)).operand_batching_dims == ()
    assert [int(k) for k in FftType] == [0, 1, 2, 3]


def test_dtypes_that_products_are_asked_for():
    assert preferred_dtype(None) is None and preferred_dtype(float).name == "float32"
    with config.override("enable_x64", True):
        assert preferred_dtype(float).name == "float64"


def test_algorithms_of_products_as_a_default():
    assert set(DOT_ALGORITHMS) == set(lax.DotAlgorithmPreset.__members__)
    with calque.default_matmul_precision("F32_F32_F32"):
        text = calque.jit(lax.dot).lower(jnp.ones((2, 2)), jnp.ones((2, 2))).as_text()
    assert "algorithm = <lhs_precision_type = f32" in text
