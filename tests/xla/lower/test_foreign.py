"""Operations by rules that build MLIR."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import calque as jax
from calque import export
from calque.extend.core import Primitive
from calque.interpreters import mlir
from calque.interpreters.xla import apply_primitive
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
X = np.array([0.5, -1.0, 2.0], np.float32)
_numbers = itertools.count()


def primitive(rule: Any = None, results: int = 1) -> Any:
    p = Primitive(f"foreign_{next(_numbers)}")
    p.multiple_results = results > 1
    p.def_abstract_eval((lambda x, **_: [x] * results) if results > 1 else lambda x, **_: x)
    if rule is not None:
        mlir.register_lowering(p, rule)
    return p


def times(n: int) -> Any:
    def rule(ctx: Any, x: Any) -> Any:
        total = x
        for _ in range(n - 1):
            total = mlir.hlo.add(total, x)
        return [total]

    return rule


@pytest.mark.parametrize("backend", [None, "xla_cpu"])
def test_both_engines_run_it(backend: str | None) -> None:
    p = primitive(times(3))
    found = jax.jit(lambda x: p.bind(x) + p.bind(x * 2), backend=backend)(X)
    np.testing.assert_allclose(found, 9 * X)
    np.testing.assert_allclose(p.bind(X), 3 * X)
    p.def_impl(lambda x: apply_primitive(p, x))
    np.testing.assert_allclose(p.bind(X), 3 * X)


def test_what_it_is_told_and_gives() -> None:
    seen = []

    def rule(ctx: Any, x: Any, *, by: float) -> Any:
        seen.append((ctx.primitive, ctx.avals_in, ctx.avals_out, by, ctx.module_context))
        return [[mlir.hlo.negate(x)], mlir.hlo.cosine(x)]

    p = primitive(rule, results=2)
    minus, cosine = jax.jit(lambda x: p.bind(x, by=2.0), backend="xla_cpu")(X)
    np.testing.assert_allclose(minus, -X)
    np.testing.assert_allclose(cosine, np.cos(X), rtol=1e-6)
    (found, ins, outs, by, module) = seen[-1]
    assert found is p and list(map(str, ins)) == ["float32[3]"] and len(outs) == 2 and by == 2
    assert module.platforms == ("cpu",) and not module.lowering_parameters.for_export
    export.export(jax.jit(lambda x: p.bind(x, by=2.0)))(X)
    assert seen[-1][-1].lowering_parameters.for_export


def test_what_does_not_fit_the_types_is_told() -> None:
    p = primitive(lambda ctx, x: [x, x])
    with pytest.raises(TypeError, match=r"lowering rule of 'foreign_\d+' gives \(.*says \(tensor"):
        jax.jit(p.bind, backend="xla_cpu")(X)


def test_each_platform_has_its_own() -> None:
    p, q = primitive(), primitive()
    for n, platform in enumerate(("cpu", "cuda", "rocm", "tpu"), 2):
        mlir.register_lowering(p, times(n), platform)
    for platform in ("cpu", "cuda", "rocm"):
        mlir.register_lowering(q, mlir.lower_fun(p.bind, multiple_results=False), platform)
    mlir.register_lowering(
        q, mlir.lower_fun(lambda x: p.bind(x) * 7, multiple_results=False), "tpu"
    )
    platforms = ["cuda", "cpu", "rocm", "tpu"]
    found = export.export(jax.jit(q.bind), platforms=platforms)(X)
    np.testing.assert_allclose(export.deserialize(found.serialize()).call(X), 2 * X)
    text = found.mlir_module()
    assert text.count("stablehlo.add") == 2 + 1 + 3 + 4


def test_a_rule_for_one_export() -> None:
    def rule(ctx: Any, x: Any, **_: Any) -> Any:
        return [mlir.hlo.cosine(x)]

    f = jax.jit(lambda x: jax.numpy.sin(x))
    pairs = [(jax.lax.sin_p, rule)]
    found = export.export(f, _override_lowering_rules=pairs)(X)
    np.testing.assert_allclose(found.call(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)


def test_functions_of_libraries_are_exported_when_that_is_said() -> None:
    def rule(ctx: Any, x: Any) -> Any:
        return mlir.hlo.CustomCallOp([x.type], [x], "of_my_library").results

    p = primitive(rule)
    f = jax.jit(lambda x: x + p.bind(x))
    with pytest.raises(ValueError, match=r"custom calls whose targets.*<lambda> calls of_my_lib"):
        export.export(f)(X)
    for name in ("of_my_library", "ALL"):
        check = export.DisabledSafetyCheck.custom_call(name)
        found = export.export(f, disabled_checks=[check])(X)
        assert "of_my_library" in found.mlir_module()
