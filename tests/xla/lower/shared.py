"""Programs lowered, and run on both engines."""

import re
from collections import Counter
from typing import Any

import numpy as np

import calque as jax
from calque.core.arrays import to_numpy
from calque.xla.lower.rules import Builder, State
from calque.xla.lower.table import MODULES
from calque.xla.text.printing import printed
from calque.xla.text.tree import Function, Module, Region, Value
from calque.xla.text.types import Tensor, Type
from tests.xla.mlir import assert_canonical

assert MODULES  # the tables are filled


def text_of(f: Any, *args: Any) -> str:
    """The module of a program of these arguments."""
    return str(jax.jit(f).lower(*args).as_text())


def operations(text: str) -> Counter[str]:
    """How often each operation stands in a module, without the name of its dialect."""
    return Counter(re.findall(r"\b(?:stablehlo|chlo)\.(\w+)", text))


def on_both(f: Any, *args: Any, rtol: float = 0.0) -> list[np.ndarray]:
    """The results of a program on XLA, which are those of calque's own engine, of a module that
    MLIR reads and prints as it is."""
    assert_canonical(text_of(f, *args))
    here, there = [
        [np.asarray(to_numpy(x)) for x in jax.tree.leaves(jax.jit(f, backend=b)(*args))]
        for b in (None, "xla_cpu")
    ]
    assert len(here) == len(there)
    for a, b in zip(here, there):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype.names is not None or not rtol:
            same = a.tobytes() == b.tobytes() or bool(np.array_equal(a, b, equal_nan=True))
            assert same, f"{b} on XLA, {a} on calque's engine"
        else:
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol)
    return there


def blank(*types: Type, platform: str = "cpu") -> tuple[Builder, list[Value]]:
    """A builder of an empty function, and the function's arguments of these types."""
    args = [Value(t) for t in types]
    module = Module("m", [Function("main", Region(args), [], public=True)])
    return Builder(State(module, platform), module.functions[0].body), args


def written(b: Builder, *results: Value) -> str:
    """The module of the builder, which ends with these results."""
    b.returns(*results)
    main = b.state.module.functions[0]
    main.results = [x.type for x in results]
    return printed(b.state.module)


def f32(*shape: int) -> Tensor:
    return Tensor(shape, np.dtype("float32"))


def i32(*shape: int) -> Tensor:
    return Tensor(shape, np.dtype("int32"))
