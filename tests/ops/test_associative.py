"""Folds and prefixes of associative functions."""

import numpy as np
import pytest

from calque.core.primitives import do
from calque.ops import associative as A
from tests.ops.helpers import run, same, values


def compose(a, b):
    """Affine maps x -> p x + q, first a, then b: associative, not commutative."""
    return [do.mul(a[0], b[0]), do.add(do.mul(a[1], b[0]), b[1])]


def affine(p, q):
    rows, state = [], (1, 0)
    for a, b in zip(p, q):
        state = (state[0] * a, state[1] * a + b)
        rows.append(state)
    return np.array(rows).reshape(-1, 2)


@pytest.mark.parametrize("n", range(1, 14))
def test_order_is_kept(n):
    p, q = values("int32", (n,), -3, 3), values("int32", (n,), -3, 3, seed=1)
    want = affine(p.tolist(), q.tolist())
    out = run(lambda a, b: A.prefixes(compose, [a, b], 0), p, q)
    assert np.stack(out, 1).tolist() == want.tolist()
    assert [int(x) for x in run(lambda a, b: A.fold(compose, [a, b]), p, q)] == want[-1].tolist()
    back = run(lambda a, b: A.prefixes(compose, [a, b], 0, reverse=True), p, q)
    assert np.stack(back, 1)[::-1].tolist() == affine(p[::-1].tolist(), q[::-1].tolist()).tolist()


def test_other_axes():
    x = values("int32", (2, 5, 3))

    def add(a, b):
        return [do.add(a[0], b[0])]

    same(run(lambda v: A.prefixes(add, [v], 1), x)[0], np.cumsum(x, 1, dtype=np.int32))
    same(run(lambda v: A.fold(add, [v], 1), x)[0], x.sum(1, dtype=np.int32))
    same(run(lambda v: A.prefixes(add, [v], 1), x[:, :0])[0], x[:, :0])
    same(run(lambda v: A.axes_in_front(v, (2, 0)), x)[0], x.transpose(2, 0, 1).reshape(6, 5))
