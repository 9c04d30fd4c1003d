"""Products: dot_general, its ragged form, convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.dtypes import bfloat16
from calque.core.jaxprs import Eqn
from calque.ops.dimension_numbers import (
    ConvDimensionNumbers,
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
)
from calque.ops.products.ragged import as_dot_general
from calque.xla.lower.programs import lower_function
from calque.xla.lower.reductions import pads_operand
from calque.xla.lower.rules import (
    BYTES,
    FOUR_BITS,
    Builder,
    array_i64,
    as_bytes,
    boolean,
    equation_rule,
    rule,
)
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, element_name, signature

_BF16, _F32 = bfloat16, np.dtype("float32")
_TF32: Final = "tf32"
# preset -> (type of the operands, of the sums, components of an operand, products)
_ALGORITHMS: Final[dict[DotAlgorithmPreset, tuple[Any, Any, int, int]]] = {
    DotAlgorithmPreset.F16_F16_F16: (np.dtype("float16"), np.dtype("float16"), 1, 1),
    DotAlgorithmPreset.F16_F16_F32: (np.dtype("float16"), _F32, 1, 1),
    DotAlgorithmPreset.BF16_BF16_BF16: (_BF16, _BF16, 1, 1),
    DotAlgorithmPreset.BF16_BF16_F32: (_BF16, _F32, 1, 1),
    DotAlgorithmPreset.BF16_BF16_F32_X3: (_BF16, _F32, 1, 3),
    DotAlgorithmPreset.BF16_BF16_F32_X6: (_BF16, _F32, 1, 6),
    DotAlgorithmPreset.BF16_BF16_F32_X9: (_BF16, _F32, 1, 9),
    DotAlgorithmPreset.TF32_TF32_F32: (_TF32, _F32, 1, 1),
    DotAlgorithmPreset.TF32_TF32_F32_X3: (_TF32, _F32, 1, 3),
    DotAlgorithmPreset.F32_F32_F32: (_F32, _F32, 1, 1),
    DotAlgorithmPreset.F64_F64_F64: (np.dtype("float64"), np.dtype("float64"), 1, 1),
}


def precisions(precision: Any) -> tuple[str, str]:
    """The precision of each operand."""
    if precision is None or isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return "DEFAULT", "DEFAULT"
    left, right = precision
    return _name(left), _name(right)


def _name(p: Any) -> str:
    return p.name if isinstance(p, Precision) else "DEFAULT"


def algorithm(precision: Any) -> str:
    """The attribute of an algorithm that was asked for, or nothing."""
    if isinstance(precision, DotAlgorithmPreset):
        known = _ALGORITHMS.get(precision)
        if known is None:  # DEFAULT, and those whose operands are any of the float8 types
            return ""
        operands, sums, components, products = known
        precision = DotAlgorithm(operands, operands, sums, components, components, products)
    if not isinstance(precision, DotAlgorithm):
        return ""
    p = precision
    fields = {
        "lhs_precision_type": _precision_type(p.lhs_precision_type),
        "rhs_precision_type": _precision_type(p.rhs_precision_type),
        "accumulation_type": _precision_type(p.accumulation_type),
        "lhs_component_count": p.lhs_component_count,
        "rhs_component_count": p.rhs_component_count,
        "num_primitive_operations": p.num_primitive_operations,
        "allow_imprecise_accumulation": boolean(p.allow_imprecise_accumulation),
    }
    return f", algorithm = <{', '.join(f'{k} = {v}' for k, v in fields.items())}>"


def _precision_type(t: Any) -> str:
    return t if isinstance(t, str) and t == _TF32 else element_name(np.dtype(t))


@rule("dot_general")
def dot_general(
    b: Builder,
    out: Tensor,
    lhs: Value,
    rhs: Value,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any,
) -> Value:
    (left, right), (left_batch, right_batch) = dimension_numbers
    if lhs.dtype != rhs.dtype and not _both_float8(lhs, rhs):
        lhs, rhs = b.convert(lhs, out.dtype), b.convert(rhs, out.dtype)
    lhs, rhs, found = in_whole_bytes(b, lhs, rhs, out)
    dims = [
        f", {name} = [{', '.join(map(str, x))}] x [{', '.join(map(str, y))}]"
        for name, x, y in (
            ("batching_dims", left_batch, right_batch),
            ("contracting_dims", left, right),
        )
        if x or name == "contracting_dims"
    ]
    of_operands = ", ".join(precisions(precision))
    text = f"{''.join(dims)}, precision = [{of_operands}]{algorithm(precision)}"
    types = signature([lhs.type, rhs.type], [found])
    product = b.one(found, "stablehlo.dot_general ", lhs, ", ", rhs, f"{text} : {types}")
    return b.convert(product, out.dtype)


def in_whole_bytes(b: Builder, lhs: Value, rhs: Value, out: Tensor) -> tuple[Value, Value, Tensor]:
    """The operands and the type of a product whose elements are whole bytes."""
    if FOUR_BITS in (lhs.dtype.name, rhs.dtype.name):
        kind = _F32 if out.dtype.name == FOUR_BITS else out.dtype
        return b.convert(lhs, kind), b.convert(rhs, kind), out.with_dtype(kind)
    wide = out.with_dtype(BYTES.get(out.dtype.name, out.dtype))
    return as_bytes(b, lhs), as_bytes(b, rhs), wide


def _both_float8(lhs: Value, rhs: Value) -> bool:
    return all(v.dtype.name.startswith("float8") for v in (lhs, rhs))


@rule("conv_general_dilated")
def convolution(
    b: Builder,
    out: Tensor,
    lhs: Value,
    rhs: Value,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any = None,
) -> Value:
    if lhs.dtype != rhs.dtype:
        lhs, rhs = b.convert(lhs, out.dtype), b.convert(rhs, out.dtype)
    lhs, rhs, found = in_whole_bytes(b, lhs, rhs, out)
    if is_free((feature_group_count, batch_group_count)):
        raise NotImplementedError(
            "export: a convolution whose number of groups is a free size has no form; give this"
            " size as a number"
        )
    n = dimension_numbers
    specs = [_places(n.lhs_spec, "bf"), _places(n.rhs_spec, "oi"), _places(n.out_spec, "bf")]
    if is_free(*padding):
        attributes = {
            "batch_group_count": f"{batch_group_count} : i64",
            "dimension_numbers": f"#stablehlo.conv<{specs[0]}x{specs[1]}->{specs[2]}>",
            "feature_group_count": f"{feature_group_count} : i64",
            "lhs_dilation": array_i64(lhs_dilation),
            "precision_config": f"[{_configs(precision)}]",
            "rhs_dilation": array_i64(rhs_dilation),
            "window_strides": array_i64(window_strides),
        }
        operands = [lhs, rhs, pads_operand(b, padding)]
        product = b.generic("stablehlo.dynamic_conv", [found], operands, attributes)[0]
        return b.convert(product, out.dtype)
    pads = ", ".join(f"[{low}, {high}]" for low, high in padding)
    window = ", ".join(
        (
            f"stride = {_list(window_strides)}",
            f"pad = [{pads}]",
            f"lhs_dilate = {_list(lhs_dilation)}",
            f"rhs_dilate = {_list(rhs_dilation)}",
            f"reverse = [{', '.join(['false'] * len(window_strides))}]",
        )
    )
    options = (
        f"{{batch_group_count = {batch_group_count} : i64, feature_group_count ="
        f" {feature_group_count} : i64, precision_config = [{_configs(precision)}]}}"
    )
    types = signature([lhs.type, rhs.type], [found])
    product = b.one(
        found,
        "stablehlo.convolution(",
        lhs,
        ", ",
        rhs,
        f") dim_numbers = {specs[0]}x{specs[1]}->{specs[2]}, window = {{{window}}}"
        f" {options} : {types}",
    )
    return b.convert(product, out.dtype)


def _configs(precision: Any) -> str:
    return ", ".join(f"#stablehlo<precision {p}>" for p in precisions(precision))


def _list(xs: Sequence[int]) -> str:
    return f"[{', '.join(map(str, xs))}]"


def _places(spec: Sequence[int], letters: str) -> str:
    """[b, f, 0, 1]: what each dimension of an array is."""
    names = [""] * len(spec)
    for what, d in zip([*letters, *map(str, range(len(spec) - 2))], spec):
        names[d] = what
    return f"[{', '.join(names)}]"


@equation_rule("ragged_dot_general")
def ragged_dot_general(
    b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]
) -> list[Value]:
    """One product, in which the rows that belong to other groups are zeros."""
    return lower_function(b, e, as_dot_general, args)
