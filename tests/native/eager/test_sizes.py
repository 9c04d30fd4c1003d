"""Functions run eagerly on arrays of any size: by steps, or compiled where it is worth it."""

from typing import Any

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr
from calque.native.eager import sizes
from calque.native.eager.program import BeyondSteps
from calque.native.symbolic import Resizable, SymbolicExecutable
from calque.transforms.engines.specialiser import TooEarly

F32 = np.dtype("float32")


def traced(f: Any, *shape: Any) -> tuple[Any, Symbols]:
    symbols = Symbols((7,))
    (n,) = symbols.sizes()
    avals = [ShapedArray(tuple(n if d == "n" else d for d in shape), F32)]
    closed = trace_to_jaxpr(lambda x: [f(x)], avals)
    symbols.lenient = True
    return closed, symbols


def call(made: Any, n: int, x: np.ndarray) -> np.ndarray:
    return to_numpy(made.resized((n,)).call([x])[0])


def test_steps_for_every_size() -> None:
    closed, symbols = traced(lambda x: jnp.exp(x)[::-1] * 2, "n", 3)
    made = sizes.executable(closed, symbols, patient=True)
    assert isinstance(made, Resizable)
    for n in (7, 1, 200):
        x = np.random.default_rng(n).random((n, 3), np.float32)
        np.testing.assert_allclose(call(made, n, x), np.exp(x)[::-1] * 2, rtol=1e-6)


def test_one_primitive_with_kernels_of_its_own_is_compiled_when_it_is_time() -> None:
    """Patience says that it is not yet worth it."""
    numbers = (((1,), (1,)), ((), ()))
    closed, symbols = traced(lambda x: lax.dot_general(x, x, numbers), "n", 300)
    assert len(closed.eqns) == 1
    with pytest.raises(TooEarly):
        sizes.executable(closed, symbols, patient=True)
    made = sizes.executable(closed, symbols, patient=False)
    assert isinstance(made, SymbolicExecutable)
    for n in (7, 20):
        x = np.random.default_rng(n).random((n, 300), np.float32)
        np.testing.assert_allclose(call(made, n, x), x @ x.T, rtol=1e-4)


def test_calls_of_python_where_they_are_not_wanted() -> None:
    p = {"padding_config": ((1, 2, 0),)}
    closed, symbols = traced(lambda x: do.pad(x, np.float32(7), **p), "n")
    with pytest.raises(BeyondSteps):
        sizes.resizable(closed, symbols, hosts=False)
    made = sizes.resizable(closed, symbols)
    for n in (1, 9):
        x = np.arange(n, dtype=np.float32)
        assert call(made, n, x).tolist() == [7, *x.tolist(), 7, 7]
