"""The largest few, one maximum after another."""

import numpy as np
import pytest

from calque.core.primitives import do
from calque.native.lower import largest
from tests.native.lower.shared import Elements, check

AWKWARD = np.array(
    [[3, np.nan, -np.inf, 3, 0.0, -0.0, 7, 7], [1, 1, 1, 1, -1, -1, np.inf, -5]], "f4"
)


def few(k: int, axis: int = 0):  # type: ignore[no-untyped-def]
    return lambda x: do.top_k(x, k=k, axis=axis)


@pytest.mark.parametrize("k", range(1, largest.FEW + 1))
def test_floats(k: int) -> None:
    """In order, equal ones by their places, a nan first."""
    e = check(few(k, 1), AWKWARD)
    assert all(n.op != "top_k" for n in e.graph.nodes)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers_to_their_ends(dtype: str) -> None:
    """The least of all, too, which stands for what is taken already."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, info.min, 1, info.max], dtype)
    check(few(3), x)
    check(few(4), np.full(4, info.min, dtype))


def test_along_any_axis() -> None:
    x = np.random.default_rng(0).integers(0, 5, (3, 4, 2)).astype("f4")
    for axis in range(3):
        check(few(2, axis), x)


def test_what_is_sorted_instead() -> None:
    for f, x in (
        (few(largest.MOST + 1), np.zeros(40, "f4")),
        (few(2), np.zeros(4, "f2")),
        (few(0), np.zeros(4, "f4")),
    ):
        assert any(n.op == "top_k" for n in Elements(f, x).graph.nodes)
    for length, in_row in ((largest.LONG - 1, True), (largest.LONG, False)):
        assert largest.most(length, in_row) in (largest.FEW, largest.MOST)


@pytest.mark.parametrize("k", [largest.PAIR, largest.PAIR + 1])
def test_long_rows_are_selected_from_in_one_pass(k: int) -> None:
    x = np.random.default_rng(1).standard_normal((3, largest.LONG)).astype("f4")
    sorts = [n for n in Elements(few(k, 1), x).graph.nodes if n.op == "top_k"]
    assert bool(sorts) == (k > largest.PAIR)
