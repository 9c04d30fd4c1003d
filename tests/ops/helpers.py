"""Checks that hold for every primitive, run without any backend: programs are traced and evaluated
by NumPy meanings.

run(fun, *arrays)                 results of a flat function, every equation checked against its
shape rule forward(fun)(primals, tangents)   forward mode, by the jvp rules check_meaning,
check_jvp, check_second, check_transpose, check_batch"""

import contextlib
import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from calque import ops
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import float0, is_complex, is_inexact
from calque.core.jaxprs import ClosedJaxpr, Var, check_jaxpr
from calque.core.primitives import Primitive, UndefinedPrimal, Zero
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops.common import instantiate, zero_like

MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(ops.__path__, "calque.ops.")
]

# ---------------------------------------------------------------- evaluation


@contextlib.contextmanager
def x64(on: bool = True) -> Iterator[None]:
    """64-bit types inside the block."""
    with config.override("calque_enable_x64", on):
        yield


def aval_of(x: Any) -> ShapedArray:
    return ShapedArray(np.shape(x), np.asarray(x).dtype)


def traced(fun: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    """The verified program of `fun`, which may return one value or a list."""

    def flat(*xs: Any) -> list[Any]:
        out = fun(*xs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    closed = trace_to_jaxpr(flat, [getattr(a, "aval", None) or aval_of(a) for a in args])
    check_jaxpr(closed.jaxpr)
    return closed


def run_jaxpr(closed: ClosedJaxpr, *args: Any) -> list[np.ndarray]:
    """Evaluate by meanings; each result must have exactly the aval that the program says."""
    env: dict[Var, Any] = dict(
        zip(closed.jaxpr.constvars, map(np.asarray, closed.consts), strict=True)
    )
    env.update(zip(closed.jaxpr.invars, map(np.asarray, args), strict=True))

    def read(a):
        return env[a] if isinstance(a, Var) else np.asarray(a.val)

    for e in closed.jaxpr.eqns:
        with np.errstate(all="ignore"):
            out = e.primitive.meaning(*[read(a) for a in e.invars], **e.params)
        for v, x in zip(e.outvars, out if e.primitive.multiple_results else (out,), strict=True):
            x = np.asarray(x)
            dtype = getattr(v.aval.dtype, "storage", v.aval.dtype)
            assert (x.shape, x.dtype) == (
                v.aval.shape,
                dtype,
            ), f"{e.primitive}: {x.dtype}{x.shape} but {v.aval}"
            env[v] = x
    return [read(a) for a in closed.jaxpr.outvars]


def run(fun: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    return run_jaxpr(traced(fun, *args), *args)


def call(prim: Primitive, *args: Any, **params: Any) -> list[np.ndarray]:
    """The results of one primitive."""
    return run(lambda *xs: prim.bind(*xs, **params), *args)


# ---------------------------------------------------------------- comparison


def same(a: Any, b: Any, rtol: float = 0.0, atol: float = 0.0, what: str = "") -> None:
    """Equal shape, dtype and values (NaN equals NaN), to a tolerance when one is given."""
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype) == (
        b.shape,
        b.dtype,
    ), f"{what}: {a.dtype}{a.shape} != {b.dtype}{b.shape}"
    if a.dtype.kind == "V" and a.dtype.names:
        assert a.tobytes() == b.tobytes(), what
        return
    with np.errstate(all="ignore"):
        _compare(a, b, rtol, atol, what)


def _compare(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, what: str) -> None:
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    if rtol == 0 and atol == 0:
        np.testing.assert_array_equal(a.astype(kind), b.astype(kind), err_msg=what)
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b, err_msg=what)
    else:
        np.testing.assert_allclose(
            a.astype(kind), b.astype(kind), rtol=rtol, atol=atol, err_msg=what
        )


def check_meaning(
    prim: Primitive,
    expected: Callable[..., Any],
    *args: Any,
    rtol: float = 0.0,
    atol: float = 0.0,
    **params: Any,
) -> None:
    """`prim` gives what `expected` (a NumPy function) gives, dtype and shape included."""
    out = call(prim, *args, **params)
    with np.errstate(all="ignore"):
        want = expected(*args)
    want = list(want) if prim.multiple_results else [want]
    for i, (a, b) in enumerate(zip(out, want, strict=True)):
        same(
            a, b, rtol, atol, f"{prim.name} result {i} of {[aval_of(x).str_short() for x in args]}"
        )


# ---------------------------------------------------------------- derivatives


def forward(
    fun: Callable[..., Any],
) -> Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]:
    """(primals, tangents) -> (results, tangents), by the jvp rule of every equation. Can be traced,
    and nested."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        closed = trace_flat(fun, primals)
        env: dict[Var, tuple[Any, Any]] = {
            v: (c, zero_like(c)) for v, c in zip(closed.jaxpr.constvars, closed.consts)
        }
        env.update(zip(closed.jaxpr.invars, zip(primals, tangents)))

        def read(a):
            return env[a] if isinstance(a, Var) else (a.val, zero_like(a.val))

        for e in closed.jaxpr.eqns:
            ps, ts = zip(*[read(a) for a in e.invars]) if e.invars else ((), ())
            out, t = e.primitive.jvp(ps, ts, **e.params)
            if not e.primitive.multiple_results:
                out, t = [out], [t]
            for v, x, y in zip(e.outvars, out, t, strict=True):
                if type(y) is not Zero:
                    assert typeof(y).shape == v.aval.shape and typeof(y).dtype == v.aval.dtype, (
                        f"{e.primitive}: {y}"
                    )
                env[v] = x, y
        outs = [read(a) for a in closed.jaxpr.outvars]
        return [x for x, _ in outs], [t for _, t in outs]

    return jvp


def trace_flat(fun: Callable[..., Any], args: Sequence[Any]) -> ClosedJaxpr:
    def flat(*xs: Any) -> list[Any]:
        out = fun(*xs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return trace_to_jaxpr(flat, [typeof(a) for a in args])


def numeric_jvp(
    fun: Callable[..., list[np.ndarray]], primals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Central differences of fourth order along `tangents` (None: not moved)."""
    h = 2e-4

    def at(k: float) -> list[np.ndarray]:
        return fun(*[p if t is None else p + k * h * t for p, t in zip(primals, tangents)])

    points = [at(-2), at(-1), at(1), at(2)]
    return [
        (
            (a.astype(np.result_type(a, 0.0)) - 8 * b + 8 * c - d) / (12 * h)
            if is_inexact(a.dtype)
            else None
        )
        for a, b, c, d in zip(*points)
    ]


def random_like(x: Any, seed: int = 0) -> np.ndarray:
    """Normal numbers of the shape and dtype of `x`."""
    rng = np.random.default_rng(seed + 17)
    r = rng.standard_normal(np.shape(x))
    if is_complex(np.asarray(x).dtype):
        r = r + 1j * rng.standard_normal(np.shape(x))
    return np.asarray(r).astype(np.asarray(x).dtype)


def check_fun_jvp(
    fun: Callable[..., Any],
    *args: Any,
    moved: Sequence[int] | None = None,
    order: int = 1,
    rtol: float = 1e-6,
    atol: float = 1e-6,
) -> None:
    """The jvp rules of `fun` against differences, one operand at a time and all together; `order=2`
    also of the jvp."""
    moved = (
        [i for i, a in enumerate(args) if is_inexact(np.asarray(a).dtype)]
        if moved is None
        else list(moved)
    )
    with x64():
        for some in [[i] for i in moved] + ([moved] if len(moved) > 1 else []):
            ts = [random_like(args[i], i) for i in some]

            def directional(
                *xs: Any, some: Sequence[int] = some, ts: Sequence[Any] = ts
            ) -> list[Any]:
                given = dict(zip(some, ts))
                tangents = [given.get(i) if i in given else zero_like(x) for i, x in enumerate(xs)]
                return [instantiate(t) for t in forward(fun)(xs, tangents)[1] if t_is_float(t)]

            got = run(directional, *args)
            steps = [dict(zip(some, ts)).get(i) for i in range(len(args))]
            want = [w for w in numeric_jvp(lambda *xs: run(fun, *xs), args, steps) if w is not None]
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, err_msg=f"operands {some}")
            if order > 1:
                check_fun_jvp(
                    directional,
                    *args,
                    moved=some,
                    order=order - 1,
                    rtol=rtol * 100,
                    atol=atol * 100,
                )


def derivative(prim: Primitive, *args: Any, moved: int = 0, **params: Any) -> Any:
    """The tangent of a primitive for tangent 1 of operand `moved`, as nested Python lists."""

    def tangent(*xs: Any) -> list[Any]:
        ts = [np.ones_like(args[i]) if i == moved else zero_like(x) for i, x in enumerate(xs)]
        return [instantiate(t) for t in forward(lambda *v: prim.bind(*v, **params))(xs, ts)[1]]

    return run(tangent, *args)[0].tolist()


def t_is_float(t: Any) -> bool:
    return (t.aval.dtype if type(t) is Zero else typeof(t).dtype) != float0


def check_jvp(
    prim: Primitive, *args: Any, order: int = 2, rtol: float = 1e-6, **params: Any
) -> None:
    """First and second derivatives of a primitive against finite differences, in float64."""
    moved = params.pop("moved", None)
    check_fun_jvp(
        lambda *xs: prim.bind(*xs, **params), *args, moved=moved, order=order, rtol=rtol, atol=rtol
    )


def check_transpose(
    prim: Primitive, *args: Any, linear: Sequence[int] = (0,), rtol: float = 1e-9, **params: Any
) -> None:
    """<J x, y> = <x, J^T y> for a primitive that is linear in the operands `linear` together. No
    conjugation: as JAX."""
    with x64():
        origin = [np.zeros_like(a) if i in linear else a for i, a in enumerate(args)]
        outs = [o - z for o, z in zip(call(prim, *args, **params), call(prim, *origin, **params))]
        ys = [random_like(o, i + 5) for i, o in enumerate(outs)]

        def backward(*cts: Any) -> list[Any]:
            marked = [UndefinedPrimal(aval_of(a)) if i in linear else a for i, a in enumerate(args)]
            ct = list(cts) if prim.multiple_results else cts[0]
            back = prim.transpose(ct, *marked, **params)
            assert all(b is None for i, b in enumerate(back) if i not in linear)
            return [instantiate(back[i]) for i in linear]

        xs = run(backward, *ys)
        for i, x in zip(linear, xs):
            same_aval = (x.shape, x.dtype) == (np.shape(args[i]), np.asarray(args[i]).dtype)
            assert same_aval, (
                f"{prim.name}: cotangent {x.dtype}{x.shape} of operand {i} {aval_of(args[i])}"
            )
        left = sum(np.sum(_dot(o, y)) for o, y in zip(outs, ys))
        right = sum(np.sum(_dot(np.asarray(args[i]), x)) for i, x in zip(linear, xs))
        left, right = np.real(left), np.real(right)  # the pairing that real, imag and conj keep too
        np.testing.assert_allclose(
            left, right, rtol=rtol, atol=1e-9, err_msg=f"{prim.name}: dot-product test"
        )


def _dot(a: np.ndarray, b: np.ndarray) -> Any:
    return a * b


# ---------------------------------------------------------------- batching


def check_batch(
    prim: Primitive,
    *args: Any,
    size: int = 3,
    rtol: float = 0.0,
    atol: float = 0.0,
    only: Sequence[Sequence[int | None]] | None = None,
    **params: Any,
) -> None:
    """The batching rule, for every choice of batched operands and a few positions, against a Python
    loop."""
    rng = np.random.default_rng(3)
    for which in only or placements([np.ndim(a) for a in args]):
        stacked = [
            a if d is None else batch_of(np.asarray(a), d, size, rng) for a, d in zip(args, which)
        ]
        dims_out: list[Any] = []

        def batched(
            *xs: Any, which: Sequence[int | None] = which, dims_out: list[Any] = dims_out
        ) -> Any:
            out, dims = prim.batch(list(xs), list(which), **params)
            dims_out[:] = dims if prim.multiple_results else [dims]
            return out

        got = run(batched, *stacked)
        singles = []
        for i in range(size):
            row = [a if d is None else np.take(a, i, axis=d) for a, d in zip(stacked, which)]
            singles.append(call(prim, *row, **params))
        for k, (g, d) in enumerate(zip(got, dims_out, strict=True)):
            want = [s[k] for s in singles]
            for i in range(size):
                piece = g if d is None else np.take(g, i, axis=d)
                same(
                    piece,
                    want[i],
                    rtol,
                    atol,
                    f"{prim.name} batched at {which}, result {k}, example {i}",
                )


def placements(ndims: Sequence[int]) -> list[tuple[int | None, ...]]:
    """Batch dimensions to try: first, last or none for each operand, not none for all."""
    choices = [sorted({0, n}) + [None] for n in ndims]
    return [p for p in itertools.product(*choices) if any(d is not None for d in p)][:40]


def batch_of(x: np.ndarray, d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` variations of `x` along a new dimension `d`: its values, shuffled."""
    rows = [x] + [rng.permutation(x.ravel()).reshape(x.shape) for _ in range(size - 1)]
    if x.size == 1 and x.dtype.kind in "fc":
        rows = [x, *(np.asarray(x * (0.5 + i)).astype(x.dtype) for i in range(size - 1))]
    return np.stack(rows, axis=d)


# ---------------------------------------------------------------- sample values


def values(
    dtype: Any, shape: Sequence[int] = (5,), low: float = -3.0, high: float = 3.0, seed: int = 0
) -> np.ndarray:
    """Spread-out values of a dtype, within [low, high] (for integers and floats alike); booleans
    alternate."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(tuple(shape)) < 0.5
    x = np.asarray(rng.uniform(low, high, tuple(shape)))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = np.clip(np.rint(x), info.min, info.max)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(low, high, tuple(shape))
    return np.asarray(x).astype(dtype)


def specials(dtype: Any) -> np.ndarray:
    """The values where operations go wrong: zeros, infinities, NaN, the extremes, values beside
    them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(
            sorted({info.min, info.min + 1, *range(max(info.min, -3), 4), info.max - 1, info.max}),
            dtype,
        )
    if dtype.kind == "c":
        part = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
        out = np.empty((7, 7), dtype)
        out.real, out.imag = part[:, None], part[None, :]
        return out.ravel()
    parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 100.25, np.inf, -np.inf, np.nan]
    return np.array(parts).astype(dtype)


# ---------------------------------------------------------------- JAX as an oracle


def public(name: str) -> Callable[..., Any]:
    """calque's public function of this name, wherever in ops it is defined."""
    for module in MODULES:
        found = getattr(module, name, None)
        if found is not None and getattr(found, "__module__", None) == module.__name__:
            return found
    raise AttributeError(name)


def check_peer(
    name: str,
    *args: Any,
    rtol: float = 0.0,
    atol: float = 0.0,
    ours: Callable[..., Any] | None = None,
    wide: bool = False,
    **params: Any,
) -> None:
    """The lax function `name` gives what JAX's gives: values, dtype and shape."""
    jax = pytest.importorskip("jax")
    mine = ours or public(name)
    with x64(wide), jax.enable_x64(wide):
        arrays = [jax.numpy.asarray(a) for a in args]
        want = jax.tree_util.tree_leaves(getattr(jax.lax, name)(*arrays, **params))
        got = run(lambda *xs: mine(*xs, **params), *[np.asarray(a) for a in arrays])
        for g, w in zip(got, want, strict=True):
            same(
                g,
                np.asarray(w),
                rtol,
                atol,
                f"{name} {[aval_of(a).str_short() for a in args]} {params}",
            )
