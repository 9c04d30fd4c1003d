"""concatenate, pad, rev, tile, split, stack, unstack against NumPy, their rules, and JAX."""

import ml_dtypes
import numpy as np
import pytest

from calque.ops import joining as J
from tests.ops import peer
from tests.ops.helpers import (
    check_batch,
    check_jvp,
    check_meaning,
    check_transpose,
    run,
    same,
    values,
)

X = values("float64", (2, 3))
Y = values("float64", (4, 3), seed=1)


def padded(x, value, padding_config):
    """The definition: each element goes to low + i * (interior + 1), unless that is outside."""
    shape = [
        low + high + n + max(n - 1, 0) * gap for n, (low, high, gap) in zip(x.shape, padding_config)
    ]
    out = np.full(shape, value, x.dtype)
    for i in np.ndindex(*x.shape):
        at = [low + k * (gap + 1) for k, (low, _, gap) in zip(i, padding_config)]
        if all(0 <= a < n for a, n in zip(at, shape)):
            out[tuple(at)] = x[i]
    return out


def pad_case(x, config):
    return (
        J.pad_p,
        (x, np.float64(0.5)),
        {"padding_config": config},
        lambda x, v: padded(x, v, config),
    )


CASES = [
    (J.concatenate_p, (X, Y, X[:0]), {"dimension": 0}, lambda *xs: np.concatenate(xs, 0)),
    (J.concatenate_p, (X, X[:, :1]), {"dimension": 1}, lambda *xs: np.concatenate(xs, 1)),
    pad_case(X, ((1, 2, 0), (0, 0, 1))),
    pad_case(Y, ((-1, 2, 2), (3, -2, 1))),
    pad_case(Y, ((-3, -5, 3), (-1, -1, 0))),
    pad_case(X, ((4, -5, 0), (-4, 5, 0))),
    pad_case(X[:0], ((1, 1, 2), (0, 0, 0))),
    pad_case(X[:1], ((0, 0, 5), (0, -3, 0))),
    pad_case(X[0, 0], ()),
    (J.rev_p, (X,), {"dimensions": (1, 0)}, lambda x: x[::-1, ::-1]),
    (J.rev_p, (X,), {"dimensions": ()}, lambda x: x),
    (
        J.tile_p,
        (X,),
        {"reps": (2, 3)},
        lambda x: np.concatenate([np.concatenate([x] * 3, 1)] * 2, 0),
    ),
    (J.tile_p, (X,), {"reps": (0, 1)}, lambda x: x[:0]),
    (J.split_p, (Y,), {"sizes": (1, 0, 3), "axis": 0}, lambda y: [y[:1], y[1:1], y[1:]]),
    (J.stack_p, (X, X + 1), {"axis": 1}, lambda *xs: np.stack(xs, 1)),
    (J.stack_p, (X, X + 1, X), {"axis": 2}, lambda *xs: np.stack(xs, 2)),
    (J.unstack_p, (X,), {"axis": 1}, lambda x: [x[:, 0], x[:, 1], x[:, 2]]),
]
IDS = [f"{c[0].name}-{i}" for i, c in enumerate(CASES)]


@pytest.mark.parametrize(("prim", "args", "params", "expected"), CASES, ids=IDS)
def test_meaning(prim, args, params, expected):
    for dtype in ("float32", "int8", "bool", ml_dtypes.bfloat16):
        check_meaning(prim, expected, *[np.asarray(a).astype(dtype) for a in args], **params)


@pytest.mark.parametrize(("prim", "args", "params", "expected"), CASES, ids=IDS)
def test_rules(prim, args, params, expected):
    check_jvp(prim, *args, **params)
    check_transpose(prim, *args, linear=tuple(range(len(args))), **params)
    check_transpose(prim, args[0], *[a * 0 for a in args[1:]], linear=(0,), **params)
    check_batch(prim, *[np.asarray(a).astype("float32") for a in args], **params)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: J.concatenate([], 0), "non-empty"),
        (lambda x: J.concatenate([x, x], 2), "out of bounds"),
        (
            lambda x: (
                J.concatenate([x, x[:, :2]], 0)
                if isinstance(x, np.ndarray)
                else J.concatenate_p.bind(x, X[:, :2].astype("float32"), dimension=0)
            ),
            "differ in dimensions",
        ),
        (
            lambda x: J.concatenate([x, X[0].astype("float32")], 0),
            "different numbers of dimensions",
        ),
        (lambda x: J.concatenate([x, X.astype("int32")], 0), "same dtypes"),
        (lambda x: J.pad(x, 0.0, ((0, 0, -1), (0, 0, 0))), "nonnegative"),
        (lambda x: J.pad(x, 0.0, ((-3, 0, 0), (0, 0, 0))), "at least 0"),
        (lambda x: J.pad(x, 0.0, ((0, 0, 0),)), "number of axes"),
        (lambda x: J.pad(x, np.int32(0), ((0, 0, 0), (0, 0, 0))), "same dtype"),
        (lambda x: J.rev(x, (0, 0)), "unique"),
        (lambda x: J.rev(x, (2,)), "out of bounds"),
        (lambda x: J.tile(x, (2,)), "reps"),
        (lambda x: J.split(x, (1, 3)), "Sum of sizes"),
        (lambda x: J.split(x, (3, -1)), "nonnegative"),
        (lambda x: J.stack([x, X[0].astype("float32")]), "one shape"),
        (lambda x: J.stack([]), "non-empty"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError), match=words):
        run(fun, X.astype("float32"))


def test_functions():
    x = X.astype("float32")
    same(run(lambda x: J.concatenate([x, x], 1), x)[0], np.concatenate([x, x], 1))
    same(
        run(lambda x: J.pad(x, 2, ((0, 1, 0), (0, 0, 0))), x)[0],
        np.concatenate([x, np.full((1, 3), 2, "float32")]),
    )
    assert [p.shape for p in run(lambda x: J.split(x, (1, 2), -1), x)] == [(2, 1), (2, 2)]
    assert [p.shape for p in run(lambda x: J.unstack(x, -1), x)] == [(2,)] * 3


@pytest.mark.peer
def test_beside_jax():
    x, y = X.astype("float32"), Y.astype("float32")
    peer.compare(
        [
            (lambda lax, x, y: lax.concatenate([x, y], 0), x, y),
            (lambda lax, x: lax.concatenate([x], 0), x),
            (lambda lax, x: lax.pad(x, 0.0, ((1, -1, 2), (0, 3, 0))), x),
            (lambda lax, y: lax.pad(y, 1.5, ((-2, -1, 1), (-1, 0, 3))), y),
            (lambda lax, x: lax.rev(x, (1,)), x),
            (lambda lax, x: lax.tile(x, (2, 1)), x),
            (lambda lax, y: lax.split(y, (1, 3)), y),
            (lambda lax, x: lax.stack([x, x], -1), x),
            (lambda lax, x: lax.unstack(x, 1), x),
        ]
    )


def test_padding_that_is_cut_off_again_takes_no_memory():
    x = np.arange(1, 5, dtype=np.int32)
    for config, wanted in (
        ((2**62, -(2**62), 0), [0] * 4),
        ((-(2**62), 2**62, 0), [0] * 4),
        ((-2, 1 - 3 * 2**40, 2**40), [0] * 3),
        ((1, -3 * 2**40, 2**40), [0, 1, 0, 0, 0]),
    ):
        out = J.pad_p.meaning(x, np.int32(0), padding_config=(config,))
        assert out.tolist() == wanted
