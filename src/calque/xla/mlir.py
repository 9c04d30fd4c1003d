"""Modules of StableHLO as bytes that jaxlib of other versions reads, with fixed sizes, and as what
XLA compiles."""

from __future__ import annotations

import io
from typing import Any

from calque.xla import jaxlib


def portable(text: str) -> bytes:
    """A module of StableHLO as bytes that jaxlib of other versions reads as well."""
    lib, stablehlo = jaxlib.jaxlib(), jaxlib.mlir_part("stablehlo")
    version = stablehlo.get_version_from_compatibility_requirement(
        stablehlo.StablehloCompatibilityRequirement.WEEK_4
    )
    module = jaxlib.mlir_module(text)
    with module.context:
        write = lib.extension.mlir.serialize_portable_artifact
        takes_text = "mlir_module: str" in (write.__doc__ or "")  # before 0.10
        given = module.operation.get_asm(enable_debug_info=True) if takes_text else module
        return bytes(write(given, version, True))


def portable_text(data: bytes, *, located: bool = False) -> str:
    """The text of a module that was written so; with `located` with the places of operations."""
    context = jaxlib.mlir_context()
    with context:
        module = jaxlib.mlir_part("stablehlo").deserialize_portable_artifact(context, data)
        return str(module.operation.get_asm(enable_debug_info=located))


def refined(text: str) -> str:
    """A module whose main function has fixed sizes, with those of all that it calls."""
    module = jaxlib.mlir_module(text)
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    refine = jaxlib.jaxlib().extension.mlir.refine_polymorphic_shapes
    try:
        found = refine(written.getvalue(), True, True)
    except jaxlib.runtime_errors() as e:  # a requirement on the sizes does not hold
        raise ValueError(str(e)) from None
    return str(jaxlib.mlir_part("ir").Module.parse(found, jaxlib.mlir_context()))


def computation(text: str) -> Any:
    """A module of StableHLO as a computation of XLA, which prints itself as HLO."""
    return jaxlib.jaxlib().extension.mlir.mlir_module_to_xla_computation(
        text, use_tuple_args=False, return_tuple=False
    )
