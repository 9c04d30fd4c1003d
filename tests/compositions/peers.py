"""The modules that programs are built against: calque, JAX, and calque with the layer on trial done
by ordinary Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import calque
import calque.scipy.special
from calque import ad_checkpoint
from calque.core.arrays import to_numpy
from tests.compositions.operations import FLOAT0, is_inexact, is_real


class Module:
    """A module with some names of its own."""

    def __init__(self, module: Any, **own: Any):
        self.__dict__.update(own)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def numpy_of(x: Any) -> np.ndarray:
    return np.asarray(to_numpy(x)) if type(x).__module__.startswith("calque") else np.asarray(x)


# ---------------------------------------------------------------- calque and JAX

ours = Module(
    calque, ad_checkpoint=ad_checkpoint, fori=calque.lax.fori_loop, while_loop=calque.lax.while_loop
)


def _unknown_bound(lower: Any, upper: Any, body: Any, start: Any) -> Any:
    """fori_loop as jit sees it: a bound that is computed is no number, so that the loop is no
    scan."""
    if isinstance(upper, int):
        return calque.lax.fori_loop(lower, upper, body, start)
    first = calque.numpy.asarray(lower, upper.dtype)
    return calque.lax.while_loop(
        lambda s: s[0] < upper, lambda s: (s[0] + 1, body(*s)), (first, start)
    )[1]


as_traced = Module(
    calque, ad_checkpoint=ad_checkpoint, fori=_unknown_bound, while_loop=calque.lax.while_loop
)


def jax_module() -> Any:
    """JAX with loops that it can differentiate: their bodies run a fixed number of times, and count
    while the loop would go on."""
    import jax
    import jax.ad_checkpoint
    import jax.scipy.linalg
    import jax.scipy.special

    most = 4

    def while_loop(go: Any, body: Any, start: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            more = go(s)
            return jax.tree.map(lambda a, b: jax.numpy.where(more, a, b), body(s), s), None

        return jax.lax.scan(step, start, None, length=most)[0]

    def fori(lower: Any, upper: Any, body: Any, start: Any) -> Any:
        if isinstance(upper, int):
            return jax.lax.fori_loop(lower, upper, body, start)
        return while_loop(
            lambda s: s[0] < upper,
            lambda s: (s[0] + 1, body(s[0], s[1])),
            (jax.numpy.int32(lower), start),
        )[1]

    return Module(jax, fori=fori, while_loop=while_loop, forward_through_rules=True)


# ---------------------------------------------------------------- ordinary Python


class Mismatch(AssertionError):
    """Two ways to the same number that differ."""


class Rough(Exception):
    """Finite differences that do not agree with themselves: there is a kink or a cliff."""


class Rule:
    """A custom rule that is left out."""

    def __init__(self, f: Callable[..., Any], nondiff_argnums: Any = ()):
        self.f = f

    def defjvp(self, rule: Any, symbolic_zeros: bool = False) -> None: ...

    def defvjp(self, forward: Any, backward: Any) -> None: ...

    def __call__(self, *args: Any) -> Any:
        return self.f(*args)


def _while(go: Any, body: Any, state: Any) -> Any:
    while bool(go(state)):
        state = body(state)
    return state


def _fori(lower: Any, upper: Any, body: Any, state: Any) -> Any:
    for i in range(int(lower), int(upper)):
        state = body(calque.numpy.int32(i), state)
    return state


def _cond(pred: Any, yes: Any, no: Any, *args: Any) -> Any:
    return yes(*args) if bool(pred) else no(*args)


def _switch(index: Any, branches: Sequence[Any], *args: Any) -> Any:
    return branches[min(max(int(index), 0), len(branches) - 1)](*args)


def _scan(
    body: Any, carry: Any, rows: list[Any], length: int, reverse: bool = False, unroll: int = 1
) -> Any:
    ys: list[Any] = []
    for k in reversed(range(length)) if reverse else range(length):
        carry, y = body(carry, [row[k] for row in rows])
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, None if ys[0] is None else calque.numpy.stack(ys)


def _map(f: Any, rows: list[Any], batch_size: int | None = None) -> list[Any]:
    return stacked([f([row[k] for row in rows]) for k in range(len(rows[0]))], None)


def stacked(lanes: Sequence[Sequence[Any]], axes: Sequence[int] | None) -> list[Any]:
    return [
        calque.numpy.asarray(np.stack([numpy_of(x) for x in outs], 0 if axes is None else axes[k]))
        for k, outs in enumerate(zip(*lanes))
    ]


def _vmap(f: Any, in_axes: Any = None, out_axes: Any = None, axis_size: int = 0) -> Any:
    if not axis_size:
        return calque.vmap(f)

    def looped(*xs: Any) -> list[Any]:
        def lane(k):
            return f(
                *[x if a is None else calque.numpy.take(x, k, axis=a) for x, a in zip(xs, in_axes)]
            )

        return stacked([lane(k) for k in range(axis_size)], out_axes)

    return looped


# ------------------------------------------------------------- derivatives that differences confirm


def differences(
    f: Callable[..., Sequence[Any]], xs: Sequence[Any], ds: Sequence[Any], h: float
) -> list[np.ndarray]:
    """The derivative of the inexact results of `f` along `ds`, from four points."""

    def at(e: float) -> list[np.ndarray]:
        outs = f(*[x if d is None else x + e * d for x, d in zip(xs, ds)])
        return [numpy_of(o) for o in outs if is_inexact(o)]

    def central(e: float) -> list[np.ndarray]:
        return [(a - b) / (2 * e) for a, b in zip(at(e), at(-e))]

    return [(4 * a - b) / 3 for a, b in zip(central(h / 2), central(h))]


def confirm(
    what: str,
    f: Callable[..., Sequence[Any]],
    xs: Sequence[Any],
    ds: Sequence[Any],
    found: Sequence[Any],
    active: Sequence[int] | None = None,
) -> None:
    """`found` is the derivative of `f` along `ds`, by differences of some step; a step may cross a
    kink."""
    found = [numpy_of(t) for t in found]
    seen: list[list[np.ndarray]] = []
    for h in (1e-3, 2e-5, 2e-6):
        numeric = differences(f, xs, ds, h)
        if agree(found, numeric, 2e-6 if h > 1e-5 else 2e-5):
            return
        seen.append(numeric)
    if not agree(seen[1], seen[2], 2e-5):
        raise Rough
    raise Mismatch(f"{what} is {brief(found)}, differences give {brief(seen[1])}")


def brief(xs: Sequence[np.ndarray]) -> str:
    return "; ".join(np.array2string(x.reshape(-1)[:6], precision=7) for x in xs)


def agree(a: Sequence[np.ndarray], b: Sequence[np.ndarray], tol: float) -> bool:
    if [x.shape for x in a] != [x.shape for x in b]:
        return False
    for x, y in zip(a, b):
        scale = np.max(np.abs(y), initial=1, where=np.isfinite(y))
        if not np.all((np.abs(x - y) <= tol * scale) | (x == y) | (np.isnan(x) & np.isnan(y))):
            return False
    return True


def directions(xs: Sequence[Any], seed: int = 3) -> list[Any]:
    r = np.random.default_rng(seed)
    return [r.normal(size=x.shape) if is_real(x) else None for x in xs]


def inner(a: Sequence[Any], b: Sequence[Any]) -> np.ndarray:
    return np.asarray(sum(float(np.sum((numpy_of(x) * numpy_of(y)).real)) for x, y in zip(a, b)))


def only(ds: Sequence[Any], argnums: Sequence[int]) -> list[Any]:
    return [d if i in argnums else None for i, d in enumerate(ds)]


def _value_and_grad(f: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    def checked(*xs: Any) -> Any:
        value, found = calque.value_and_grad(f, argnums, has_aux=has_aux)(*xs)
        which, grads = ((argnums,), (found,)) if isinstance(argnums, int) else (argnums, found)
        ds = only(directions(xs), which)
        along = inner(grads, [ds[i] for i in which])
        confirm(
            "the gradient along a direction",
            lambda *xs: [f(*xs)[0] if has_aux else f(*xs)],
            xs,
            ds,
            [along],
        )
        return value, found

    return checked


def _grad(f: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    def checked(*xs: Any) -> Any:
        value, found = _value_and_grad(f, argnums, has_aux)(*xs)
        return (found, value[1]) if has_aux else found

    return checked


def _jvp(f: Any, xs: Any, ts: Any) -> Any:
    outs, tangents = calque.jvp(f, xs, ts)
    confirm("the tangent", f, xs, usable(ts), inexact(tangents))
    return outs, tangents


def usable(ts: Sequence[Any]) -> list[Any]:
    return [None if np.dtype(t.dtype) == FLOAT0 else t for t in ts]


def inexact(ts: Sequence[Any]) -> list[Any]:
    return [t for t in ts if np.dtype(t.dtype) != FLOAT0]


def _linearize(f: Any, *xs: Any) -> Any:
    outs, lin = calque.linearize(f, *xs)
    ts = directions(xs)
    full = [
        np.zeros(x.shape, x.dtype if is_inexact(x) else FLOAT0) if d is None else d
        for x, d in zip(xs, ts)
    ]
    confirm("the linearized function", f, xs, ts, inexact(lin(*full)))
    return outs, lin


def _vjp(f: Any, *xs: Any) -> Any:
    outs, back = calque.vjp(f, *xs)
    ds = directions(xs)
    r = np.random.default_rng(8)
    cts = [
        r.normal(size=o.shape).astype(o.dtype) if is_inexact(o) else np.zeros(o.shape, FLOAT0)
        for o in outs
    ]
    along = inner(
        [g for g, d in zip(back(cts), ds) if d is not None], [d for d in ds if d is not None]
    )

    def paired(*xs):
        return [calque.numpy.asarray(inner([o for o in f(*xs) if is_inexact(o)], inexact(cts)))]

    confirm("the pullback along a direction", paired, xs, ds, [along])
    return outs, back


def _jacobian(name: str) -> Any:
    def transform(f: Any, argnums: int = 0) -> Any:
        def checked(*xs: Any) -> Any:
            found = getattr(calque, name)(f, argnums)(*xs)
            ds = only(directions(xs), (argnums,))
            along = np.tensordot(numpy_of(found), ds[argnums], np.ndim(ds[argnums]))
            gradient = calque.grad(f, argnums) if name == "hessian" else f
            confirm(f"the {name} along a direction", lambda *xs: [gradient(*xs)], xs, ds, [along])
            return found

        return checked

    return transform


def _same(f: Any, *_: Any, **__: Any) -> Any:
    return f


plain = Module(
    ours,
    lax=Module(calque.lax, cond=_cond, switch=_switch, scan=_scan, map=_map),
    fori=_fori,
    while_loop=_while,
    vmap=_vmap,
    jit=_same,
    checkpoint=_same,
    closure_convert=lambda f, *xs: (f, []),
    custom_jvp=Rule,
    custom_vjp=Rule,
    forward_through_rules=True,
    grad=_grad,
    value_and_grad=_value_and_grad,
    jvp=_jvp,
    linearize=_linearize,
    vjp=_vjp,
    jacfwd=_jacobian("jacfwd"),
    jacrev=_jacobian("jacrev"),
    hessian=_jacobian("hessian"),
)
"""Derivatives are calque's, confirmed by finite differences; all else is Python."""
