"""Rules of users that say how primitives are compiled."""

from __future__ import annotations

from typing import Any

import pytest

from calque.transforms.primitives.lowerings import (
    ArrayRule,
    LoweringParameters,
    LoweringRuleContext,
    ModuleContext,
    lowerings,
    rule_for,
)


@pytest.fixture
def primitive() -> Any:
    made = object()
    yield made
    for key in [k for k in lowerings if k[0] is made]:
        del lowerings[key]


def test_its_own_comes_before_that_of_gpus_and_that_of_all(primitive: Any) -> None:
    def all_of_them() -> None: ...
    def on_gpus() -> None: ...
    def on_rocm() -> None: ...

    assert rule_for(primitive, "cpu") is None
    lowerings[primitive, None] = all_of_them
    lowerings[primitive, "gpu"] = on_gpus
    lowerings[primitive, "rocm"] = on_rocm
    found = [rule_for(primitive, p) for p in ("cpu", "cuda", "rocm", "tpu")]
    assert found == [all_of_them, on_gpus, on_rocm, all_of_them]


def test_a_function_gives_as_many_results_as_the_primitive() -> None:
    one, row = ArrayRule(lambda x: x + 1, False), ArrayRule(lambda x: [x + 1], True)
    assert [r.program(False)(1) for r in (one, row)] == [2, 2]
    assert [r.program(True)(1) for r in (one, row)] == [[2], [2]]
    with pytest.raises(NotImplementedError, match="function of arrays"):
        one(None)


def test_what_a_rule_is_told() -> None:
    how = LoweringParameters(for_export=True)
    told = LoweringRuleContext(ModuleContext(None, None, ("cpu",), how), "p", [1], [2])
    assert told.is_forward_compat() and told.replace(avals_in=[3]).avals_in == [3]
    either = LoweringParameters(for_export=True, export_ignore_forward_compatibility=True)
    module = ModuleContext(None, None, ("cpu",), either)
    assert not told.replace(module_context=module).is_forward_compat()
