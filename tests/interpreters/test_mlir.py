"""How primitives of a library are compiled."""

import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.extend.core import Primitive
from calque.interpreters import ad, batching, mlir

X = np.array([0.5, -1.0, 2.0], np.float32)
_numbers = itertools.count()


def _name(base: str) -> str:
    return f"{base}_{next(_numbers)}"


def core_aval(shape: Any, dtype: Any) -> Any:
    return calque.core.ShapedArray(shape, dtype)


def test_lowering_by_a_function() -> None:
    """Compiled code runs the function: no call of Python is left in it."""
    p = Primitive(_name("wave"))
    p.def_abstract_eval(lambda x, *, speed: x)
    mlir.register_lowering(
        p, mlir.lower_fun(lambda x, *, speed: jnp.sin(speed * x), multiple_results=False)
    )
    ad.defjvp(p, lambda t, x, *, speed: t * speed * jnp.cos(speed * x))
    batching.defvectorized(p)

    def f(x):
        return p.bind(x, speed=2.0)

    np.testing.assert_allclose(f(X), np.sin(2 * X), rtol=1e-5)
    compiled = calque.jit(f).lower(X).compile()
    np.testing.assert_allclose(compiled(X), np.sin(2 * X), rtol=1e-5)
    assert "host" not in compiled.as_text("driver")
    assert p.name in str(calque.make_jaxpr(calque.jit(f))(X))
    slope = calque.jit(calque.vmap(calque.grad(f)))(X)
    np.testing.assert_allclose(slope, 2 * np.cos(2 * X), rtol=1e-5)
    np.testing.assert_allclose(
        calque.vmap(calque.grad(calque.grad(f)))(X), -4 * np.sin(2 * X), rtol=1e-4
    )


def bare() -> Any:
    p = Primitive(_name("bare"))
    p.def_abstract_eval(lambda x: x)
    return p


def test_the_function_for_the_cpu_comes_before_that_for_all() -> None:
    def times(k: float) -> Any:
        return mlir.lower_fun(lambda x: k * x, multiple_results=False)

    p = bare()
    mlir.register_lowering(p, times(2.0))
    assert float(calque.jit(p.bind)(1.0)) == 2
    mlir.register_lowering(p, times(3.0), platform="cpu")
    mlir.register_lowering(p, times(4.0))
    mlir.register_lowering(p, times(5.0), platform="gpu")
    q_value = float(calque.jit(lambda x: p.bind(x))(1.0))
    assert q_value == 3
    assert mlir.lowerings[p, "gpu"].fun(1.0) == 5


@pytest.mark.parametrize("of_rule", [False, True])
@pytest.mark.parametrize("of_primitive", [False, True])
def test_one_or_several_results(of_rule: bool, of_primitive: bool) -> None:
    p = Primitive(_name("counted"))
    p.multiple_results = of_primitive
    p.def_abstract_eval((lambda x: [x]) if of_primitive else lambda x: x)
    rule = mlir.lower_fun((lambda x: [x + 1]) if of_rule else lambda x: x + 1, of_rule)
    mlir.register_lowering(p, rule)
    got = calque.jit(p.bind)(1.0)
    assert float(got[0] if of_primitive else got) == 2


def test_what_builds_mlir_is_refused_by_name() -> None:
    for name in ("ir_constant", "lower_jaxpr_to_module", "dtype_to_ir_type"):
        with pytest.raises(NotImplementedError, match=rf"mlir.{name} builds MLIR.*lower_fun"):
            getattr(mlir, name)()
        assert getattr(mlir, name).__name__ == name
    for name in ("LoweringResult", "TokenSet"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(mlir, name)()
    for bad, words in ((("sin", len), "a primitive is needed"), ((bare(), 3), "must be callable")):
        with pytest.raises(TypeError, match=words):
            mlir.register_lowering(*bad)


def test_what_is_registered_is_kept() -> None:
    class Constant:
        pass

    class Seen:
        pass

    mlir.register_constant_handler(Constant, len)
    assert mlir.constant_handlers.pop(Constant) is len
    assert not mlir.lowerable_effects.contains(Seen())
    mlir.lowerable_effects.add_type(Seen)
    assert mlir.lowerable_effects.contains(Seen())


def test_a_rule_is_taken_back() -> None:
    p = Primitive(_name("passing"))
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    mlir.register_lowering(
        p, mlir.lower_fun(lambda x: 3 * x, multiple_results=False), platform="cpu"
    )
    assert calque.jit(p.bind)(1) == 3
    mlir.register_lowering(p, None, platform="cpu")
    assert calque.jit(lambda x: p.bind(x))(1) == 2
    mlir.register_lowering(p, None)
    mlir.register_lowering(p, None)  # there is none any more
    with pytest.raises(NotImplementedError, match="Lowering rule for primitive"):
        calque.jit(lambda x: p.bind(x) + 1)(1)
