"""Transposes of linear programs, held against their matrices."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import eval_jaxpr
from calque.transforms.engines.transpose import backward_pass, transpose_jaxpr

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(6, 12, dtype=np.float32).reshape(2, 3)


def test_cotangents_are_those_of_the_matrix():
    closed = calque.make_jaxpr(lambda x, k: (A @ x + k * (B @ x), 2 * x))(jnp.ones(3), 2.0)
    x = UndefinedPrimal(closed.in_avals[0])
    ct, other = np.array([1, 2], np.float32), np.array([1, 0, -1], np.float32)
    found, none = backward_pass(closed.jaxpr, closed.consts, [x, np.float32(3)], [ct, other])
    np.testing.assert_allclose(found, (A + 3 * B).T @ ct + 2 * other)
    assert none is None


def test_what_nothing_arrives_at_is_zero():
    closed = calque.make_jaxpr(lambda x, y: (x * 2.0, y * 3.0))(1.0, 1.0)
    ins = [UndefinedPrimal(a) for a in closed.in_avals]
    zero = Zero(closed.out_avals[1])
    x, y = backward_pass(closed.jaxpr, closed.consts, ins, [np.float32(1), zero])
    assert float(x) == 2 and type(y) is Zero


def test_transposed_programs_are_kept():
    closed = calque.make_jaxpr(lambda x, y: (x * y, x))(1.0, 2.0)
    back, mask = transpose_jaxpr(closed, (True, False), (True, True))
    assert mask == (True,) and transpose_jaxpr(closed, (True, False), (True, True))[0] is back
    (x,) = eval_jaxpr(back.jaxpr, back.consts, 5.0, 1.0, 10.0)
    assert float(x) == 15
    none, mask = transpose_jaxpr(closed, (True, False), (False, False))
    assert mask == (False,) and none.out_avals == []
    made, mask = transpose_jaxpr(closed, (True, False), (False, False), True)
    assert mask == (True,) and len(made.out_avals) == 1


def test_what_is_not_linear_names_its_line():
    closed = calque.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    with pytest.raises(NotImplementedError, match=r"(?s)sin.*test_transpose.py"):
        backward_pass(closed.jaxpr, [], [UndefinedPrimal(closed.in_avals[0])], [np.float32(1)])
