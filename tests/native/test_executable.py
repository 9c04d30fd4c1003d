"""Planned programs."""

import numpy as np

import calque
from calque.core.backends import Options
from calque.native.executable import NativeExecutable, is_long


def planned(f, *args, **options) -> NativeExecutable:
    return NativeExecutable(calque.make_jaxpr(f)(*args), Options(**options))


def test_donated_inputs_name_the_results_that_take_their_memory() -> None:
    x, y = np.arange(6, dtype="f"), np.arange(3, dtype="f")
    e = planned(lambda x, y: (y + 1, x * 2), x, y, donated=(0,))
    assert e.donations() == [(0, 1)]
    assert e.memory_analysis().alias_size_in_bytes == 24
    assert planned(lambda x, y: (y + 1, x * 2), x, y).donations() == []


def test_long_programs_let_other_threads_run() -> None:
    small, large = np.ones(8, "f"), np.ones((400, 400), "f")
    assert not is_long(planned(lambda x: x + 1, small))
    assert is_long(planned(lambda x: x @ x, large))


def test_cost_counts_products_and_bytes() -> None:
    x = np.ones((8, 16), "f")
    cost = planned(lambda x: x @ x.T, x).cost_analysis()
    assert cost["flops"] >= 2 * 8 * 16 * 8
    assert cost["bytes accessed"] >= x.nbytes + 4 * 8 * 8
