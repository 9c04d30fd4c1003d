"""Functions of lax that bring shapes together, against NumPy, and what they refuse."""

import numpy as np
import pytest

import calque
from calque.ops import broadcasting as B
from tests.ops.helpers import run, same, values

X = values("float64", (2, 3)).astype("float32")


def test_functions():
    x = X
    same(run(lambda x: B.broadcast(x, (4,)), x)[0], np.broadcast_to(x, (4, 2, 3)))
    same(run(lambda x: B.broadcast_to_rank(x, 3), x)[0], x[None])
    same(run(lambda x, y: B.broadcast_like(x, y), x[0], x)[0], np.stack([x[0]] * 2))
    same(run(lambda x: B.collapse(x, 0, 2), x)[0], x.ravel())
    same(run(lambda x: B.collapse(x, 0), x)[0], x.ravel())
    same(run(lambda: B.shape_as_value((2, 3)))[0], np.array([2, 3], "int32"))
    same(run(lambda: B.shape_as_value(()))[0], np.array([], "int32"))
    traces = []
    sized = calque.jit(lambda x: traces.append(0) or B.shape_as_value((2, *x.shape)))
    for n in range(3, 7):
        assert sized(np.ones((n, 2 * n))).tolist() == [2, n, 2 * n]
    assert len(traces) <= 3  # the sizes are numbers of the running program
    assert B.broadcast_shapes((2, 1, 4), (3, 1)) == (2, 3, 4)
    assert B.broadcast_shapes((0,), (1,)) == (0,)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: B.collapse(x, 1, 0), "Invalid dimension range"),
        (lambda x: B.broadcast_shapes((2,), (3,)), "Incompatible shapes"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError), match=words):
        run(fun, X)
