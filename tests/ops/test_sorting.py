"""Sorting and the largest k."""

import ml_dtypes
import numpy as np
import pytest

from calque.ops import sorting as S
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, "float64", "int8", "uint32", "int64", bool]
X = values("float64", (3, 5), seed=2)


def sort(*xs, dimension=0, num_keys=1, is_stable=True):
    return call(S.sort_p, *xs, dimension=dimension, num_keys=num_keys, is_stable=is_stable)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_operand(dtype):
    with x64():
        for x in (
            values(dtype, (3, 4)),
            values(dtype, (0, 2)),
            values(dtype, (2, 0)),
            values(dtype, (1, 1)),
        ):
            for d in (0, 1):
                same(sort(x, dimension=d)[0], np.sort(x.astype(np.float64), axis=d).astype(dtype))


def test_nan_is_last_and_zeros_are_equal():
    x = np.array([0.0, -0.0, np.nan, -np.inf, 0.0, np.inf, -0.0], np.float32)
    x[2] = np.copysign(x[2], np.float32(-1))
    out, order = sort(x, np.arange(7, dtype=np.int32))
    assert order.tolist() == [3, 0, 1, 4, 6, 5, 2]
    assert np.isnan(out[-1])


def test_several_keys():
    a, b = np.array([1, 0, 1, 0], np.int32), np.array([2.0, 3.0, 1.0, np.nan], np.float32)
    c = np.arange(4, dtype=np.int8)
    assert sort(a, b, c, num_keys=2)[2].tolist() == [1, 3, 2, 0]
    assert sort(a, b, c)[2].tolist() == [1, 3, 0, 2]


def test_complex_numbers_sort_by_real_then_imaginary_part():
    z = np.array([1 + 2j, 1 + 1j, complex(np.nan, 0), complex(0, np.nan), -1], np.complex64)
    assert sort(z, np.arange(5))[1].tolist() == [4, 3, 1, 0, 2]


def test_sort_rules():
    for d in (0, 1):
        check_jvp(S.sort_p, X, dimension=d, num_keys=1, is_stable=True)
        check_jvp(S.sort_p, X, X[::-1].copy(), dimension=d, num_keys=1, is_stable=True)
        check_jvp(S.sort_p, (X > 0).astype(np.int32), X, dimension=d, num_keys=1, is_stable=True)
        check_batch(S.sort_p, X, X + 1, dimension=d, num_keys=1, is_stable=True)


def test_sort_checks():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="axis 2 is out of bounds for array of dimension 2"):
        traced(lambda v: S.sort(v, 2), x)
    with pytest.raises(TypeError, match=r"equal shapes, got: \(2, 3\) \(3,\)"):
        traced(lambda v, w: S.sort((v, w), 0), x, x[0])
    with pytest.raises(
        ValueError, match="num_keys=3 must be between 1 and the number of operands, 2"
    ):
        traced(lambda v: S.sort((v, v), 0, num_keys=3), x)
    out = traced(lambda v: list(S.sort_key_val(v, v)), x)
    assert len(out.out_avals) == 2 and isinstance(S.sort, object)


# ---------------------------------------------------------------- top_k


@pytest.mark.parametrize("dtype", DTYPES)
def test_top_k(dtype):
    with x64():
        x = values(dtype, (3, 4), seed=3)
        for axis in (0, 1):
            for k in (0, 1, 3):
                v, i = call(S.top_k_p, x, k=k, axis=axis)
                want = np.argsort(-x.astype(np.float64), axis=axis, kind="stable").take(
                    np.arange(k), axis=axis
                )
                same(i, want.astype(np.int32))
                same(v, np.take_along_axis(x, want, axis))


def test_top_k_order():
    x = np.array([1, np.nan, 3, 3, np.nan, -0.0, 0.0], np.float32)
    x[4] = np.copysign(x[4], np.float32(-1))
    assert call(S.top_k_p, x, k=7, axis=0)[1].tolist() == [1, 2, 3, 0, 6, 5, 4]


def test_top_k_rules():
    for axis in (0, 1):
        check_jvp(S.top_k_p, X, k=2, axis=axis)
        check_batch(S.top_k_p, X, k=2, axis=axis)


def test_approx():
    params = {
        "recall_target": 0.9,
        "reduction_input_size_override": -1,
        "aggregate_to_topk": True,
        "k": 2,
    }
    for largest in (True, False):
        v, i = call(S.approx_top_k_p, X, reduction_dimension=-1, is_max_k=largest, **params)
        same(v, np.sort(X)[:, ::-1][:, :2] if largest else np.sort(X)[:, :2])
        same(np.take_along_axis(X, i, 1), v)
        check_jvp(S.approx_top_k_p, X, reduction_dimension=-1, is_max_k=largest, **params)
        check_batch(S.approx_top_k_p, X, reduction_dimension=-2, is_max_k=largest, **params)
    assert (
        len(run(lambda v: S.approx_max_k(v, 2), X))
        == len(run(lambda v: S.approx_min_k(v, 2), X))
        == 2
    )


def test_top_k_checks():
    x = np.ones(4, np.float32)
    with pytest.raises(ValueError, match=r"got k=7 with shape=\[4\] and axis=0"):
        traced(lambda v: S.top_k(v, 7), x)
    with pytest.raises(ValueError, match="not compatible with complex"):
        traced(lambda v: S.top_k(v, 1), x.astype(np.complex64))


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", ml_dtypes.bfloat16, bool])
def test_peer(dtype):
    s = specials(dtype)
    x = np.random.default_rng(0).permutation(np.concatenate([s, s]))

    def listed(*xs, **p):
        return list(S.sort(xs, **p))

    check_peer("sort", x)
    check_peer(
        "sort_key_val",
        x,
        np.arange(len(x), dtype=np.int32),
        ours=lambda a, b: list(S.sort_key_val(a, b)),
    )
    check_peer("top_k", x, k=len(x))
    assert listed
