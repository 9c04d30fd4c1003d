"""Transformations and control flow as layers: each takes a function of arrays with a list of
results and gives another such function.

A layer is written against a module `j` (calque, JAX, or `peers.Plain`, which is ordinary Python).
Its choices come from a generator that is made anew at every tracing, so that each tracing makes the
same ones."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compositions.operations import FLOAT0, Choices, fit, is_inexact, is_real, real, wave

Function = Callable[..., list[Any]]
Layer = Callable[[Any, Choices, Function, Sequence[Any]], Function]
LENGTH = 3  # rounds of loops


def reals(xs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(xs) if is_real(x)]


def tangent(r: Choices, x: Any) -> Any:
    return (
        wave(r, x.shape, x.dtype if is_inexact(x) else np.float32)
        if is_inexact(x)
        else np.zeros(x.shape, FLOAT0)
    )


def without_float0(xs: Sequence[Any]) -> list[Any]:
    return [x for x in xs if np.dtype(x.dtype) != FLOAT0]


def loss_of(j: Any, seed: int, f: Function) -> Callable[..., tuple[Any, list[Any]]]:
    """A scalar function: weighted means of the results of `f`; and those results."""

    def loss(*xs: Any) -> tuple[Any, list[Any]]:
        r, outs = np.random.default_rng(seed), f(*xs)
        total = j.numpy.zeros(
            (),
            j.numpy.promote_types(np.float32, max((x.dtype for x in xs if is_real(x)), key=size)),
        )
        for o in outs:
            if is_inexact(o):
                term = j.numpy.sum(o * wave(r, o.shape, o.dtype)) / max(o.size, 1)
                total = total + real(j, term).astype(total.dtype)
        return total, outs

    return loss


def size(dtype: Any) -> int:
    return np.dtype(dtype).itemsize


def seed_of(r: Choices) -> int:
    return int(r.integers(1 << 30))


# ---------------------------------------------------------------- calls


def jit(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    return j.jit(f, inline=bool(r.integers(2)), keep_unused=bool(r.integers(2)))


def checkpoint(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    p = j.checkpoint_policies
    policies = (
        None,
        p.everything_saveable,
        p.nothing_saveable,
        p.dots_saveable,
        p.dots_with_no_batch_dims_saveable,
        p.save_only_these_names("a"),
        p.save_anything_except_these_names("b"),
        p.save_any_names_but_these("a"),
        p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("b")),
    )
    return j.checkpoint(
        f, policy=policies[r.integers(len(policies))], prevent_cse=bool(r.integers(2))
    )


def closure_convert(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    def converted(*xs: Any) -> list[Any]:
        g, consts = j.closure_convert(f, *xs)
        return g(*xs, *consts)

    return converted


# ---------------------------------------------------------------- derivatives


def grad(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    argnums = tuple(i for i in reals(xs) if r.random() < 0.7) or tuple(reals(xs)[:1])
    seed, keep, plain = seed_of(r), bool(r.integers(2)), bool(r.integers(2))
    if not argnums:
        return f
    loss = loss_of(j, seed, f)
    if plain:
        return lambda *xs: list(j.grad(lambda *xs: loss(*xs)[0], argnums)(*xs))

    def g(*xs: Any) -> list[Any]:
        grads, outs = j.grad(loss, argnums, has_aux=True)(*xs)
        return [*grads, *outs] if keep else list(grads)

    return g


def value_and_grad(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    which = reals(xs)
    loss = loss_of(j, seed_of(r), f)
    if not which:
        return f
    i = which[r.integers(len(which))]

    def g(*xs: Any) -> list[Any]:
        (value, outs), gradient = j.value_and_grad(loss, i, has_aux=True)(*xs)
        return [gradient, value, *outs[:1]]

    return g


def jvp(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    ts = tuple(tangent(r, x) for x in xs)

    def g(*xs: Any) -> list[Any]:
        outs, tangents = j.jvp(f, xs, ts)
        return [*outs, *without_float0(tangents)]

    return g


def linearize(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    ts, twice, kind = (
        tuple(tangent(r, x) for x in xs),
        tuple(tangent(r, x) for x in xs),
        int(r.integers(4)),
    )
    exact = all(map(is_inexact, xs))

    def g(*xs: Any) -> list[Any]:
        outs, lin = j.linearize(f, *xs)
        if not exact or kind < 2:
            found = (j.jit(lin) if kind and exact else lin)(*ts)
        elif kind == 2:
            both = j.vmap(lin)(*[j.numpy.stack([a, b]) for a, b in zip(ts, twice)])
            found = [
                t[0] + 0.5 * t[1] if is_inexact(t) else t[0]
                for t in both
                if np.dtype(t.dtype) != FLOAT0
            ]
        else:
            found = _transposed(j, lin, xs, outs)
        return [*outs, *without_float0(found)]

    return g


def _transposed(j: Any, lin: Any, xs: Any, outs: list[Any]) -> list[Any]:
    r = np.random.default_rng(5)

    def real_part(*ts):
        return [t for t in lin(*ts) if np.dtype(t.dtype) != FLOAT0]

    return list(j.linear_transpose(real_part, *xs)([tangent(r, o) for o in outs if is_inexact(o)]))


def vjp(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    seed, kind = seed_of(r), int(r.integers(3))

    def g(*xs: Any) -> list[Any]:
        r = np.random.default_rng(seed)
        outs, back = j.vjp(f, *xs)
        cts = [tangent(r, o) for o in outs]
        if kind == 2 and all(map(is_inexact, (*outs, *xs))):
            two = j.vmap(back)([j.numpy.stack([c, 0.5 * c]) for c in cts])
            return [*(t[0] - t[1] for t in two), *outs]
        found = without_float0(back(cts))
        return [*found, *outs] if kind else found or outs

    return g


def one_result(j: Any, f: Function, arg: Any) -> Callable[..., Any]:
    """The first real result of `f`, or its mean where a Jacobian would be large."""

    def first(*xs: Any) -> Any:
        outs = [o for o in f(*xs) if is_real(o)]
        if not outs:
            return real(j, xs[0]) * 0 if is_real(xs[0]) else j.numpy.zeros((2,))
        return outs[0] if outs[0].size * arg.size <= 24 else j.numpy.mean(outs[0])

    return first


def _jacobian(name: str) -> Layer:
    def layer(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
        which = [i for i in reals(xs) if xs[i].size <= 12]
        if not which:
            return f
        i = which[r.integers(len(which))]
        return lambda *xs: [getattr(j, name)(one_result(j, f, xs[i]), i)(*xs)]

    return layer


def hessian(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    seed, which = seed_of(r), [i for i in reals(xs) if xs[i].size <= 6]
    if not which:
        return f
    i = which[r.integers(len(which))]
    return lambda *xs: [j.hessian(lambda *xs: loss_of(j, seed, f)(*xs)[0], i)(*xs)]


# ---------------------------------------------------------------- rules of one's own


def custom_jvp(j: Any, r: Choices, f: Function, xs: Sequence[Any], scale: float = 1.0) -> Function:
    h = j.custom_jvp(lambda *xs: f(*xs))

    def rule(primals: Any, tangents: Any) -> Any:
        outs, ts = j.jvp(f, primals, tangents)
        return outs, [t * scale if is_inexact(t) and scale != 1 else t for t in ts]

    h.defjvp(rule)
    return lambda *xs: h(*xs)


def custom_vjp(j: Any, r: Choices, f: Function, xs: Sequence[Any], scale: float = 1.0) -> Function:
    if getattr(
        j, "forward_through_rules", False
    ):  # JAX has no forward mode for custom_vjp: the same rule, forward
        return custom_jvp(j, r, f, xs, scale)
    h, keep_pullback = j.custom_vjp(lambda *xs: f(*xs)), bool(r.integers(2))

    def forward(*xs: Any) -> Any:
        outs, back = j.vjp(f, *xs)
        return outs, (back if keep_pullback else xs)

    def backward(kept: Any, cts: Any) -> Any:
        found = kept(cts) if keep_pullback else j.vjp(f, *kept)[1](cts)
        return tuple(t * scale if is_inexact(t) and scale != 1 else t for t in found)

    h.defvjp(forward, backward)
    return lambda *xs: h(*xs)


def custom_gradient(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    if getattr(j, "forward_through_rules", False):
        return custom_jvp(j, r, f, xs)

    @j.custom_gradient
    def h(*xs: Any) -> Any:
        outs, back = j.vjp(f, *xs)
        return outs, lambda cts: back(cts)

    return lambda *xs: h(*xs)


def tripled_jvp(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    return custom_jvp(j, r, f, xs, 3.0)


def tripled_vjp(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    return custom_vjp(j, r, f, xs, 3.0)


# ---------------------------------------------------------------- control flow


def alternative(j: Any, f: Function, k: int) -> Function:
    """A branch with the types of `f`'s results, and other values."""

    def other(*xs: Any) -> list[Any]:
        return [o * (0.5 - k) + 0.25 if is_inexact(o) else o for o in f(*xs)]

    return lambda *xs: [o.astype(w.dtype) for o, w in zip(other(*xs), j.eval_shape(f, *xs))]


def predicate(j: Any, r: Choices, xs: Sequence[Any]) -> Callable[..., Any]:
    i, limit = int(r.integers(len(xs))), float(np.round(r.uniform(-0.4, 0.4), 3))
    return lambda *xs: j.numpy.mean(real(j, xs[i]).astype(np.float32)) > limit


def cond(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    pred, closed = predicate(j, r, xs), bool(r.integers(2))
    other = alternative(j, f, 0)
    if closed:
        return lambda *xs: j.lax.cond(pred(*xs), lambda: f(*xs), lambda: other(*xs))
    return lambda *xs: j.lax.cond(pred(*xs), f, other, *xs)


def switch(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    i = int(r.integers(len(xs)))
    branches = [alternative(j, f, 0), f, alternative(j, f, 1)]

    def g(*xs: Any) -> list[Any]:
        index = j.numpy.floor(j.numpy.sum(real(j, xs[i]).astype(np.float32)) * 1.7 + 1.013).astype(
            np.int32
        )
        return j.lax.switch(index, branches, *xs)

    return g


def scan(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    scanned = [bool(b) for b in r.integers(0, 2, len(xs))]
    options = {"reverse": bool(r.integers(2)), "unroll": int(r.choice([1, 1, 2, 3]))}
    keep = bool(r.integers(2))
    n = j.numpy

    def g(*xs: Any) -> list[Any]:
        start = [n.zeros(o.shape, o.dtype) for o in j.eval_shape(f, *xs)]
        rows = [
            n.stack([x * (1 - 0.2 * k) if is_inexact(x) else x for k in range(LENGTH)]).astype(
                x.dtype
            )
            for x, s in zip(xs, scanned)
            if s
        ]

        def body(carry: Any, row: Any) -> Any:
            rest = iter(row)
            full = [next(rest) if s else x for x, s in zip(xs, scanned)]
            full[0] = recurrent(j, full[0], carry)
            outs = f(*full)
            return [mixed(j, c, o) for c, o in zip(carry, outs)], outs[0] if keep else None

        last, ys = j.lax.scan(body, start, rows, length=LENGTH, **options)
        return [*last, ys] if keep else list(last)

    return g


def recurrent(j: Any, x: Any, carry: Sequence[Any]) -> Any:
    """`x` moved by what a loop carries."""
    for c in carry:
        if is_real(x) and is_real(c):
            x = (x + 0.2 * j.numpy.tanh(j.numpy.mean(c)).astype(x.dtype)).astype(x.dtype)
    return x


def mixed(j: Any, c: Any, o: Any) -> Any:
    return (0.5 * c + 0.4 * o).astype(c.dtype) if is_inexact(c) else o


def stepped(j: Any, f: Function, xs: Sequence[Any]) -> list[Any]:
    """One contracting round of a loop that carries the arguments of `f`."""
    outs = f(*xs)
    return [
        (
            (0.6 * x + 0.3 * j.numpy.tanh(fit(j, outs[i % len(outs)], x))).astype(x.dtype)
            if is_real(x)
            else x
        )
        for i, x in enumerate(xs)
    ]


def fori(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    traced, at = bool(r.integers(2)), predicate(j, r, xs)

    def g(*xs: Any) -> list[Any]:
        upper = at(*xs).astype(np.int32) + 1 if traced else 2

        def body(i, c):
            return stepped(
                j, f, [x + 0.1 * j.numpy.asarray(i).astype(x.dtype) if is_real(x) else x for x in c]
            )

        return [x for x in j.fori(0, upper, body, list(xs)) if is_inexact(x)] or f(*xs)

    return g


def while_(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    at, captured = predicate(j, r, xs), bool(r.integers(2))

    def g(*xs: Any) -> list[Any]:
        def go(s):
            return (s[0] < 2) | ((s[0] < LENGTH) & at(*s[1]))

        base = xs if captured else None

        def body(s: Any) -> Any:
            new = stepped(j, f, s[1])
            if base is not None:
                new = [
                    (c + 0.1 * b).astype(c.dtype) if is_inexact(c) else c for c, b in zip(new, base)
                ]
            return s[0] + 1, new

        count, last = j.while_loop(go, body, (j.numpy.zeros((), np.int32), list(xs)))
        return [*(x for x in last if is_inexact(x)), count]

    return g


def map_(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    batch = (None, 2)[r.integers(2)]

    def g(*xs: Any) -> list[Any]:
        rows = [
            j.numpy.stack(
                [x * (1 - 0.3 * k) if is_inexact(x) else x for k in range(LENGTH)]
            ).astype(x.dtype)
            for x in xs
        ]
        return list(j.lax.map(lambda row: f(*row), rows, batch_size=batch))

    return g


# ---------------------------------------------------------------- batching


def vmap(j: Any, r: Choices, f: Function, xs: Sequence[Any]) -> Function:
    """Over some of the axes that the operands have."""
    sizes = sorted({s for x in xs for s in x.shape})
    n = sizes[r.integers(len(sizes))] if sizes else 2
    fitting = [[a for a, s in enumerate(x.shape) if s == n] for x in xs]
    in_axes = [int(a[r.integers(len(a))]) if a and r.random() < 0.8 else None for a in fitting]
    in_axes = [a - x.ndim if a is not None and r.integers(2) else a for a, x in zip(in_axes, xs)]
    return mapped(j, r, f, tuple(in_axes), n)


def mapped(j: Any, r: Choices, f: Function, in_axes: tuple[int | None, ...], n: int) -> Function:
    last = bool(r.integers(2))

    def g(*xs: Any) -> list[Any]:
        lanes = [
            x if a is None else j.eval_shape(lambda x: j.numpy.take(x, 0, axis=a), x)
            for x, a in zip(xs, in_axes)
        ]
        ndims = [o.ndim for o in j.eval_shape(f, *lanes)]
        out_axes = [(-1 if last else min(1, d)) if k % 2 else 0 for k, d in enumerate(ndims)]
        return j.vmap(f, in_axes=in_axes, out_axes=out_axes, axis_size=n)(*xs)

    return g


LAYERS: dict[str, Layer] = {
    "jit": jit,
    "checkpoint": checkpoint,
    "closure_convert": closure_convert,
    "grad": grad,
    "value_and_grad": value_and_grad,
    "jvp": jvp,
    "linearize": linearize,
    "vjp": vjp,
    "jacfwd": _jacobian("jacfwd"),
    "jacrev": _jacobian("jacrev"),
    "hessian": hessian,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "custom_gradient": custom_gradient,
    "tripled_jvp": tripled_jvp,
    "tripled_vjp": tripled_vjp,
    "cond": cond,
    "switch": switch,
    "scan": scan,
    "fori": fori,
    "while": while_,
    "map": map_,
    "vmap": vmap,
}
WEIGHTS = {
    "vmap": 3.0,
    "scan": 1.5,
    "cond": 1.5,
    "while": 1.5,
    "grad": 2.0,
    "checkpoint": 1.5,
    "hessian": 0.5,
    "tripled_jvp": 0.4,
    "tripled_vjp": 0.4,
    "closure_convert": 0.5,
}
CLOSED = frozenset(
    ("custom_jvp", "custom_vjp", "custom_gradient", "tripled_jvp", "tripled_vjp")
)  # no captured tracers
UNFAITHFUL = frozenset(("tripled_jvp", "tripled_vjp"))  # derivatives that are not the function's
DERIVATIVES = frozenset(
    ("grad", "value_and_grad", "jvp", "linearize", "vjp", "jacfwd", "jacrev", "hessian")
)
SAME = frozenset(("jit", "checkpoint", "closure_convert", *CLOSED))  # layers that change no value
