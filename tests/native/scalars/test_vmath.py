"""The table of math functions: what holds for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from calque.native.scalars.expr import Expr, ref
from calque.native.scalars.node import make
from calque.native.scalars.vmath import TABLE
from tests.native.evaluate import compiled
from tests.native.scalars.vmath.shared import NUMPY, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_signs_of_zero() -> None:
    zeros = np.array([0.0, -0.0])
    for name in (
        "sin",
        "tan",
        "asin",
        "atan",
        "sinh",
        "tanh",
        "asinh",
        "atanh",
        "expm1",
        "log1p",
        "cbrt",
        "erf",
        "erf_inv",
    ):
        for dtype, t in NUMPY.items():
            assert np.signbit(run(name, dtype, zeros.astype(t))).tolist() == [False, True], name


def test_same_bits_at_every_width() -> None:
    r = np.random.default_rng(7)
    x, y = (r.normal(size=1003) * 10.0 ** r.uniform(-3, 6, 1003) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    for name in ("exp", "log", "log1p", "sin", "tanh", "pow", "erf", "cbrt"):
        args = [x, y] if name == "pow" else [x]
        first, *others = (
            compiled(
                lambda *a, name=name: [make(name, a, "f32")], ["f32"] * len(args), ["f32"], w, exact
            )[1](*args)[0]
            for w, exact in ((16, False), (4, False), (32, True))
        )
        for other in others:
            assert first.tobytes() == other.tobytes(), name


def usual(e: Expr) -> set[Expr]:
    """What is computed where no lane needs a seldom side."""
    seen: set[Expr] = set()
    todo = [e]
    while todo:
        x = todo.pop()
        if x not in seen:
            seen.add(x)
            todo += x.args[:2] if x.op == "rare" else x.args
    return seen


def test_costs() -> None:
    """How many operations a function has is what it costs: none shall grow unseen."""
    limits = {
        "exp": (17, 22),
        "log": (24, 42),
        "log1p": (26, 46),
        "tanh": (27, 41),
        "erf": (32, 60),
        "cbrt": (25, 38),
        "atan2": (36, 48),
        "logistic": (25, 30),
        "pow": (52, 124),
    }
    for name, most in limits.items():
        for dtype, limit in zip(("f32", "f64"), most, strict=True):
            args = [ref(f"x{k}", dtype) for k in range(2 if name in ("pow", "atan2") else 1)]
            cost = sum(e.op not in ("const", "ref", "bitcast") for e in usual(TABLE[name](*args)))
            assert cost <= limit, (name, dtype, cost)
