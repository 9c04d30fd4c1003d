"""Cumulative operations."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.primitives import REGISTRY
from calque.ops import cumulative as C
from calque.ops.common import instantiate
from tests.ops.helpers import (
    call,
    check_batch,
    check_jvp,
    check_peer,
    check_transpose,
    forward,
    run,
    same,
    specials,
    traced,
    values,
    x64,
)

NUMPY = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}
X = values("float64", (3, 4), seed=5)


def expected(name, x, axis, reverse):
    w = x.astype(
        np.int64 if x.dtype.kind in "iu" else np.complex128 if x.dtype.kind == "c" else np.float64
    )
    w = np.flip(w, axis) if reverse else w
    out = NUMPY[name].accumulate(w, axis=axis)
    return (np.flip(out, axis) if reverse else out).astype(x.dtype)


DTYPES = ["float32", "float16", ml_dtypes.bfloat16, "float64", "int8", "uint32", "complex64"]
CASES = [(n, d) for n in NUMPY for d in DTYPES if n != "cumlogsumexp" or np.dtype(d).kind in "fV"]


@pytest.mark.parametrize("name, dtype", CASES)
def test_values(name, dtype):
    with x64():
        for shape in ((3, 4), (0, 2), (2, 0), (1, 1)):
            for axis in (0, 1):
                for reverse in (False, True):
                    x = values(dtype, shape)
                    same(
                        call(REGISTRY[name], x, axis=axis, reverse=reverse)[0],
                        expected(name, x, axis, reverse),
                    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NUMPY)
def test_rules(name, reverse):
    for axis in (0, 1):
        check_jvp(REGISTRY[name], X, axis=axis, reverse=reverse, rtol=1e-5)
        check_batch(REGISTRY[name], X, axis=axis, reverse=reverse, rtol=1e-14)
    check_jvp(REGISTRY[name], X[:0], axis=0, reverse=reverse, order=1)


@pytest.mark.parametrize("n", range(1, 12))
def test_every_length(n):
    x = values("float64", (n,))
    for name in NUMPY:
        check_jvp(REGISTRY[name], x, axis=0, reverse=False, order=1)


def test_product_with_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    check_jvp(C.cumprod_p, x, axis=0, reverse=False)


def test_ties_share_as_in_jax():
    def tangent(x, t):
        return [instantiate(v) for v in forward(C.cummax)([x], [t])[1]]

    out = run(tangent, np.array([1, 1, 2, 2, 2], np.float32), np.arange(1, 6, dtype=np.float32))
    assert out[0].tolist() == [1, 1.5, 3, 3.5, 4.25]


def test_minus_infinity_has_finite_derivatives():
    def tangent(x, t):
        return [instantiate(v) for v in forward(C.cumlogsumexp)([x], [t])[1]]

    x = np.array([-np.inf, -np.inf, 0, 0], np.float32)
    assert np.isfinite(run(tangent, x, np.ones(4, np.float32))[0][2:]).all()


def test_transpose():
    for axis in (0, 1):
        for reverse in (False, True):
            check_transpose(C.cumsum_p, X, axis=axis, reverse=reverse)


def test_checks():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"cumsum: axis -1 is out of bounds for f32\[2,3\]"):
        traced(lambda v: C.cumsum(v, -1), x)
    with pytest.raises(TypeError, match="cumsum does not accept dtype bool"):
        traced(C.cumsum, x > 0)
    with pytest.raises(TypeError, match="cumlogsumexp does not accept dtype int32"):
        traced(C.cumlogsumexp, np.ones(2, np.int32))


@pytest.mark.peer
def test_peer():
    for name in NUMPY:
        check_peer(name, values("float32", (3, 9)), axis=1, reverse=True, rtol=1e-5, atol=1e-6)
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        check_peer(name, specials("int32"))
    for name in ("cummax", "cummin"):
        check_peer(name, specials("float32")[:-1])
