import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax


def test_stage():
    assert float(lax.stage(2.0)) == 2.0 and lax.stage(2.0).aval.weak_type
    seen = []

    def f(x):
        seen.append(lax.stage(np.arange(3.0, dtype=np.float32)))
        return lax.stage(2.0) * x + seen[-1]

    np.testing.assert_array_equal(calque.jit(f)(1.0), [2, 3, 4])
    assert isinstance(seen[0], calque.core.trace_state.Tracer)
    assert "stage" not in str(calque.make_jaxpr(f)(1.0))
    assert float(calque.grad(lambda x: lax.stage(x) * lax.stage(3.0))(1.0)) == 3.0
    np.testing.assert_array_equal(
        calque.vmap(lambda x: lax.stage(x) + lax.stage(1.0))(jnp.arange(2.0)), [1, 2]
    )


def test_a_sink_keeps_what_nobody_reads():
    def f(x):
        lax.dce_sink({"s": jnp.sin(x), "c": jnp.cos(x)})
        return x * 2

    text = str(calque.make_jaxpr(f)(1.0))
    assert text.count("dce_sink") == 2 and "sin" in text
    assert float(calque.jit(f)(1.0)) == 2.0 and float(calque.jit(calque.grad(f))(1.0)) == 2.0
    np.testing.assert_array_equal(calque.vmap(f)(jnp.arange(2.0)), [0, 2])
    assert "sin" in str(calque.make_jaxpr(calque.vmap(f))(jnp.ones(2)))


def test_tokens():
    token, value = calque.jit(
        lambda x: (lax.after_all(lax.create_token(), lax.create_token(None)), x + 1)
    )(1.0)
    assert token.shape == (0,) and float(value) == 2.0
    assert lax.after_all().shape == (0,)
    with pytest.raises(TypeError, match=r"after_all takes tokens, .* operand 1 is f32\[\]"):
        lax.after_all(lax.create_token(), jnp.float32(1.0))


def test_dtype():
    names = [
        lax.dtype(x).name
        for x in (1, 1.0, True, 1j, np.float64, int, "float32", np.ones(2), jnp.int8(1), jnp.int8)
    ]
    assert names == [
        "int32",
        "float32",
        "bool",
        "complex64",
        "float32",
        "int32",
        "float32",
        "float32",
        "int8",
        "int8",
    ]
    with pytest.raises(ValueError, match="Invalid argument to dtype"):
        lax.dtype(None)
    with pytest.raises(TypeError, match="Cannot determine dtype of"):
        lax.dtype([1, 2])
