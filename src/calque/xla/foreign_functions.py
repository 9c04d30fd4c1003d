"""Foreign functions on XLA: it is told of them, and rules of users call them by operations of MLIR
that jaxlib makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.machine.foreign import targets
from calque.machine.lazy import imported
from calque.machine.once import once
from calque.machine.state import process
from calque.transforms.functions.foreign_calls import TYPED, orders
from calque.transforms.primitives.callbacks import logger
from calque.xla import jaxlib
from calque.xla.lower.foreign_calls import attribute, layout_of
from calque.xla.text.types import type_of

_handed_over: Final = process.value("foreign functions that XLA knows", 0)


def hand_over() -> None:
    """Make foreign functions known to XLA that were made known to calque since it was told. One
    that XLA refuses is missing there, and stops nothing else."""
    refusals: tuple[type[Exception], ...] = (TypeError, ValueError, *jaxlib.runtime_errors())
    for entry in targets.declared[_handed_over.value :]:
        _handed_over.value += 1
        try:
            _register(entry)
        except refusals as e:
            logger("ffi").warning("XLA refuses the foreign function %r: %s", entry.name, e)


def _register(entry: targets.Declared) -> None:
    client = jaxlib.jaxlib().client
    if isinstance(entry, targets.Kind):
        client.register_custom_type(entry.name, dict(entry.parts), platform=entry.platform)
    elif isinstance(entry, targets.Partitionable):
        client.register_custom_call_as_batch_partitionable(entry.name)
    else:
        stages = entry.stages
        client.register_custom_call_target(
            entry.name,
            stages["execute"] if len(stages) == 1 else dict(stages),
            platform=entry.platform,
            api_version=entry.version,
            **entry.options,
        )


@once
def _lapack_routines() -> list[tuple[str, str, Any, int]]:
    """The routines of linear algebra that come with jaxlib: platform, name, capsule, version."""
    jaxlib.jaxlib()
    lapack = imported("jaxlib.lapack")
    lapack.prepare_lapack_call("potrf_ffi", np.dtype("float32"))  # finds them in SciPy
    found = lapack.registrations().items()
    return [(platform, *routine) for platform, routines in found for routine in routines]


@once
def register_lapack() -> None:
    """These routines as targets of custom calls. Each device may call them for its part of many
    matrices."""
    client = jaxlib.jaxlib().client
    for platform, name, capsule, version in _lapack_routines():
        client.register_custom_call_target(name, capsule, platform=platform, api_version=version)
    for name in imported("jaxlib.lapack").batch_partitionable_targets():
        client.register_custom_call_as_batch_partitionable(name)


@once
def offer_lapack() -> None:
    """These routines as foreign functions of calque's own engine."""
    for platform, name, capsule, version in _lapack_routines():
        targets.offer(name, capsule, platform, version)


# ---------------------------------------------------------------- operations of MLIR


def ir_attribute(value: Any) -> Any:
    """A value of Python as an attribute of MLIR."""
    ir = jaxlib.mlir_part("ir")
    if isinstance(value, (ir.Attribute, ir.Type)):
        return value
    if isinstance(value, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(x) for x in value])
    if isinstance(value, Mapping):
        return ir.DictAttr.get({n: ir_attribute(x) for n, x in value.items()})
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        kind = ir_type(ShapedArray((), np.dtype(value))).element_type
        return ir.TypeAttr.get(kind)
    return ir.Attribute.parse(attribute("value", value))


def ir_type(aval: ShapedArray) -> Any:
    """The type of an array in MLIR."""
    return jaxlib.mlir_part("ir").Type.parse(str(type_of(aval)))


def custom_call(
    call_target_name: str,
    *,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    backend_config: Any = "",
    has_side_effect: bool = False,
    result_shapes: Sequence[Any] | None = None,
    called_computations: Sequence[str] = (),
    api_version: int = 2,
    operand_output_aliases: Mapping[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: Mapping[str, Any] | None = None,
) -> Any:
    """The operation that calls a foreign function."""
    ir, hlo = jaxlib.mlir_part("ir"), jaxlib.mlir_part("stablehlo")
    operands = list(operands)
    attributes: dict[str, Any] = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "backend_config": ir.StringAttr.get(""),
        "called_computations": ir.ArrayAttr.get(
            [ir.FlatSymbolRefAttr.get(name) for name in called_computations]
        ),
    }
    if isinstance(backend_config, Mapping):  # XLA knows typed calls by these
        attributes["mhlo.backend_config"] = ir_attribute(backend_config)
    elif api_version >= TYPED and backend_config:
        raise ValueError(
            f"custom_call of {call_target_name!r}: from api_version {TYPED} on, backend_config is a"
            f" dict of attributes, got {backend_config!r}"
        )
    elif api_version >= TYPED:
        attributes["mhlo.backend_config"] = ir.DictAttr.get({})
    else:
        attributes["backend_config"] = ir.StringAttr.get(backend_config or "")
        attributes["api_version"] = ir.Attribute.parse(f"{api_version} : i32")
    if result_shapes is not None:
        places = range(len(operands), len(operands) + len(result_shapes))
        attributes["indices_of_shape_operands"] = ir_attribute(np.array(places, np.int64))
        operands += result_shapes
        if operand_layouts is not None:
            operand_layouts = [*operand_layouts, *([[0]] * len(result_shapes))]
    if operand_output_aliases:
        several = len(result_types) != 1
        attributes["output_operand_aliases"] = ir.ArrayAttr.get(
            [
                hlo.OutputOperandAlias.get(
                    output_tuple_indices=[o] if several else [],
                    operand_index=i,
                    operand_tuple_indices=[],
                )
                for i, o in operand_output_aliases.items()
            ]
        )
    for name, layouts in (("operand_layouts", operand_layouts), ("result_layouts", result_layouts)):
        if layouts is not None:
            parsed = [ir.Attribute.parse(layout_of(tuple(x))) for x in layouts]
            attributes[name] = ir.ArrayAttr.get(parsed)
    attributes.update(extra_attributes or {})
    return hlo.CustomCallOp.build_generic(
        results=list(result_types), operands=operands, attributes=attributes
    )


def call_rule(
    name: str,
    *,
    operand_layouts: Sequence[Any] | None,
    result_layouts: Sequence[Any] | None,
    backend_config: Any,
    skip_ffi_layout_processing: bool,
    options: Mapping[str, Any],
) -> Callable[..., Any]:
    """A function of a lowering context, operands and attributes that makes the operation."""

    def lowered(ctx: Any, *operands: Any, **attributes: Any) -> Any:
        asked = {"api_version": TYPED, **options}
        typed = asked["api_version"] >= TYPED
        if typed and backend_config is not None and not isinstance(backend_config, Mapping):
            raise ValueError(
                f"ffi_lowering of {name!r}: from api_version {TYPED} on, backend_config is a dict"
                f" of attributes, got {backend_config!r}"
            )
        if attributes and not typed:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least"
                f" {TYPED}; got api_version={asked['api_version']}."
            )
        asked["backend_config"] = (
            {**(backend_config or {}), **attributes} if typed else backend_config
        )
        asked.setdefault("result_types", [ir_type(a) for a in ctx.avals_out])
        if not skip_ffi_layout_processing:
            asked["operand_layouts"] = _layouts(ctx.avals_in, operand_layouts, "operands")
            asked["result_layouts"] = _layouts(ctx.avals_out, result_layouts, "results")
        return custom_call(name, operands=operands, **asked)

    return lowered


def _layouts(avals: Sequence[ShapedArray], layouts: Sequence[Any] | None, what: str) -> Any:
    """Sequences name the axis first that moves fastest, as XLA does."""
    turned = None
    if layouts is not None:
        turned = [x[::-1] if isinstance(x, (tuple, list)) else x for x in layouts]
    return orders(avals, turned, what)
