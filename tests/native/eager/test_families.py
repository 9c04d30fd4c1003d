"""Primitives compiled for their operands: after a few shapes, one program for all sizes."""

from typing import Any

import numpy as np

from calque.core.arrays import to_array, to_numpy
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.primitives import do
from calque.machine.call.functions import run_program
from calque.native.eager import families
from calque.native.emit import kernels
from calque.transforms.engines.specialiser import REMEMBERED

F32 = np.dtype("float32")


def cumulated(x: Any) -> list[Any]:
    return [do.cumsum(x, axis=0, reverse=False)]


def program(key: Any, *shape: int) -> Any:
    return families.program_of_any_size("cumsum", key, cumulated, [ShapedArray(shape, F32)])


def test_not_before_a_second_size() -> None:
    """The first shapes are not worth it; then one program serves them all, compiling nothing."""
    key = object()
    made = [program(key, n) is not None for n in range(10, 10 + 2 * REMEMBERED)]
    assert not made[0] and made[REMEMBERED:] == [True] * REMEMBERED
    before = kernels.stats.compiled
    for n in (5, 100, 3000):
        x = np.arange(n, dtype=np.float32)
        sized = program(key, n)
        assert sized is not None and sized.outputs[0][0].shape == (n,)
        got = to_numpy(run_program(sized, [to_array(x)])[0])
        np.testing.assert_array_equal(got, np.cumsum(x))
    assert kernels.stats.compiled == before


def test_what_tells_families_apart() -> None:
    """The key, the types of operands, and the mode of rounding; not their sizes."""
    key = object()
    f = families._families.of
    kind, other = ShapedArray((3,), F32).kind, ShapedArray((3,), np.dtype("int32")).kind
    assert f((key, config.exact, kind)) is f((key, config.exact, ShapedArray((9,), F32).kind))
    assert f((key, config.exact, kind)) is not f((key, config.exact, other))
    assert f((key, config.exact, kind)) is not f((key, not config.exact, kind))
    assert f((key, config.exact, kind)) is not f((object(), config.exact, kind))


def test_sizes_of_a_call() -> None:
    call = families.PrimitiveCall(
        families._families.of(object()), "f", cumulated,
        [ShapedArray((2, 3), F32), ShapedArray((), F32), ShapedArray((5,), F32)],
    )  # fmt: skip
    assert call.sizes == (2, 3, 5) and call.name == "f" and call.equation is cumulated
