"""Layout alone, as strided copies: every element, whatever the shape; one program for each rank."""

import itertools
from typing import Any

import numpy as np
import pytest

from calque.core.arrays import to_array, to_numpy
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine.call.functions import run_program
from calque.native.eager import layout
from calque.native.plan.steps import Routine
from calque.native.scalars.expr import Buffer

DTYPES = ("bool", "int8", "float16", "float32", "float64", "complex64", "complex128")


def run(name: str, x: np.ndarray, **params: Any) -> np.ndarray:
    aval = typeof(to_array(x))
    out = trace_to_jaxpr(lambda v: [REGISTRY[name].bind(v, **params)], [aval]).out_avals[0]
    program = layout.view_program(name, params, aval, out)
    return to_numpy(run_program(program, [to_array(x)])[0])


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (np.arange(int(np.prod(shape))) % 251).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_size(dtype: str) -> None:
    with config.override("calque_enable_x64", True):
        x = numbers(5, 7, dtype=dtype)
        np.testing.assert_array_equal(run("transpose", x, permutation=(1, 0)), x.T)


def test_all_transpositions() -> None:
    x = numbers(2, 3, 4, 5)
    for p in itertools.permutations(range(4)):
        np.testing.assert_array_equal(run("transpose", x, permutation=p), x.transpose(p))


def test_slices_and_reversals() -> None:
    x = numbers(6, 7, 8)
    for starts, ends, strides in (
        ((1, 0, 2), (5, 7, 8), None),
        ((0, 1, 0), (6, 7, 8), (2, 3, 1)),
        ((5, 6, 7), (6, 7, 8), (1, 1, 5)),
    ):
        got = run("slice", x, start_indices=starts, limit_indices=ends, strides=strides)
        steps = strides or (1, 1, 1)
        at = tuple(slice(a, b, s) for a, b, s in zip(starts, ends, steps, strict=True))
        np.testing.assert_array_equal(got, x[at])
    for dims in ((0,), (1, 2), (0, 1, 2)):
        np.testing.assert_array_equal(run("rev", x, dimensions=dims), np.flip(x, dims))


def test_broadcasts() -> None:
    for shape, out, dims in (
        ((), (3, 4), ()),
        ((4,), (3, 4), (1,)),
        ((3, 1), (3, 4), (0, 1)),
        ((3,), (3, 4, 1), (0,)),
    ):
        x = numbers(*shape)
        p = {"shape": out, "broadcast_dimensions": dims, "sharding": None}
        full = [1] * len(out)
        for k, d in enumerate(dims):
            full[d] = shape[k]
        want = np.broadcast_to(x.reshape(full), out)
        np.testing.assert_array_equal(run("broadcast_in_dim", x, **p), want)


def test_strides_of_row_major_arrays() -> None:
    assert layout.dense((2, 3, 4), 8) == [96, 32, 8] and layout.dense((), 4) == []
    assert layout.dense((3, 0, 5), 1) == [5, 5, 1]  # as if the empty extent were 1


def test_one_program_for_each_rank() -> None:
    """Offsets and strides are words: other shapes and primitives share the program."""
    assert layout.copy_pattern(2) is layout.copy_pattern(2) is not layout.copy_pattern(3)
    run("transpose", numbers(4, 5), permutation=(1, 0))
    made = layout.copy_pattern.cache_info().misses
    for n in (9, 20):
        run("rev", numbers(n, 5), dimensions=(0,))
        run("slice", numbers(n, 5), start_indices=(1, 1), limit_indices=(n, 3), strides=None)
    assert layout.copy_pattern.cache_info().misses == made


def buffers(*names: str) -> list[Buffer]:
    return [Buffer(n, (1,), "f32") for n in names]


def aval(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.dtype("float32"))


def test_steps_of_a_program() -> None:
    """One copy for a view, one for each part with elements, none for a result without any."""
    a, b, c, y = buffers("a", "b", "c", "y")
    (s,) = (
        layout.copies("transpose", {"permutation": (1, 0)}, [a], [aval(2, 3)], y, aval(3, 2)) or []
    )
    assert isinstance(s, Routine) and s.args == (a,) and s.outs == (y,)
    assert list(s.words[2:]) == [4, 0, 0, 2, 3, 8, 4, 2, 4, 12]
    parts = [aval(2, 3), aval(0, 3), aval(4, 3)]
    made = layout.copies("concatenate", {"dimension": 0}, [a, b, c], parts, y, aval(6, 3)) or []
    assert [(s.args[0], s.words[3]) for s in made] == [(a, 0), (c, 24)]
    assert [list(s.words[5:]) for s in made] == [[1, 6, 4, 4], [1, 12, 4, 4]]
    empty = layout.copies("rev", {"dimensions": (0,)}, [a], [aval(0)], y, aval(0))
    assert empty == [] and layout.copies("sin", {}, [a], [aval(2)], y, aval(2)) is None
