"""Modules of exported programs as text."""

from __future__ import annotations

import re

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque.xla.exporting.modules import module_of
from calque.xla.exporting.solving import plan_of


def text(f: object, *texts: str, platforms: tuple[str, ...] = ("cpu",)) -> str:
    scope = jax.export.SymbolicScope()
    specs = [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(t, scope=scope), np.float32) for t in texts
    ]
    traced = jax.jit(f).trace(*specs)
    plan = plan_of(traced.jaxpr.in_avals, traced.in_tree)
    return module_of(traced.jaxpr, "f", platforms, plan).text()


def test_fixed_sizes() -> None:
    found = text(jnp.sin, "3")
    assert "func.func public @main(%arg0: tensor<3xf32>)" in found and "?" not in found
    assert "shape_assertion" not in found and found.count("func.func") == 1


def test_free_sizes_are_found_by_main() -> None:
    found = text(lambda x, y: jnp.concatenate([x, y]), "2*w, h", "w, h")
    assert "jax.uses_shape_polymorphism = true" in found
    main, wrapped = found.split("func.func private @_wrapped_jax_export_main")
    assert "public @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>)" in main
    assert main.count("stablehlo.get_dimension_size") == 4 and "@shape_assertion" in main
    sizes = re.findall(r'%arg\d: tensor<i32> {jax.global_constant = "(\w+)"}', wrapped)
    assert sizes == ["h", "w"] and "stablehlo.concatenate" in wrapped


def test_platforms_are_an_argument_ahead() -> None:
    for texts in (("3",), ("n",)):
        found = text(jnp.sin, *texts, platforms=("cpu", "cuda", "tpu"))
        first = '@main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}'
        assert first in found and "stablehlo.case" not in found  # the same for all
