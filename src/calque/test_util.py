"""Checks of derivatives against finite differences, along one random direction."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.arrays import to_numpy
from calque.core.dtypes import float0, is_complex, is_inexact, real_part
from calque.core.trace import typeof
from calque.numpy.conversions import asarray
from calque.transforms.functions.autodiff import jvp, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS = 1e-4
_TOLERANCE: Final = {
    "float16": 1e-2,
    "bfloat16": 1e-1,
    "float32": 1e-1,
    "complex64": 1e-1,
    "float64": 1e-4,
    "complex128": 1e-4,
}


def _like(rng: np.random.RandomState, x: Any) -> Any:
    """A random tangent of x: float0 for integers."""
    aval = typeof(x)
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    values = rng.randn(*aval.shape)
    if is_complex(aval.dtype):
        values = values + 1j * rng.randn(*aval.shape)
    return np.asarray(values).astype(aval.dtype)


def _random_like(tree: Any) -> Any:
    return pytrees.tree_map(functools.partial(_like, np.random.RandomState(0)), tree)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    def shift(x: Any, t: Any) -> Any:
        return (
            x
            if getattr(t, "dtype", None) == float0
            else asarray((to_numpy(x) + step * t).astype(typeof(x).dtype))
        )

    return pytrees.tree_map(shift, args, tangents)


def numerical_jvp(
    f: Callable[..., Any], args: Sequence[Any], tangents: Any, eps: float = EPS
) -> Any:
    """The central difference of f along tangents."""
    after, before = f(*_moved(args, tangents, 0.5 * eps)), f(*_moved(args, tangents, -0.5 * eps))

    def slope(a: Any, b: Any) -> Any:
        if not is_inexact(typeof(a).dtype):
            return np.zeros(typeof(a).shape, float0)
        x, y = to_numpy(a), to_numpy(b)
        with np.errstate(invalid="ignore"):  # what is the same infinity on both sides stays
            difference = np.where(x == y, np.zeros((), x.dtype), x - y)
        return (difference / eps).astype(typeof(a).dtype)

    return pytrees.tree_map(slope, after, before)


def _tolerance(x: Any, given: Any) -> float:
    if isinstance(given, dict):
        given = next((v for k, v in given.items() if np.dtype(k) == x.dtype), None)
    return _TOLERANCE.get(x.dtype.name, 0.0) if given is None else given


def _assert_close(got: Any, want: Any, atol: Any, rtol: Any, message: str) -> None:
    got_leaves, want_leaves = pytrees.leaves(got), pytrees.leaves(want)
    assert len(got_leaves) == len(want_leaves), (
        f"{message}: {len(got_leaves)} values, {len(want_leaves)} expected"
    )
    for g, w in zip(got_leaves, want_leaves):
        g, w = to_numpy(g), to_numpy(w)
        if g.dtype == float0 or w.dtype == float0:
            continue
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            g.astype(wide),
            w.astype(wide),
            rtol=_tolerance(w, rtol),
            atol=_tolerance(w, atol),
            err_msg=message,
        )


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks that forward derivatives agree with differences.

    Args:
        f: The function, of arrays and trees of them.
        f_jvp: `f_jvp(args, tangents)` gives (value, tangent), as `jax.jvp` with `f`.
        args: Its arguments, a tuple.
        atol: The absolute error that is allowed, or a dict from dtypes to such; None takes one by
            dtype.
        rtol: The relative error that is allowed, likewise.
        eps: The step of the differences.
        err_msg: What an error begins with.

    Raises:
        AssertionError: They do not.

    >>> import functools
    >>> jax.test_util.check_jvp(jnp.sin, functools.partial(jax.jvp, jnp.sin), (0.5,))"""
    tangents = _random_like(args)
    out, slope = f_jvp(tuple(args), tangents)
    _assert_close(out, f(*args), atol, rtol, f"{err_msg} primal" if err_msg else "primal")
    expected = numerical_jvp(f, args, tangents, eps)
    _assert_close(slope, expected, atol, rtol, f"{err_msg} tangent" if err_msg else "tangent")


def _dot(xs: Any, ys: Any) -> float:
    total = 0.0
    for x, y in zip(pytrees.leaves(xs), pytrees.leaves(ys), strict=True):
        x, y = to_numpy(x), to_numpy(y)
        if x.dtype != float0 and y.dtype != float0:
            wide = np.complex128 if x.dtype.kind == "c" or y.dtype.kind == "c" else np.float64
            total += np.sum(x.astype(wide) * y.astype(wide)).real
    return float(total)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks that backward derivatives agree with differences.

    Args:
        f: The function, of arrays and trees of them.
        f_vjp: `f_vjp(*args)` gives (value, function of cotangents), as `jax.vjp` with `f`.
        args: Its arguments, a tuple.
        atol: The absolute error that is allowed, or a dict from dtypes to such; None takes one by
            dtype.
        rtol: The relative error that is allowed, likewise.
        eps: The step of the differences.
        err_msg: What an error begins with.

    Raises:
        AssertionError: They do not.

    >>> import functools
    >>> jax.test_util.check_vjp(jnp.sin, functools.partial(jax.vjp, jnp.sin), (0.5,))"""
    out, pullback = f_vjp(*args)
    _assert_close(out, f(*args), atol, rtol, f"{err_msg} primal" if err_msg else "primal")
    tangents = _random_like(args)
    slope = numerical_jvp(f, args, tangents, eps)
    cotangents = pytrees.tree_map(
        lambda t: t if t.dtype == float0 else _conjugated(t), _random_like(out)
    )
    back = pullback(cotangents)
    leaf = pytrees.leaves(out)
    like = real_part(to_numpy(leaf[0]).dtype) if leaf else np.dtype("float32")
    left = np.asarray(_dot(tangents, back)).astype(like)
    right = np.asarray(_dot(slope, cotangents)).astype(like)
    _assert_close(
        left,
        right,
        atol,
        rtol,
        f"{err_msg} cotangent projection" if err_msg else "cotangent projection",
    )


def _conjugated(t: np.ndarray) -> np.ndarray:
    return np.conj(t)


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Checks that derivatives agree with differences, in both modes and up to some order.

    Args:
        f: The function, of arrays and trees of them.
        args: Its arguments, a tuple.
        order: The highest order.
        modes: "fwd" for forward derivatives, "rev" for backward ones.
        atol: The absolute error that is allowed, or a dict from dtypes to such; None takes one by
            dtype.
        rtol: The relative error that is allowed, likewise.
        eps: The step of the differences; None takes a good one.

    Raises:
        AssertionError: They do not.

    >>> jax.test_util.check_grads(jnp.sin, (0.5,), order=2)"""
    args = tuple(args)
    step = EPS if eps is None else eps
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads: modes must be among 'fwd' and 'rev', got {modes!r}")
    _check(f, args, order, "", modes, dict(atol=atol, rtol=rtol, eps=step))


def _check(
    f: Callable[..., Any],
    args: Any,
    order: int,
    what: str,
    modes: Sequence[str],
    options: dict[str, Any],
) -> None:
    if "fwd" in modes:
        name = f"jvp of {what}" if what else "jvp"
        forward = functools.partial(jvp, f)
        check_jvp(f, forward, args, err_msg=name, **options)
        if order > 1:
            tangents = _random_like(args)
            _check(lambda *xs: jvp(f, xs, tangents)[1], args, order - 1, name, modes, options)
    if "rev" in modes:
        name = f"vjp of {what}" if what else "vjp"
        check_vjp(f, functools.partial(vjp, f), args, err_msg=name, **options)
        if order > 1:
            cotangents = _random_like(f(*args))
            _check(lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, name, modes, options)
