"""Checks of transformations: every function is differentiated in both modes to second order,
batched and jitted, and compared with finite differences and Python loops. Programs run on the
reference backend, so that only the rules are on trial.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import calque.ops
from calque.core import backends, pytrees, reference, trace
from calque.core.arrays import to_numpy
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr, check_jaxpr
from calque.transforms.functions.autodiff import jvp, linearize, vjp
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit

for _module in pkgutil.walk_packages(calque.ops.__path__, "calque.ops."):
    importlib.import_module(_module.name)


@pytest.fixture
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs and single operations run their NumPy meanings."""
    monkeypatch.setattr(trace.evaluator, "call", reference.evaluate)
    monkeypatch.setattr(backends.known, "default", "reference")
    yield


def values(tree: Any) -> Any:
    """The same tree with NumPy arrays."""
    return pytrees.tree_map(lambda x: np.asarray(to_numpy(x)), tree)


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(to_numpy(x)) for x in pytrees.leaves(tree)]


def close(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> None:
    la, lb = leaves(a), leaves(b)
    assert len(la) == len(lb), (a, b)
    for x, y in zip(la, lb):
        assert x.shape == y.shape, (x.shape, y.shape)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def verified(f: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    """The program of `f`, checked against the rules of the language."""
    closed = make_jaxpr(f)(*args)
    check_jaxpr(closed.jaxpr)
    return closed


def primitives_of(closed: Any) -> list[str]:
    return [e.primitive.name for e in closed.jaxpr.eqns]


def directions(args: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return pytrees.tree_map(lambda x: rng.normal(size=np.shape(x)), args)


def shifted(args: Any, ts: Any, eps: float) -> Any:
    return pytrees.tree_map(lambda x, t: x + eps * t, args, ts)


def dot(a: Any, b: Any) -> float:
    return float(sum((x * y).sum() for x, y in zip(leaves(a), leaves(b))))


def check(
    f: Callable[..., Any],
    *args: Any,
    second: bool = True,
    batched: bool = True,
    eps: float = 1e-5,
    rtol: float = 2e-5,
) -> None:
    """All derivatives of `f` at float64 arguments, alone, under jit and under vmap."""
    with config.override("enable_x64", True):
        args = tuple(pytrees.tree_map(lambda x: np.asarray(x, np.float64), args))
        check_first(f, args, eps, rtol)
        if second:
            check_second(f, args, eps, rtol * 10)
        if batched:
            check_batched(f, args)


def check_first(f: Callable[..., Any], args: Any, eps: float, rtol: float) -> None:
    ts = directions(args, 0)
    out, tangent = jvp(f, args, ts)
    close(out, f(*args))
    numeric = pytrees.tree_map(
        lambda a, b: (a - b) / (2 * eps),
        values(f(*shifted(args, ts, eps))),
        values(f(*shifted(args, ts, -eps))),
    )
    close(tangent, numeric, rtol, 1e-7)
    out, f_lin = linearize(f, *args)
    close(f_lin(*ts), tangent, 1e-9, 1e-12)
    out, f_vjp = vjp(f, *args)
    cts = directions(values(out), 1)
    back = f_vjp(cts)
    np.testing.assert_allclose(dot(cts, tangent), dot(back, ts), rtol=1e-8, atol=1e-10)
    close(vjp(jit(f), *args)[1](cts), back, 1e-9, 1e-12)
    close(jit(lambda a, c: vjp(f, *a)[1](c))(args, cts), back, 1e-9, 1e-12)
    close(jvp(jit(f), args, ts), (out, tangent), 1e-9, 1e-12)
    verified(lambda a, c: vjp(f, *a)[1](c), args, cts)
    verified(lambda a, t: jvp(f, a, t), args, ts)


def check_second(f: Callable[..., Any], args: Any, eps: float, rtol: float) -> None:
    cts = directions(values(f(*args)), 1)
    ts = directions(args, 2)

    def gradient(*a):
        return vjp(f, *a)[1](cts)

    _, over = jvp(gradient, args, ts)
    numeric = pytrees.tree_map(
        lambda a, b: (a - b) / (2 * eps),
        values(gradient(*shifted(args, ts, eps))),
        values(gradient(*shifted(args, ts, -eps))),
    )
    close(over, numeric, rtol, 1e-6)
    _, back = vjp(gradient, *args)
    close(back(tuple(ts)), over, 1e-7, 1e-9)  # second derivatives are symmetric
    _, back = vjp(jit(gradient), *args)
    close(back(tuple(ts)), over, 1e-7, 1e-9)


def check_batched(f: Callable[..., Any], args: Any) -> None:
    rows = [args, shifted(args, directions(args, 3), 0.1), shifted(args, directions(args, 4), 0.1)]
    stacked = pytrees.tree_map(lambda *xs: np.stack(xs), *rows)
    by_hand = pytrees.tree_map(lambda *xs: np.stack(xs), *[values(f(*r)) for r in rows])
    close(vmap(f)(*stacked), by_hand, 1e-9, 1e-12)
    close(jit(vmap(f))(*stacked), by_hand, 1e-9, 1e-12)
    cts = directions(by_hand, 5)

    def gradient(c, *a):
        return vjp(f, *a)[1](c)

    each = [values(gradient(pytrees.tree_map(lambda c: c[i], cts), *r)) for i, r in enumerate(rows)]
    want = pytrees.tree_map(lambda *xs: np.stack(xs), *each)
    close(vmap(gradient)(cts, *stacked), want, 1e-8, 1e-10)
    close(vjp(vmap(f), *stacked)[1](cts), want, 1e-8, 1e-10)
    close(vjp(jit(vmap(jit(f))), *stacked)[1](cts), want, 1e-8, 1e-10)

    def one(x):
        return f(x, *args[1:])

    close(
        vmap(one)(stacked[0]),
        pytrees.tree_map(lambda *xs: np.stack(xs), *[values(one(r[0])) for r in rows]),
        1e-9,
        1e-12,
    )
