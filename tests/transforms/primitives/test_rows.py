"""Rows of arrays."""

import numpy as np
import pytest

import calque
from calque.transforms.primitives.rows import stack_rows, take_row

X = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


@pytest.mark.parametrize("i", range(3))
def test_one_row(i):
    np.testing.assert_array_equal(take_row(X, i), X[i])
    np.testing.assert_array_equal(calque.jit(lambda x: take_row(x, i))(X), X[i])
    assert float(take_row(X[0, 0], 1)) == 1


def test_together_again():
    np.testing.assert_array_equal(stack_rows([take_row(X, i) for i in range(3)]), X)
    assert stack_rows([np.float32(1), np.float32(2)]).tolist() == [1, 2]
    grads = calque.grad(lambda x: (stack_rows([take_row(x, 2), take_row(x, 2)]) * X[:2]).sum())(X)
    np.testing.assert_array_equal(grads[2], X[0] + X[1])
    assert not np.asarray(grads[:2]).any()
