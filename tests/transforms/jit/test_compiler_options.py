"""Options that speak to XLA: taken, or refused where no compiler has them."""

import pytest

import calque as jax


def test_compiler_options():
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_dump_max_hlo_modules": 200})
    assert f(1) == 2
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    lowered.compile({"xla_embed_ir_in_executable": True, "exec_time_optimization_effort": 0.5})
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option: 'speed'"):
        lowered.compile({"speed": 3})
    with pytest.raises(jax.errors.JaxRuntimeError, match="is not a valid bool value"):
        lowered.compile({"xla_embed_ir_in_executable": "perhaps"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="a value is a bool, a number or a str"):
        jax.jit(lambda x: x, compiler_options={"xla_dump_to": ["a", "b"]})
