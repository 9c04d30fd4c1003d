"""Functions of other modules that a module takes over."""

from __future__ import annotations

from calque.xla.lower.adopting import adopted
from calque.xla.lower.rules import Builder, State
from calque.xla.text.printing import printed
from calque.xla.text.tree import Function, Module, Region

OTHER = """module {
  sdy.mesh @grid = <["a"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = sdy.sharding_constraint %arg0 <@grid, [{"a"}]> : tensor<2xf32>
    %1 = call @half(%0) : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @half(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    return %arg0 : tensor<2xf32>
  }
}
"""


def test_names_are_new_and_meshes_are_those_of_the_module() -> None:
    module = Module("own")
    main = Function("main", Region([]), [], public=True)
    module.functions.append(main)
    b = Builder(State(module), main.body)
    first = adopted(b, OTHER, "call_<f>", "of_f_")
    second = adopted(b, OTHER, "call_<f>", "of_f_")
    assert (first, second) == ("call__f_", "call__f__0")
    text = printed(module)
    assert text.count("sdy.mesh") == 1 and "<@mesh, " in text and "@grid" not in text
    for name in ("call__f_", "of_f_half", "call__f__0", "of_f_half_0"):
        assert f"func.func private @{name}(" in text
    assert "call @of_f_half_0(" in text and "public @main" in text
