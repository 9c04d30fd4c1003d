"""dot_general against sums written out, its rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

from calque.ops.dimension_numbers import Precision, canonical_precision
from calque.ops.products import dot as D
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
    x64,
)


def v(*shape, seed=0):
    return values("float64", shape, seed=seed)


CASES = {
    "matrices": (v(2, 3), v(3, 4, seed=1), (((1,), (0,)), ((), ())), "ik,kj->ij"),
    "both transposed": (v(3, 2), v(4, 3, seed=1), (((0,), (1,)), ((), ())), "ki,jk->ij"),
    "vectors": (v(3), v(3, seed=1), (((0,), (0,)), ((), ())), "k,k->"),
    "outer": (v(2), v(3, seed=1), (((), ()), ((), ())), "i,j->ij"),
    "scalars": (v(), v(seed=1), (((), ()), ((), ())), ",->"),
    "batch": (v(5, 2, 3), v(5, 3, 4, seed=1), (((2,), (1,)), ((0,), (0,))), "bik,bkj->bij"),
    "batch in the middle": (
        v(2, 5, 3),
        v(3, 4, 5, seed=1),
        (((2,), (0,)), ((1,), (2,))),
        "ibk,kjb->bij",
    ),
    "two contracted": (v(2, 3, 4), v(4, 5, 3, seed=1), (((1, 2), (2, 0)), ((), ())), "ikl,ljk->ij"),
    "two batch": (v(2, 3, 4), v(3, 2, 4, seed=1), (((2,), (2,)), ((0, 1), (1, 0))), "abk,bak->ab"),
    "all kinds": (
        v(2, 3, 4, 5),
        v(5, 3, 2, 4, seed=1),
        (((3, 1), (0, 1)), ((0,), (2,))),
        "bkil,lkbj->bij",
    ),
    "empty sum": (v(2, 0), v(0, 3), (((1,), (0,)), ((), ())), "ik,kj->ij"),
    "empty result": (v(0, 3), v(3, 2), (((1,), (0,)), ((), ())), "ik,kj->ij"),
    "empty batch": (v(0, 2, 3), v(0, 3, 2), (((2,), (1,)), ((0,), (0,))), "bik,bkj->bij"),
}
DTYPES = [
    "float32",
    "int32",
    "int8",
    "uint8",
    "complex64",
    "float16",
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    "bool",
]


def params(numbers, preferred=None):
    preferred = None if preferred is None else np.dtype(preferred)
    return {
        "dimension_numbers": numbers,
        "precision": None,
        "preferred_element_type": preferred,
        "out_sharding": None,
    }


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_meaning(name, dtype):
    x, y, numbers, subscripts = CASES[name]
    x, y = np.asarray(x).astype(dtype), np.asarray(y).astype(dtype)
    kind = np.dtype(dtype).kind
    wide = {"c": "complex128", "i": "int64", "u": "int64", "b": "int64"}.get(kind, "float64")
    tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 0.07}.get(
        np.dtype(dtype).name, 1e-5
    )

    def expected(x, y):
        total = np.einsum(subscripts, x.astype(wide), y.astype(wide))
        return np.asarray(total).astype(dtype)

    check_meaning(
        D.dot_general_p, expected, x, y, rtol=tolerance, atol=tolerance, **params(numbers)
    )


@pytest.mark.parametrize(
    ("a", "b", "preferred", "out"),
    [
        ("int8", "int8", "int32", "int32"),
        ("uint8", "int8", None, "int8"),
        ("uint16", "int8", None, "uint16"),
        ("bool", "uint8", None, "uint8"),
        ("float16", ml_dtypes.bfloat16, None, "bfloat16"),
        ("float32", "int32", None, "float32"),
        ("float32", ml_dtypes.bfloat16, None, "float32"),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "float32", "float32"),
        ("float16", "float16", "float32", "float32"),
        ("float32", "float32", ml_dtypes.bfloat16, "bfloat16"),
        (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, "float32", "float32"),
        ("complex64", "float32", None, "complex64"),
    ],
)
def test_mixed_dtypes(a, b, preferred, out):
    x, y = v(2, 30).astype(a), v(30, 2, seed=1).astype(b)
    (got,) = run(lambda x, y: D.dot(x, y, preferred_element_type=preferred), x, y)
    wide = "complex128" if "complex" in out else "int64" if "int" in out else "float64"
    want = (x.astype(wide) @ y.astype(wide)).astype(out)
    same(got, want, rtol=1e-2 if out == "bfloat16" else 1e-5, atol=1e-4)


def test_neither_of_two_dtypes_is_larger():
    x = v(2, 2)
    with pytest.raises(TypeError, match="is the larger one"):
        run(D.dot, x.astype(ml_dtypes.float8_e4m3), x.astype(ml_dtypes.float8_e4m3fnuz))


def test_narrow_sums_are_wide():
    x = np.full(5000, 1.0, ml_dtypes.bfloat16)
    assert run(D.dot, x, x)[0] == np.asarray(5000, ml_dtypes.bfloat16)
    x = np.full(100, 100, "int8")
    assert run(lambda x: D.dot(x, x, preferred_element_type="int32"), x)[0] == 1000000


@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    x, y, numbers, _ = CASES[name]
    check_jvp(D.dot_general_p, x, y, rtol=1e-5, **params(numbers))
    check_transpose(D.dot_general_p, x, y, linear=(0,), **params(numbers))
    check_transpose(D.dot_general_p, x, y, linear=(1,), **params(numbers))
    check_batch(
        D.dot_general_p,
        x.astype("float32"),
        y.astype("float32"),
        rtol=1e-5,
        atol=1e-5,
        **params(numbers),
    )


def test_rules_of_mixed_dtypes():
    x, y = v(2, 3), v(3, 4).astype("float32")
    with x64():
        p = params((((1,), (0,)), ((), ())), "float64")
        check_transpose(D.dot_general_p, x, y, linear=(1,), rtol=1e-6, **p)
        check_transpose(D.dot_general_p, x, y, linear=(0,), **p)
        z = x + 1j * x
        check_jvp(D.dot_general_p, z, z.T, **params((((1,), (0,)), ((), ()))))
        check_transpose(D.dot_general_p, z, z.T, **params((((1,), (0,)), ((), ()))))


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: D.dot(x, x), "Incompatible shapes for dot"),
        (lambda x: D.dot_general(x, x, (((1,), (0,)), ((), ()))), r"got 3 .*and 2"),
        (lambda x: D.dot_general(x, x, (((2,), (0,)), ((), ()))), "out of bounds"),
        (lambda x: D.dot_general(x, x, (((0, 0), (0, 0)), ((), ()))), "used twice"),
        (lambda x: D.dot_general(x, x, (((0,), ()), ((), ()))), "pair up"),
        (
            lambda x: D.batch_matmul(
                x, x[0] if isinstance(x, np.ndarray) else np.ones(3, "float32")
            ),
            "at least 2D",
        ),
        (lambda x: D.dot(x, np.ones(3, "float32"), precision="exact"), "Precision argument"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError), match=words):
        run(fun, v(2, 3).astype("float32"))


def test_precision():
    assert canonical_precision("highest") == (Precision.HIGHEST, Precision.HIGHEST)
    assert canonical_precision(("high", Precision.DEFAULT)) == (Precision.HIGH, Precision.DEFAULT)
    assert str(Precision.HIGH) == "HIGH" and repr(Precision.HIGH) == "Precision.HIGH"


@pytest.mark.peer
def test_beside_jax():
    for x, y, numbers, _ in CASES.values():
        a, b = np.asarray(x, "float32"), np.asarray(y, "float32")
        peer.compare([(lambda lax, a, b: lax.dot_general(a, b, numbers), a, b)], printed=False)
        peer.compare(
            [
                (
                    lambda lax, a, b: lax.dot_general(a, b, numbers),
                    a.astype("int8"),
                    b.astype("int8"),
                )
            ],
            printed=False,
        )
    x, y = v(2, 3).astype("float32"), v(3, 4).astype("float32")
    peer.compare(
        [
            (lambda lax, x, y: lax.dot(x, y), x, y),
            (lambda lax, x, y: lax.dot(x, y, precision="high"), x, y),
        ],
        printed=False,
    )
    peer.compare([(lambda lax, x, y: lax.batch_matmul(x, y), x[None], y[None])], printed=False)
