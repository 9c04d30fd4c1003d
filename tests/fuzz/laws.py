"""Laws without an oracle: a program compiled, mapped, looped, branched, differentiated, at other
sizes, with found sizes, donated, with other threads gives what it gives eagerly."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from tests.compositions.checks import same_bits
from tests.compositions.peers import Mismatch, brief, numpy_of
from tests.fuzz.programs import Applied, Call, Program, Ref, call, function, references
from tests.fuzz.tiers import eagerly
from tests.fuzz.values import TINY_INTEGERS, value

# Whose documented formula is a difference of numbers that may be nearly equal.
CANCELLING = frozenset(["nn.standardize"])
# Whose derivative is not their slope, on purpose.
HELD = frozenset(["lax.stop_gradient", "lax.reduce_precision"])
# Drawn by rejection: their derivative is that of the quantile, as in JAX, and not of the way there.
REJECTED = frozenset(
    f"random.{name}" for name in ("gamma", "loggamma", "beta", "chisquare", "dirichlet", "f", "t")
)
# Whose derivative is 0 where operands are equal or bounds cross, as in JAX.
TIED = frozenset(["lax.clamp"])
# Whose slope at 0 is that of one side, by convention, and the branch may choose the other.
KINKED = frozenset(["numpy.abs", "numpy.absolute", "numpy.fabs", "lax.abs"])
# Whose places beyond the end give the last element and take no cotangent, as in JAX.
BEYOND = frozenset(["lax.gather"])
Function = Callable[..., list[Any]]
Arrays = Sequence[np.ndarray]


class Skip(Exception):
    """A comparison that says nothing."""


def rough(w: np.ndarray) -> float:
    """The roundings of some calls."""
    if w.dtype.kind not in "fcV" or w.dtype in TINY_INTEGERS:
        return 0.0
    return {1: 0.5, 2: 6e-2}.get(
        w.dtype.itemsize, 1e-8 if w.dtype in (np.float64, np.complex128) else 1e-3
    )


def matches(got: Sequence[Any], want: Sequence[Any]) -> str | None:
    """How results differ, or None."""
    if len(got) != len(want):
        return f"{len(got)} results in place of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        g, w = numpy_of(a), numpy_of(b)
        plain = isinstance(b, (bool, int, float, complex))
        if g.shape != w.shape or (g.dtype != w.dtype and not plain):
            return f"result {i} is {g.dtype}{g.shape} in place of {w.dtype}{w.shape}"
        if not _near(g, w, rough(w)):
            return f"result {i} is {brief([g])} in place of {brief([w])}"
    return None


def _near(g: np.ndarray, w: np.ndarray, tol: float) -> bool:
    wide = np.complex128 if w.dtype.kind == "c" else np.float64
    if w.dtype.kind in "iub":
        return bool(np.all(g == w))
    a, b = g.astype(wide), w.astype(wide)
    scale = np.max(np.abs(b), initial=1, where=np.isfinite(b))
    both = ~np.isfinite(a) & ~np.isfinite(b) if w.dtype.kind == "c" else np.isnan(a) & np.isnan(b)
    return bool(np.all((np.abs(a - b) <= tol * scale) | (a == b) | both))


def close(f: Function, g: Function, p: Program, xs: Arrays, want: Sequence[Any], what: str) -> None:
    """`g` gives what `f`, the program, gives, where roundings do not decide."""
    got = g(*xs)
    wrong = matches(got, want)
    if wrong is not None:
        settled(f, xs, want)
        eagerly(f, apart, p, xs, got)
        raise Mismatch(f"{what}: {wrong}")


def apart(p: Program, xs: Arrays, got: Sequence[Any]) -> None:
    """Raises Skip where each call gives these results of the results before it, eagerly: then a
    rounding that fusing saves, in a difference of equal products say, decides what a later call
    makes of it (the sign of a zero, the side of a jump)."""
    if any(c.function in CANCELLING for c in p.calls):
        raise Skip("a difference that cancels, as documented")
    made = [jnp.asarray(x) for x in xs]
    results: list[list[Any]] = []
    at = 0

    def values(ref: Ref) -> Any:
        return made[ref.leaf] if ref.call is None else results[ref.call][ref.leaf]

    for c in p.calls:
        want = call(calque, c, values)
        mine = got[at : at + len(want)]
        if matches(mine, want) is not None:
            return
        results.append([jnp.asarray(numpy_of(x)) for x in mine])
        at += len(want)
    raise Skip("roundings of an earlier call")


def settled(f: Function, xs: Arrays, want: Sequence[Any]) -> None:
    """Raises Skip where inputs that are moved by some roundings change the results as much: at a
    jump or for an ill-conditioned number."""
    for by in (3e-6, -1e-5):
        moved = [
            x
            if x.dtype.kind in "iub"
            else (x.astype(_wide(x)) * (1 + by * _signs(x))).astype(x.dtype)
            for x in xs
        ]
        try:
            if matches(f(*moved), want) is not None:
                raise Skip("ill-conditioned")
        except Skip:
            raise
        except Exception:
            raise Skip("ill-conditioned") from None
    if any(_saturated(numpy_of(w)) for w in want):
        raise Skip("large or not finite")


def _wide(x: np.ndarray) -> Any:
    return np.complex128 if x.dtype.kind == "c" else np.float64


def _signs(x: np.ndarray) -> np.ndarray:
    return np.sign(np.sin(9 * np.arange(x.size) + 1)).reshape(x.shape)


def _saturated(w: np.ndarray) -> bool:
    if w.dtype.kind not in "fcV":
        return False
    a = np.abs(w.astype(_wide(w)))
    return bool(np.any(~(a < 1e4)))


# ---------------------------------------------------------------- several rows


def rows(p: Program, count: int) -> list[list[np.ndarray]]:
    """Inputs of the same types with other elements; the first are the program's own."""
    return [[value(x._replace(seed=x.seed + 7 * k)) for x in p.inputs] for k in range(count)]


def _mapped(p: Program, mapped: Callable[..., Any], f: Function) -> None:
    if not p.inputs:
        raise Skip("no inputs")
    lanes = rows(p, 3)
    want = [f(*lane) for lane in lanes]
    if any(isinstance(x, (bool, int, float, complex)) for x in want[0]):
        raise Skip("Python numbers")
    if any([x.shape for x in w] != [x.shape for x in want[0]] for w in want):
        raise Skip("shapes follow values")
    got = mapped(*[np.stack([lane[i] for lane in lanes]) for i in range(len(p.inputs))])
    for k, lane in enumerate(lanes):
        wrong = matches([numpy_of(g)[k] for g in got], want[k])
        if wrong is not None:
            settled(f, lane, want[k])
            eagerly(f, apart, p, lane, [numpy_of(g)[k] for g in got])
            raise Mismatch(f"lane {k}: {wrong}")


def vmap(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    g = calque.vmap(f)
    _mapped(p, calque.jit(g) if rng.random() < 0.5 else g, f)


def permuted(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """Lanes in another order give their results in that order."""
    order = np.array([2, 0, 1])
    g = calque.jit(calque.vmap(f))
    _mapped(
        p, lambda *stacked: [numpy_of(r)[[1, 2, 0]] for r in g(*[x[order] for x in stacked])], f
    )


def padded(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """Lanes of anything behind those that count leave their results as they are."""
    g = calque.jit(calque.vmap(f))
    wild = [x._replace(seed=x.seed + 1) for x in p.inputs]
    if not any(c.function.startswith("random.") for c in p.calls):  # which ask for sane parameters
        wild = [x._replace(fill="edges") if x.fill == "plain" else x for x in wild]
    behind = [np.stack([value(x)] * 4) for x in wild]
    _mapped(
        p,
        lambda *stacked: [r[:3] for r in g(*(np.concatenate(x) for x in zip(stacked, behind)))],
        f,
    )


def map(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    _mapped(p, lambda *stacked: lax.map(lambda row: f(*row), stacked), f)


# ---------------------------------------------------------------- control flow


def _numeric(want: Sequence[Any]) -> None:
    if any(isinstance(w, (bool, int, float, complex)) for w in want):
        raise Skip("Python numbers")


def loop(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """The program as the body of a loop that replaces its state."""
    _numeric(want)
    start = [jnp.zeros_like(w) for w in want]

    def body(i: Any, state: list[Any]) -> list[Any]:
        return [w.astype(s.dtype) for s, w in zip(state, f(*xs))]

    if rng.random() < 0.5:
        close(f, lambda *a: lax.fori_loop(0, 2, body, start), p, xs, want, "loop")
    else:
        close(
            f,
            lambda *a: calque.jit(lambda n: lax.while_loop(
                lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[0], s[1])), (0, start)
            ))(2)[1],
            p,
            xs,
            want,
            "while",
        )  # fmt: skip


def branch(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    _numeric(want)

    def g(flag: Any, *ys: Any) -> Any:
        strong = lambda *a: [w.astype(w.dtype) for w in f(*a)]  # noqa: E731
        return lax.cond(flag, strong, lambda *a: [jnp.zeros_like(w) for w in strong(*a)], *ys)

    close(f, lambda *a: calque.jit(g)(True, *a), p, xs, want, "branch")


def converted(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """A Python `if` and `for` on traced values around the program."""
    _numeric(want)

    def g(count: Any, *ys: Any) -> Any:
        found = [jnp.zeros(w.shape, w.dtype) for w in want]
        if count > 1:
            for _ in range(count):
                found = [w.astype(o.dtype) for o, w in zip(found, f(*ys))]
        return found

    close(f, lambda *a: calque.jit(g, control_flow="convert")(2, *a), p, xs, want, "converted")


def remat(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    close(f, calque.jit(calque.checkpoint(f)), p, xs, want, "checkpoint")


# ---------------------------------------------------------------- derivatives


def _reads_beyond(p: Program, xs: Arrays) -> bool:
    """Might a subscript read what is not there? (As in JAX, its tangent is that of the last
    element, and it has no gradient.)"""
    items = [c for c in p.calls if c.function == "forms.item"]
    places = [xs[r.leaf] for c in items for r in references(c.args[1]) if r.call is None]
    places += [np.asarray(k) for c in items for k in subscripts(c.args[1]) if type(k) is int]
    least = min([n for x in xs if x.dtype.kind in "fc" for n in x.shape], default=0)
    whole = [x for x in places if x.dtype.kind in "iu" and x.size]
    return any((x >= least).any() or (x < -least).any() for x in whole)


def subscripts(index: Any) -> Sequence[Any]:
    """Each of those that stand between the brackets."""
    return index if isinstance(index, tuple) else (index,)


def jvp(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """Forward and reverse mode pair tangents and cotangents alike, eagerly and compiled."""
    moving = [i for i, x in enumerate(xs) if x.dtype.kind in "fc" and x.dtype.itemsize >= 4]
    if not moving:
        raise Skip("no inexact inputs")
    if _reads_beyond(p, xs):
        raise Skip("reads beyond the end are moved to it, and their gradients dropped")

    def g(*ys: Any) -> list[Any]:
        every = [jnp.asarray(x) for x in xs]
        for i, y in zip(moving, ys):
            every[i] = y
        return [w for w in f(*every) if _inexact(w)]

    ys = [jnp.asarray(xs[i]) for i in moving]
    ts = [_direction(y, k) for k, y in enumerate(ys)]
    try:
        outs, tangents = eagerly(f, calque.jvp, g, tuple(ys), tuple(ts))
    except NotImplementedError as e:
        raise Skip(f"no derivative: {str(e)[:60]}") from None
    if not outs:
        raise Skip("no inexact results")
    bounded(tangents)
    _, back = eagerly(f, calque.vjp, g, *ys)
    cts = [_direction(w, 50 + k) for k, w in enumerate(outs)]
    grads = eagerly(f, back, cts)
    bounded(grads)
    a, b = _inner(cts, tangents), _inner(grads, ts)
    size = sum(float(np.sum(np.abs(numpy_of(t).astype(complex)))) for t in tangents)
    size += sum(float(np.sum(np.abs(numpy_of(t).astype(complex)))) for t in grads)
    coarse = any(numpy_of(t).dtype.itemsize < 4 for t in tangents)
    single = any(y.dtype in (np.float32, np.complex64) for y in ys)
    tol = 5e-2 if coarse else 1e-3 if single else 1e-8
    if abs(a - b) > tol * (1 + size):
        if any(c.function in BEYOND for c in p.calls):
            raise Skip("places beyond the end")
        if any(c.function == "lax.reduce_precision" for c in p.calls):
            raise Skip("tangents and cotangents are rounded each on its own")
        raise Mismatch(f"forward {a}, reverse {b}")
    jitted = calque.jit(lambda u, v: calque.jvp(g, tuple(u), tuple(v))[1])(ys, ts)
    wrong = matches(jitted, tangents)
    if wrong is not None and not coarse:
        moved = lambda *u: eagerly(f, calque.jvp, g, tuple(u), tuple(ts))[1]  # noqa: E731
        settled(moved, [numpy_of(y) for y in ys], tangents)
        raise Mismatch(f"tangents under jit: {wrong}")


def _inexact(w: Any) -> bool:
    return hasattr(w, "dtype") and bool(jnp.issubdtype(w.dtype, jnp.inexact))


def _direction(x: Any, seed: int) -> Any:
    r = np.random.default_rng(seed)
    t = r.uniform(-1, 1, x.shape)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        t = t + 1j * r.uniform(-1, 1, x.shape)
    return jnp.asarray(t).astype(x.dtype)


def _inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    wide = [(numpy_of(x).astype(complex), numpy_of(y).astype(complex)) for x, y in zip(a, b)]
    return float(sum(np.sum((x * y).real) for x, y in wide))


def bounded(values: Sequence[Any]) -> None:
    for v in values:
        w = numpy_of(v)
        if w.dtype.kind in "fcV" and not np.all(np.abs(w.astype(_wide(w))) < 1e5):
            raise Skip("large or not finite derivatives")


def differences(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """Derivatives are quotients of differences, in 64 bits."""
    moving = [i for i, x in enumerate(xs) if x.dtype.kind == "f" and x.dtype.itemsize >= 4]
    if not moving:
        raise Skip("no real inputs")
    if any(c.function in HELD | REJECTED or tied(c) for c in p.calls):
        raise Skip("a derivative that is no slope")
    with config.override("calque_enable_x64", True):
        every = [x.astype(np.float64) if i in moving else x for i, x in enumerate(xs)]
        ts = [_direction(jnp.asarray(every[i]), k) for k, i in enumerate(moving)]

        def g(*ys: Any) -> list[Any]:
            given = list(every)
            for i, y in zip(moving, ys):
                given[i] = y
            return [w for w in f(*given) if _inexact(w) and w.dtype.itemsize in (8, 16)]

        def quotients(start: float, end: float) -> list[np.ndarray]:
            ends = [
                g(*[every[i] + h * numpy_of(t) for i, t in zip(moving, ts)]) for h in (start, end)
            ]
            every_one = [
                (numpy_of(b) - numpy_of(a)) / (end - start) for a, b in zip(*ends, strict=True)
            ]
            return [
                q for q, t in zip(every_one, tangents) if t.dtype in (np.float64, np.complex128)
            ]

        ys = [jnp.asarray(every[i]) for i in moving]
        try:
            _, tangents = eagerly(f, calque.jvp, g, tuple(ys), tuple(ts))
        except NotImplementedError as e:
            raise Skip(f"no derivative: {str(e)[:60]}") from None
        except TypeError as e:
            if "the same dtypes" not in str(e):
                raise
            raise Skip("inputs of 64 bits beside floats made of integers") from None
        wide = [numpy_of(t) for t in tangents if t.dtype in (np.float64, np.complex128)]
        if not wide:
            raise Skip("no results of 64 bits")
        bounded(wide)
        one, other = quotients(-1e-5, 1e-5), quotients(-7e-6, 7e-6)
        before, behind = quotients(-1e-5, 0.0), quotients(0.0, 1e-5)
    for i, (t, a, b, left, right) in enumerate(zip(wide, one, other, before, behind)):
        scale = 1 + np.max(np.abs(a), initial=0)
        if not (
            np.all(np.abs(a - b) < 1e-6 * scale) and np.all(np.abs(left - right) < 1e-3 * scale)
        ):
            raise Skip("no derivative to be seen")  # a kink, a jump, a function of whole numbers
        if not np.all(np.abs(a - t) < 1e-4 * scale):
            raise Mismatch(f"tangent {i} is {brief([t])}, the quotient of differences {brief([a])}")


def tied(c: Call) -> bool:
    """Whether operands may be equal or bounds may cross, where the derivative says that none of
    them counts, or a branch may end at the kink of what it calls."""
    if c.function == "forms.branched":
        return any(isinstance(a, Applied) and a.name in KINKED for a in c.args)
    return c.function in TIED and len(list(references(c))) > 1


def unrolled(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """The gradient through a scan over rows is the gradient through the rows one by one."""
    moving = [i for i, x in enumerate(xs) if x.dtype.kind in "fc" and x.dtype.itemsize >= 4]
    if not moving:
        raise Skip("no inexact inputs")
    lanes = rows(p, 3)
    stacked = [jnp.asarray(np.stack([lane[i] for lane in lanes])) for i in range(len(xs))]

    def total(row: Sequence[Any]) -> Any:
        parts = [jnp.sum(abs(w) if jnp.iscomplexobj(w) else w) for w in f(*row) if _inexact(w)]
        if not parts:
            raise Skip("no inexact results")
        return sum(part.astype("float32") for part in parts)

    def filled(ys: Sequence[Any]) -> list[Any]:
        every = list(stacked)
        for i, y in zip(moving, ys):
            every[i] = y
        return every

    def by_scan(*ys: Any) -> Any:
        step = lambda c, row: (c + jnp.tanh(0.1 * c) + total(row), None)  # noqa: E731
        return lax.scan(step, jnp.float32(0), filled(ys))[0]

    def by_row(*ys: Any) -> Any:
        c = jnp.float32(0)
        for k in range(3):
            c = c + jnp.tanh(0.1 * c) + total([x[k] for x in filled(ys)])
        return c

    which = tuple(range(len(moving)))
    ys = [numpy_of(stacked[i]) for i in moving]
    if any(numpy_of(w).dtype.itemsize < 4 for w in want if _inexact(w)):
        raise Skip("half precision")
    try:
        expected = eagerly(f, calque.grad(by_row, which), *ys)
    except NotImplementedError as e:
        raise Skip(f"no derivative: {str(e)[:60]}") from None
    bounded(expected)
    wrong = matches(calque.jit(calque.grad(by_scan, which))(*ys), expected)
    if wrong is not None:
        settled(lambda *u: eagerly(f, calque.grad(by_row, which), *u), ys, expected)
        raise Mismatch(f"gradient of a scan: {wrong}")


# ---------------------------------------------------------------- sizes


def resized(p: Program, old: int, new: int) -> Program:
    inputs = [x._replace(shape=tuple(new if n == old else n for n in x.shape)) for x in p.inputs]
    return p._replace(inputs=tuple(inputs))


def sizes(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """One jitted function at three sizes gives what eager calls give."""
    known = sorted({n for x in p.inputs for n in x.shape if n > 1})
    if not known:
        raise Skip("no size to change")
    old = known[int(rng.integers(len(known)))]
    g = calque.jit(f)
    for new in (old, old + 1, 2 * old + 3, int(rng.choice((0, 1, 2, 64)))):
        other = resized(p, old, new)
        ys = [value(x) for x in other.inputs]
        try:
            expected = f(*ys)
        except Exception:
            continue  # an axis, an index or a shape that the program names
        close(f, g, other, ys, expected, f"size {new} after {old}")


def found(f: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """Inputs whose size depends on values."""
    leading = sorted({x.shape[0] for x in p.inputs if x.shape and x.shape[0] > 1})
    if not leading:
        raise Skip("no axis to choose from")
    if any(c.function == "numpy.ix_" for c in p.calls):
        raise Skip("what it gives for an empty array is of integers")
    n = leading[int(rng.integers(len(leading)))]
    mask = rng.random(n) < 0.6
    chosen = [x.shape[:1] == (n,) for x in xs]

    def g(m: Any, *ys: Any) -> list[Any]:
        return f(*[jnp.asarray(y)[m] if c else y for y, c in zip(ys, chosen)])

    try:
        expected = eagerly(f, g, mask, *xs)
    except Exception:
        raise Skip("refused at the size found") from None
    try:
        got = calque.jit(g)(mask, *xs)
    except (TypeError, ValueError, NotImplementedError) as e:
        raise Skip(f"refused for a found size: {type(e).__name__}") from None
    wrong = matches(got, expected)
    if wrong is not None:
        settled(lambda *ys: eagerly(f, g, mask, *ys), xs, expected)
        eagerly(f, apart, p, [x[mask] if c else x for x, c in zip(xs, chosen)], got)
        raise Mismatch(f"found size {int(mask.sum())} of {n}: {wrong}")


# ---------------------------------------------------------------- the machine
# These are given the compiled function.


def donated(g: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    every = tuple(range(len(xs)))
    anew = calque.jit(function(calque, p), donate_argnums=every)
    same(g(*xs), anew(*[jnp.array(x) for x in xs]))


def threads(g: Function, xs: Arrays) -> None:
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1)
        one = g(*xs)
        calque.set_num_threads(2)
        two = g(*xs)
    finally:
        calque.set_num_threads(before)
    same(one, two)


def threads_small(g: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    threads(g, xs)


def again(g: Function, p: Program, xs: Arrays, want: Any, rng: Any) -> None:
    """A program traced and compiled anew, its code out of the disk cache, gives the same bits."""
    same(g(*xs), calque.jit(function(calque, p))(*xs))


def same(a: Sequence[Any], b: Sequence[Any]) -> None:
    for i, (g, w) in enumerate(zip([*_numpy(a)], [*_numpy(b)], strict=True)):
        if (g.shape, g.dtype) != (w.shape, w.dtype) or not same_bits(g, w):
            raise Mismatch(f"result {i} is {brief([g])} in place of {brief([w])}")


def _numpy(xs: Sequence[Any]) -> list[np.ndarray]:
    return [numpy_of(x) for x in xs]


# What the peer is asked when calque refuses a transformation: the same, in its words.
def _stacked(jax: Any, xs: Sequence[Any]) -> list[Any]:
    return [jax.numpy.stack([x, x, x]) for x in xs]


def _jax_jvp(jax: Any, f: Function, xs: Sequence[Any]) -> Any:
    moving = [i for i, x in enumerate(xs) if x.dtype.kind in "fc" and x.dtype.itemsize >= 4]

    def g(*ys: Any) -> list[Any]:
        every = list(xs)
        for i, y in zip(moving, ys):
            every[i] = y
        return [w for w in f(*every) if jax.numpy.issubdtype(w.dtype, jax.numpy.inexact)]

    outs, back = jax.vjp(g, *[xs[i] for i in moving])
    jax.jit(lambda *ys: jax.jvp(g, ys, ys))(*[xs[i] for i in moving])
    return back(outs)


def _jitted(jax: Any, f: Function, xs: Sequence[Any]) -> Any:
    return jax.jit(f)(*xs)


def _vmapped(jax: Any, f: Function, xs: Sequence[Any]) -> Any:
    return jax.vmap(f)(*_stacked(jax, xs))


IN_JAX: dict[str, Callable[[Any, Function, Sequence[Any]], Any]] = {
    "exact": _jitted,
    "jit": _jitted,
    "threads": _jitted,
    "threads_small": _jitted,
    "donated": _jitted,
    "again": _jitted,
    "sizes": _jitted,
    "found": _jitted,
    "loop": _jitted,
    "branch": _jitted,
    "converted": _jitted,
    "remat": _jitted,
    "vmap": _vmapped,
    "permuted": _vmapped,
    "padded": _vmapped,
    "unrolled": _jax_jvp,
    "map": lambda jax, f, xs: jax.lax.map(lambda row: f(*row), _stacked(jax, xs)),
    "jvp": _jax_jvp,
    "differences": _jax_jvp,
}
