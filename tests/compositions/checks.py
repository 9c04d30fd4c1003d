"""What is asked of a random program. The whole, run natively, is compared with jit (bit for bit in
exact mode) and with JAX; every layer of its stack with ordinary Python around the function below
it, every derivative with finite differences.

The rules of transformations are tried on the reference backend, which compiles nothing."""

import contextlib
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import calque
from calque.core import backends, reference, trace
from calque.core.config import config
from calque.core.jaxprs import check_jaxpr
from calque.machine.call import functions as callpath
from calque.transforms.jit import epochs
from tests.compositions.layers import DERIVATIVES
from tests.compositions.operations import FLOAT0, is_inexact
from tests.compositions.peers import (
    Mismatch,
    Rough,
    agree,
    as_traced,
    brief,
    confirm,
    directions,
    inexact,
    inner,
    jax_module,
    numpy_of,
    ours,
    plain,
)
from tests.compositions.programs import (
    Program,
    faithful,
    function,
    names_in,
    operands,
    source,
    wrapped,
)
from tests.shared import OWN_ENGINE

Outs = list[np.ndarray]
LARGE = 1e6  # values beyond this are not compared
HALF = (np.float16, "bfloat16")


class Skipped(Exception):
    """A comparison that says nothing: a kink, an ill-conditioned number, something that the peer
    refuses."""


class Checker:
    """Runs programs and counts what was compared and what was skipped."""

    def __init__(self, peer: bool, native: bool = True, peer_every: int = 1):
        self.jax = jax_module() if peer else None
        self.native, self.peer_every = native, peer_every
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def problem(self, p: Program) -> str | None:
        """What is wrong with a program, beginning with the name of the check that failed; or
        None."""
        with (
            config.override("calque_enable_x64", p.x64),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            try:
                with (
                    config.override("calque_exact", True),
                    contextlib.nullcontext() if self.native else on_reference(),
                ):
                    values = run(function(ours, p), operands(p))
            except Exception as e:
                return self._refused(p, e)
            found = self._first(self._native_checks(p, values))
            if found is None:
                with on_reference():
                    found = self._first(reference_checks(p, values))
        return found

    def _first(self, checks: Iterator[tuple[str, Callable[[], None]]]) -> str | None:
        """The first check that fails."""
        for name, check in checks:
            try:
                check()
                self.done[name] += 1
            except (Skipped, Rough) as e:
                self.skipped[f"{name}: {type(e).__name__} {e}"] += 1
            except Mismatch as e:
                return f"{name}: {e}"
            except Exception as e:
                return f"{name}: {type(e).__name__}: {e}"
        return None

    def _refused(self, p: Program, e: Exception) -> str | None:
        """calque may refuse what JAX refuses."""
        if self.jax is not None:
            try:
                self._peer(p)
            except Exception:
                self.skipped[f"both refuse: {type(e).__name__}: {str(e)[:60]}"] += 1
                return None
        return f"run: {type(e).__name__}: {e}"

    def _native_checks(self, p: Program, values: Outs) -> Iterator[tuple[str, Callable[[], None]]]:
        if self.native and OWN_ENGINE:
            yield "exact jit", lambda: exact(p, values)
        if self.native and (p.seed % 3 == 0 or not OWN_ENGINE):
            yield (
                "jit",
                lambda: conditioned(run(calque.jit(function(ours, p)), operands(p)), values, p),
            )
        if self.jax is not None and not (p.smooth and faithful(p) and p.seed % self.peer_every):
            yield "jax", lambda: self._against_peer(p, values)

    # ------------------------------------------------------------ JAX

    def _peer(self, p: Program, nudge: float = 0.0) -> Outs:
        jax: Any = self.jax
        jax.config.update("jax_enable_x64", p.x64)
        if not nudge:
            self._compiled = jax.jit(function(jax, p))
        return [np.asarray(o) for o in self._compiled(*nudged(p, nudge))]

    def _against_peer(self, p: Program, values: Outs) -> None:
        try:
            want = self._peer(p)
        except Exception as e:
            raise Skipped(f"{type(e).__name__}: {str(e)[:60]}") from None
        conditioned(values, want, p, lambda nudge: self._peer(p, nudge))


def nudged(p: Program, by: float) -> list[np.ndarray]:
    """Operands moved by so little, relatively."""

    def signs(x):
        return np.sign(np.sin(9 * np.arange(x.size) + 1)).reshape(x.shape)

    return [
        x if x.dtype.kind in "iub" else (x * (1 + by * signs(x))).astype(x.dtype)
        for x in operands(p)
    ]


def conditioned(
    got: Outs, want: Outs, p: Program, again: Callable[[float], Outs] | None = None
) -> None:
    """As `compare`; numbers that change as much when the operands move by some roundings say
    nothing.

    `again(nudge)` computes `want` for operands that are moved so."""
    try:
        compare(got, want, p)
    except Mismatch:
        again = again or (lambda nudge: run(function(ours, p), nudged(p, nudge)))
        for nudge in (1e-12, -1e-12) if p.smooth else (3e-6, 1e-5):
            try:
                compare(again(nudge), want, p, slack=0.3)
            except Mismatch:
                raise Skipped("ill-conditioned") from None
        raise


def run(f: Callable[..., Sequence[Any]], xs: Sequence[Any]) -> Outs:
    return [numpy_of(o) for o in f(*xs)]


@contextlib.contextmanager
def on_reference() -> Iterator[None]:
    """Programs and single operations run their NumPy meanings. Machine code, which has learned to
    serve calls natively, serves none of them, and what is compiled here is kept for a configuration
    of its own."""
    before = trace.evaluator.installed, backends.known.default, callpath.LEARNS
    with config.override("calque_platforms", "cpu"):
        _install(reference.evaluate, "reference", False)
        try:
            yield
        finally:
            _install(*before)


def _install(evaluate: Callable[..., Any], backend: str, learns: bool) -> None:
    trace.evaluator.install(evaluate)
    backends.known.default = backend
    callpath.LEARNS = learns
    epochs.refresh()


# ---------------------------------------------------------------- checks


def reference_checks(p: Program, values: Outs) -> Iterator[tuple[str, Callable[[], None]]]:
    yield "jaxpr", lambda: check_jaxpr(calque.make_jaxpr(function(ours, p))(*operands(p)).jaxpr)
    yield "reference", lambda: conditioned(run(function(ours, p), operands(p)), values, p)
    if p.smooth:
        yield "base", lambda: base(p)
    for k, (name, _) in enumerate(p.stack):
        if name not in DERIVATIVES or (p.smooth and faithful(p)):
            yield f"layer {name}", functools.partial(layer, p, k)
    if p.smooth:
        yield "both modes", lambda: both_modes(p)
    yield "disable_jit", lambda: disabled(p, values)


def base(p: Program) -> None:
    """The body itself, along a direction."""
    if not faithful(p):
        raise Skipped("rules that are not derivatives")
    f, xs = function(ours, p, 0), operands(p, 0)
    ds = directions(xs)
    ts = [np.zeros(x.shape, FLOAT0) if d is None else d for x, d in zip(xs, ds)]
    _bounded(run(f, xs))
    confirm("jvp of the body", f, xs, ds, inexact(calque.jvp(f, tuple(xs), tuple(ts))[1]))


def both_modes(p: Program) -> None:
    """Forward and reverse mode of the whole give the same pairing of tangents and cotangents."""
    f, xs = function(ours, p), operands(p)
    ds = directions(xs)
    ts = tuple(np.zeros(x.shape, FLOAT0) if d is None else d for x, d in zip(xs, ds))
    outs, tangents = calque.jvp(f, tuple(xs), ts)
    _, back = calque.vjp(f, *xs)
    r = np.random.default_rng(8)
    cts = [
        r.normal(size=o.shape).astype(o.dtype) if is_inexact(o) else np.zeros(o.shape, FLOAT0)
        for o in outs
    ]
    tangents = inexact(tangents)
    _bounded([*map(numpy_of, tangents)])
    a = inner(inexact(cts), tangents)
    b = inner([g for g, d in zip(back(cts), ds) if d is not None], [d for d in ds if d is not None])
    size = max([1.0, *(float(np.max(np.abs(numpy_of(t)), initial=0)) for t in tangents)])
    if not np.abs(a - b) <= 1e-8 * size * 10:
        raise Mismatch(f"forward {a}, reverse {b}")


def _bounded(values: Sequence[np.ndarray]) -> None:
    for v in values:
        if is_inexact(v) and not np.all(np.abs(v) < LARGE):
            raise Skipped("large or not finite")


def layer(p: Program, k: int) -> None:
    """Layer `k` of the stack around the function below, and the same in ordinary Python."""
    below, xs = function(ours, p, k), operands(p, k)
    wide = [calque.numpy.asarray(x) for x in operands(p, k + 1)]
    got = run(wrapped(ours, p.stack[k], below, xs), wide)
    if p.smooth:
        _bounded(got)
    want = run(wrapped(plain, p.stack[k], below, xs), wide)
    compare(got, want, p)


def disabled(p: Program, values: Outs) -> None:
    with config.override("calque_disable_jit", True):
        conditioned(run(function(ours, p), operands(p)), values, p)


def exact(p: Program, values: Outs) -> None:
    """In exact mode jit gives the bits of eager execution."""
    with config.override("calque_exact", True):
        jitted = run(calque.jit(function(ours, p)), operands(p))
        if "fori" in names_in(p) and not all(map(same_bits, jitted, values)):
            conditioned(
                jitted, values, p
            )  # eager derivatives of a scan, where jit has those of a while_loop
            values = run(function(as_traced, p), operands(p))
    for i, (a, b) in enumerate(zip(jitted, values, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype) or not same_bits(a, b):
            raise Mismatch(f"result {i}: jit gives {brief([a])}, eager {brief([b])}")


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal, though one NaN may differ from another."""
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind in "iub":
        return bool(np.all(a == b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    return bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | (a != a) & (b != b)))


# ---------------------------------------------------------------- comparing


def tolerance(p: Program, x: np.ndarray) -> float:
    if p.smooth and x.dtype.itemsize >= 8:
        return 1e-6
    names = names_in(p)
    half = any(k in ("float16", "bfloat16") for k, _ in p.inputs) or names & {
        "float16",
        "bfloat16",
        "float16_and_back",
        "bfloat16_and_back",
        "float8",
    }
    return 6e-2 if half else 2e-3


def compare(got: Outs, want: Outs, p: Program, slack: float = 1.0) -> None:
    if len(got) != len(want):
        raise Mismatch(f"{len(got)} results in place of {len(want)}")
    for i, (g, w) in enumerate(zip(got, want)):
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            raise Mismatch(
                f"result {i} is {g.dtype}{list(g.shape)} in place of {w.dtype}{list(w.shape)}"
            )
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        if not agree([g.astype(wide)], [w.astype(wide)], slack * tolerance(p, w)):
            raise Mismatch(f"result {i} is {brief([g])} in place of {brief([w])}")


def report(p: Program, problem: str) -> str:
    """All that is needed to look at a failure."""
    with config.override("calque_enable_x64", p.x64):
        try:
            jaxpr = str(calque.make_jaxpr(function(ours, p))(*operands(p)))
        except Exception as e:
            jaxpr = f"cannot be traced: {type(e).__name__}: {e}"
    return f"{problem[:1500]}\n{source(p)}\n{jaxpr[:3000]}\n{p!r}"
