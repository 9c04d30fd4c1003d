import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from tests.transforms.programs import check

# two slices for each of two receivers: member 0 sends rows 0 | 1-2 to itself, row 3 | none to
# member 1
PLACES = [
    np.array(p, np.int32)
    for p in (
        [[0, 1, 3, 0], [0, 0, 1, 2]],
        [[1, 2, 1, 0], [1, 0, 1, 2]],
        [[0, 1, 0, 0], [3, 0, 1, 2]],
        [[1, 2, 1, 0], [1, 0, 1, 2]],
    )
]
DATA = np.arange(1, 17, dtype=np.float64).reshape(2, 4, 2)
OUTPUT = -np.arange(1, 21, dtype=np.float64).reshape(2, 5, 2)


def exchange(data, output, *places):
    return calque.vmap(lambda *a: lax.ragged_all_to_all(*a, axis_name="i"), axis_name="i")(
        data, output, *places
    )


def expected(data, output, starts, sizes, targets, recv):
    out = output.copy()
    for sender in range(2):
        for k in range(4):
            n, at = sizes[sender, k], targets[sender, k]
            out[k // 2, at : at + n] = data[sender, starts[sender, k] : starts[sender, k] + n]
    return out


def test_slices_arrive():
    sizes = [1, 1, 1, 0], [1, 0, 1, 2]
    recv = np.array(
        [[1, 2, 1, 0], [1, 0, 1, 2]], np.int32
    )  # by receiver: from sender 0, then from sender 1
    places = [PLACES[0], np.array(sizes, np.int32), PLACES[2], recv]
    places[1][0, 1] = 2
    np.testing.assert_array_equal(exchange(DATA, OUTPUT, *places), expected(DATA, OUTPUT, *places))
    np.testing.assert_array_equal(
        calque.jit(exchange)(DATA, OUTPUT, *places), expected(DATA, OUTPUT, *places)
    )


def test_the_documented_example():
    got = exchange(
        jnp.array([[1, 2, 2], [3, 4, 0]]),
        jnp.zeros((2, 4), int),
        jnp.array([[0, 1], [0, 1]]),
        jnp.array([[1, 2], [1, 1]]),
        jnp.array([[0, 0], [1, 2]]),
        jnp.array([[1, 1], [2, 1]]),
    )
    np.testing.assert_array_equal(got, [[1, 3, 0, 0], [2, 2, 4, 0]])


def test_derivatives():
    check(lambda d, o: exchange(d * d, o, *PLACES), DATA / 7, OUTPUT / 9)

    def inner(d, o, *p):
        return calque.grad(
            lambda d, o: (lax.ragged_all_to_all(d, o, *p, axis_name="i") ** 2).sum(), (0, 1)
        )(d, o)

    got = calque.vmap(inner, axis_name="i")(DATA, OUTPUT, *PLACES)
    want = calque.grad(lambda d, o: (exchange(d, o, *PLACES) ** 2).sum(), (0, 1))(DATA, OUTPUT)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w)


def test_batched_over_another_axis():
    got = calque.vmap(lambda d: exchange(d, OUTPUT, *PLACES))(np.stack([DATA, 2 * DATA]))
    np.testing.assert_array_equal(got[1], exchange(2 * DATA, OUTPUT, *PLACES))
    swapped = calque.vmap(
        lambda d, o, *p: calque.vmap(
            lambda d: lax.ragged_all_to_all(d, o, *p, axis_name="i"), 2, 2
        )(d),
        axis_name="i",
    )(np.stack([DATA, 2 * DATA], 3), OUTPUT, *PLACES)
    np.testing.assert_array_equal(swapped[..., 1], got[1])


def test_refuses():
    with pytest.raises(
        ValueError, match=r"output must have the same dtype and the same dimensions after the first"
    ):
        exchange(DATA, OUTPUT[:, :, :1], *PLACES)
    with pytest.raises(ValueError, match=r"send_sizes must be a vector of integers"):
        exchange(DATA, OUTPUT, PLACES[0], PLACES[1][:, :2], *PLACES[2:])
    with pytest.raises(NotImplementedError, match="axis_index_groups"):
        calque.vmap(
            lambda *a: lax.ragged_all_to_all(*a, axis_name="i", axis_index_groups=[[0], [1]]),
            axis_name="i",
        )(DATA, OUTPUT, *PLACES)
