"""Modules of exported programs as text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from calque.xla.exporting.modules import Called, module_of
from calque.xla.exporting.solving import plan_of
from tests.xla.mlir import needs_jaxlib


def text(f: object, *texts: str, platforms: tuple[str, ...] = ("cpu",)) -> str:
    scope = jax.export.SymbolicScope()
    specs = [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(t, scope=scope), np.float32) for t in texts
    ]
    traced = jax.jit(f).trace(*specs)
    plan = plan_of(traced.jaxpr.in_avals, traced.in_tree)
    return module_of(traced.jaxpr, Called("f"), platforms, plan).text()


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


@needs_jaxlib
def test_functions_of_platforms_go_into_programs_for_several() -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.tanh, default=lambda x: x * 3)

    def f(x: Any) -> Any:
        return inner(x) + 1

    x = np.ones(3, np.float32)
    np.testing.assert_allclose(jax.jit(f)(x), np.sin(x) + 1, rtol=1e-6)  # traced for the CPU
    texts = {}
    for platforms in (("cpu",), ("tpu",), ("cuda", "rocm"), ("rocm", "cpu", "tpu")):
        made = export.export(jax.jit(f), platforms=platforms)(x)
        texts[platforms] = made.mlir_module()
    names = [(" stablehlo.sine" in t, "tanh" in t, "stablehlo.case" in t) for t in texts.values()]
    assert names == [
        (True, False, False),
        (False, True, False),
        (False, False, False),
        (True, True, True),
    ]
    found = export.deserialize(made.serialize(vjp_order=1))
    np.testing.assert_allclose(found.call(x), np.sin(x) + 1, rtol=1e-6)
    g = jax.grad(lambda x: found.call(x).sum())(x)
    np.testing.assert_allclose(g, np.cos(x), rtol=1e-6)
    for order in (("cpu", "tpu"), ("tpu", "cpu"), ("rocm", "cpu", "tpu")):
        outer = export.export(jax.jit(lambda x: found.call(x) * 2), platforms=order)(x)
        again = export.deserialize(outer.serialize())
        np.testing.assert_allclose(again.call(x), 2 * np.sin(x) + 2, rtol=1e-6)


@needs_jaxlib
def test_a_platform_without_a_function_is_refused() -> None:
    f = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin))
    with pytest.raises(
        NotImplementedError, match=r"not found for platform tpu.*give one with tpu="
    ):
        export.export(f, platforms=["cpu", "tpu"])(1.0)


def main_of(f: Any, *specs: Any, platforms: tuple[str, ...] = ("cpu",)) -> str:
    written = export.export(f, platforms=platforms)(*specs).mlir_module()
    return next(line for line in written.splitlines() if "@main" in line)


@needs_jaxlib
def test_memory_that_was_given_away_is_said() -> None:
    one = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.jit(lambda a, b: (a + 1, b * 2), donate_argnums=1)
    assert main_of(f, one, one).count("tf.aliasing_output = 0") == 1
    assert "%arg1: tensor<3xf32> {tf.aliasing_output = 0 : i32}" in main_of(f, one, one)
    free = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), np.float32)
    negated = jax.jit(jnp.negative, donate_argnums=0)
    assert "%arg0: tensor<?xf32> {tf.aliasing_output = 0 : i32}" in main_of(negated, free)
    both = main_of(negated, one, platforms=("cpu", "tpu"))
    assert "%arg1: tensor<3xf32> {tf.aliasing_output = 0 : i32}" in both
    with pytest.warns(UserWarning, match="Some donated buffers were not usable"):
        assert "aliasing" not in main_of(jax.jit(jnp.sum, donate_argnums=0), one)


@needs_jaxlib
@pytest.mark.parametrize("backend", [None, "xla_cpu"])
def test_programs_that_take_memory_are_called_inside_of_others(backend: str | None) -> None:
    """There the memory is that of values which others may read."""
    specs = [
        jax.ShapeDtypeStruct((3,), np.float32),
        jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), np.float32),
    ]
    for spec in specs:
        exported = export.export(jax.jit(jnp.negative, donate_argnums=0))(spec)
        found = jax.jit(lambda x, e=exported: e.call(x) + x, backend=backend)(np.ones(3, "f4"))
        assert found.tolist() == [0.0, 0.0, 0.0]
        x = jnp.ones(3)
        assert exported.call(x).tolist() == [-1.0] * 3 and x.tolist() == [1.0] * 3


@needs_jaxlib
def test_arguments_that_nobody_reads_are_kept_where_that_was_asked_for() -> None:
    one = jax.ShapeDtypeStruct((3,), np.float32)
    kept = export.export(jax.jit(lambda a, b: b * 2, keep_unused=True))(one, one)
    assert kept.module_kept_var_idx == (0, 1)
    assert kept.call(np.zeros(3, "f4"), np.ones(3, "f4")).tolist() == [2.0] * 3
    assert export.export(jax.jit(lambda a, b: b * 2))(one, one).module_kept_var_idx == (1,)
