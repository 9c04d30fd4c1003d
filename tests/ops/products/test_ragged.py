"""Ragged products: definition, rules, JAX."""

import numpy as np
import pytest

import calque
from calque.ops.dimension_numbers import RaggedDotDimensionNumbers as DN
from calque.ops.products import ragged as R
from tests.ops import peer
from tests.ops.helpers import check_batch, check_fun_jvp, run, same, values

FREE = DN((((1,), (1,)), ((), ())), (0,), (0,))
CONTRACTED = DN((((0,), (0,)), ((), ())), (0,), ())
BATCH = DN((((2,), (1,)), ((0,), (0,))), (0,), ())


def params(numbers):
    rest = {
        "precision": None,
        "preferred_element_type": None,
        "group_offset": None,
        "out_sharding": None,
    }
    return {"ragged_dot_dimension_numbers": numbers, **rest}


def v(*shape, seed=0):
    return values("float64", shape, seed=seed)


SIZES = np.array([2, 0, 3], "int32")  # of six rows: the last belongs to no group
CASES = [
    (v(6, 3), v(3, 3, 4, seed=1), FREE),
    (v(6, 3), v(6, 4, seed=1), CONTRACTED),
    (v(5, 2, 3), v(5, 3, 4, seed=1), BATCH),
]


def expected(x, y, numbers):
    if numbers is BATCH:
        return x @ y
    groups = [slice(0, 2), slice(2, 2), slice(2, 5)]
    if numbers is FREE:
        return np.concatenate([*[x[g] @ y[i] for i, g in enumerate(groups)], np.zeros((1, 4))])
    return np.stack([x[g].T @ y[g] for g in groups])


@pytest.mark.parametrize(("x", "y", "numbers"), CASES)
def test_ragged(x, y, numbers):
    p = params(numbers)

    def fun(x, y, s):
        return R.ragged_dot_general_p.bind(x, y, s, **p)

    a, b = x.astype("float32"), y.astype("float32")
    same(run(fun, a, b, SIZES)[0], expected(a, b, numbers).astype("float32"), rtol=1e-4, atol=1e-4)
    same(
        run(lambda *xs: R.as_dot_general(*xs, **p), a, b, SIZES)[0],
        expected(a, b, numbers).astype("float32"),
        rtol=1e-4,
        atol=1e-4,
    )
    check_fun_jvp(lambda x, y: fun(x, y, SIZES), x, y, order=2, rtol=1e-5)
    only = [
        (0, None, None),
        (1, None, None),
        (None, 0, None),
        (None, 2, None),
        (0, 0, None),
        (2, 1, None),
    ]
    check_batch(R.ragged_dot_general_p, a, b, SIZES, only=only, rtol=1e-4, atol=1e-4, **p)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x, y, s: R.ragged_dot(x, y, s, group_offset=1), "group_offset"),
        (lambda x, y, s: R.ragged_dot(x, y, np.ones((1, 3), "int32")), "to have shape"),
        (lambda x, y, s: R.ragged_dot(x, y, np.ones(2, "int32")), "group dimension size to be 2"),
        (
            lambda x, y, s: R.ragged_dot_general(x, y, s, DN(FREE[0], (0,), ())),
            "one rhs group dimension",
        ),
        (lambda x, y, s: R.ragged_dot_general(x, y, s, DN(FREE[0], (0, 1), ())), "exactly one"),
        (lambda x, y, s: R.ragged_dot_general(x, y, s, DN(FREE[0], (0,), (1,))), "be distinct"),
        (lambda x, y, s: R.ragged_dot_general(x, y, s, DN(FREE[0], (5,), (0,))), "less than the"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, NotImplementedError), match=words):
        run(fun, v(6, 3).astype("float32"), v(3, 3, 4).astype("float32"), SIZES)


def test_sizes_of_each_batch():
    """Sizes may differ along what comes before the ragged dimension, and from lane to lane."""
    x, y = v(2, 6, 3).astype("float32"), v(2, 3, 3, 4).astype("float32")
    sizes = np.array([[1, 2, 3], [4, 0, 1]], "int32")
    each = np.stack([run(R.ragged_dot, *args)[0] for args in zip(x, y, sizes)])
    np.testing.assert_allclose(calque.vmap(R.ragged_dot)(x, y, sizes), each, rtol=1e-5)
    numbers = DN((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    (whole,) = run(lambda *args: R.ragged_dot_general(*args, numbers), x, y, sizes)
    np.testing.assert_allclose(whole, each, rtol=1e-5)
    one = calque.vmap(lambda s: R.ragged_dot(x[0], y[0], s))(sizes)
    np.testing.assert_allclose(one[1], run(R.ragged_dot, x[0], y[0], sizes[1])[0], rtol=1e-5)
    contracted = DN((((2,), (1,)), ((0,), (0,))), (2,), ())
    rows = v(2, 6, 4).astype("float32")
    (out,) = run(
        lambda *args: R.ragged_dot_general(*args, contracted), x.transpose(0, 2, 1), rows, sizes
    )
    assert out.shape == (3, 2, 3, 4)
    np.testing.assert_allclose(out[0, 1], x[1, :4].T @ rows[1, :4], rtol=1e-5)


@pytest.mark.peer
def test_beside_jax():
    jax = pytest.importorskip("jax")
    x, y, _ = CASES[0]
    peer.compare(
        [
            (
                lambda lax, x, y, s: lax.ragged_dot(x, y, s),
                x.astype("float32"),
                y.astype("float32"),
                SIZES,
            )
        ],
        rtol=1e-4,
    )
    x, y, numbers = CASES[1]
    theirs = jax.lax.RaggedDotDimensionNumbers(
        *[list(n) if i else n for i, n in enumerate(numbers)]
    )

    def fun(lax, x, y, s):
        return lax.ragged_dot_general(x, y, s, numbers if lax is peer.ours else theirs)

    peer.compare(
        [(fun, x.astype("float32"), y.astype("float32"), SIZES)],
        rtol=1e-4,
        atol=1e-4,
        printed=False,
    )
