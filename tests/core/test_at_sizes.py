"""Programs with free sizes, and the same with numbers."""

import numpy as np

from calque.core.at_sizes import at_sizes, free_in
from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.symbols import Symbols
from calque.core.trace import eval_jaxpr, trace_to_jaxpr

F = np.dtype("float32")


def traced():  # type: ignore[no-untyped-def]
    symbols = Symbols((3,))
    (n,) = symbols.sizes()

    def f(x):  # type: ignore[no-untyped-def]
        y = do.broadcast_in_dim(x, shape=(2, n), broadcast_dimensions=(1,))
        return [do.slice(y, start_indices=(0, n - 1), limit_indices=(2, n)), y]

    return n, trace_to_jaxpr(f, [ShapedArray((n,), F)])


def test_free_sizes_are_found_everywhere() -> None:
    n, closed = traced()
    assert n in set(free_in(closed.jaxpr)) and n - 1 in set(free_in(closed.eqns[1].params))
    assert list(free_in({"shape": (2, 3), "f": F})) == []
    assert list(free_in(ShapedArray((2, n), F))) == [n]


def test_a_program_at_numbers_has_none_left() -> None:
    n, closed = traced()
    jaxpr = at_sizes(closed.jaxpr, lambda d: d.symbols.program([("value", d.poly)])(5)[0])
    assert list(free_in(jaxpr)) == []
    assert [v.aval.shape for v in jaxpr.outvars] == [(2, 1), (2, 5)]
    last, wide = eval_jaxpr(jaxpr, closed.consts, np.arange(5, dtype=F))
    assert np.asarray(last).tolist() == [[4], [4]] and np.asarray(wide).shape == (2, 5)
    assert closed.jaxpr.invars[0].aval.shape == (n,)  # the free one is as it was


def test_parameters_and_types() -> None:
    (n,) = Symbols((3,)).sizes()
    assert at_sizes((n, [n + 1, "a"], {"k": n}), lambda d: d.hint * 10) == (
        30,
        [40, "a"],
        {"k": 30},
    )
    assert at_sizes(ShapedArray((n, 2), F), lambda d: 8) is ShapedArray((8, 2), F)
